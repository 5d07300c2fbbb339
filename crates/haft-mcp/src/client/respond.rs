//! `Respond`: answers a server that asks its client for something in the middle of a call.
//!
//! A server may ask for input (`elicitation/create`), a model's output (`sampling/createMessage`) or folders (`roots/list`): in
//! the handshake era with a request of its own, in the stateless one with a result that says what is missing. Only what was
//! offered is answered, and no question outlives its call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::caller::LogLevel;
use haft::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::client::offers::OwnCapabilities;
use crate::client::speech::ServerRequest;
use crate::wire::{RpcError, reply};

/// Maximum number of a server's questions per call that are open or whose answers are on their way.
const MAX_OPEN: usize = 16;
/// Maximum number of concurrent answers that need no user: pings and refusals. Further requests get no answer, since each answer
/// may take a connection.
const MAX_CONCURRENT: usize = 16;

/// Answers what a server asks in one call.
pub trait Respond: Send + Sync {
    /// Returns the result of a request, as JSON; the server is told the text of an error. Dropping the future withdraws the
    /// question.
    fn respond<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>>;

    /// Like [`respond`](Self::respond), for a request that has a name within its call.
    fn respond_named<'a>(
        &'a self,
        name: Option<&'a str>,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        let _ = name;
        self.respond(method, params)
    }

    /// Returns the lowest level of log messages wanted; `None` if nobody reads any.
    fn log(&self) -> Option<LogLevel> {
        None
    }

    /// Receives other notifications: a log message, or one that haft does not know. Must not block.
    fn hear(&self, method: &str, params: Option<Box<RawValue>>) {
        let _ = (method, params);
    }
}

/// Answers a server in one call, within what is offered.
#[derive(Clone)]
pub struct Responder {
    pub(crate) offers: OwnCapabilities,
    pub(crate) by: Arc<dyn Respond>,
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder")
            .field("offers", &self.offers)
            .finish_non_exhaustive()
    }
}

impl Responder {
    /// Creates a responder that answers only what is offered.
    pub fn new(offers: OwnCapabilities, by: Arc<dyn Respond>) -> Self {
        Self { offers, by }
    }

    /// Returns the answer to a request, if requests of its method are offered.
    pub(crate) async fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Result<Box<RawValue>, String>> {
        self.answer_named(None, method, params).await
    }

    /// Like [`answer`](Self::answer), for a request that has a name.
    pub(crate) async fn answer_named(
        &self,
        name: Option<&str>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Result<Box<RawValue>, String>> {
        if !self.offers.include(method) {
            return None;
        }
        Some(self.by.respond_named(name, method, params).await)
    }
}

/// What a server asks in one call. Dropping this withdraws its open questions.
pub(crate) struct Inquiry {
    responder: Option<Responder>,
    open: Arc<AtomicUsize>,
    /// Number of answers on their way that need no user.
    plain: Arc<AtomicUsize>,
    alive: watch::Sender<()>,
}

impl Inquiry {
    pub(crate) fn new(responder: Option<Responder>) -> Self {
        Self {
            responder,
            open: Arc::default(),
            plain: Arc::default(),
            alive: watch::Sender::new(()),
        }
    }

    /// Passes on a notification that the server sends in the call.
    pub(crate) fn hear(&self, method: &str, params: Option<Box<RawValue>>) {
        if let Some(responder) = &self.responder {
            responder.by.hear(method, params);
        }
    }

    pub(crate) fn can_respond(&self) -> bool {
        self.responder.is_some()
    }

    /// Returns whether any question is still open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Answers a request in the background; `send` sends the answer.
    pub(crate) fn answer<F>(
        &self,
        ask: ServerRequest,
        send: impl FnOnce(Vec<u8>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let is_question = self.responder.is_some() && ask.method != "ping";
        let question = AnswerSlot::take(&self.open, MAX_OPEN).filter(|_| is_question);
        let is_busy = is_question && question.is_none();
        let place = question.or_else(|| AnswerSlot::take(&self.plain, MAX_CONCURRENT));
        let Some(place) = place else {
            return tracing::debug!(
                method = ask.method,
                "a server asks faster than it is answered"
            );
        };
        let responder = self.responder.clone();
        let mut alive = self.alive.subscribe();
        tokio::spawn(async move {
            let answer = async {
                if is_busy {
                    let busy = RpcError::new(RpcError::BUSY, "too many open questions in one call");
                    return reply::error(Some(&ask.id), &busy);
                }
                message(&ask, responder.as_ref()).await
            };
            let answer = tokio::select! {
                biased;
                answer = answer => answer,
                // Nothing is ever sent: the sender is dropped with the call.
                _ = alive.changed() => return,
            };
            send(answer).await;
            drop(place);
        });
    }
}

/// A place within a limit of concurrent answers.
struct AnswerSlot(Arc<AtomicUsize>);

impl AnswerSlot {
    fn take(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |now: usize| (now < most).then_some(now + 1);
        let one = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        one.ok().map(|_| Self(Arc::clone(count)))
    }
}

impl Drop for AnswerSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Returns the message that answers a server's request.
async fn message(ask: &ServerRequest, responder: Option<&Responder>) -> Vec<u8> {
    if ask.method == "ping" {
        return reply::empty(&ask.id);
    }
    let answer = match responder {
        Some(responder) => responder.answer(&ask.method, ask.params.as_deref()).await,
        None => None,
    };
    match answer {
        Some(Ok(result)) => {
            let mut out = reply::begin(&ask.id, result.get().len());
            out.extend_from_slice(result.get().as_bytes());
            reply::end(&mut out);
            out
        }
        Some(Err(why)) => reply::error(Some(&ask.id), &RpcError::new(RpcError::INTERNAL, why)),
        None => {
            let why = "haft does not offer this to servers";
            let error = RpcError::new(RpcError::METHOD_NOT_FOUND, why);
            reply::error(Some(&ask.id), &error)
        }
    }
}

/// Returns the default values of a form's fields, for a user who accepts it unchanged (2025-11-25, elicitation).
pub fn default_values(params: &RawValue) -> serde_json::Map<String, serde_json::Value> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct FormParams {
        requested_schema: FormProperties,
    }
    #[derive(serde::Deserialize)]
    struct FormProperties {
        #[serde(default)]
        properties: serde_json::Map<String, serde_json::Value>,
    }
    let form = serde_json::from_str::<FormParams>(params.get()).ok();
    let fields = form.map(|form| form.requested_schema.properties);
    let proposal =
        |(name, field): (String, serde_json::Value)| Some((name, field.get("default")?.clone()));
    fields.into_iter().flatten().filter_map(proposal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RequestId;

    struct Nobody;

    impl Respond for Nobody {
        fn respond<'a>(
            &'a self,
            _: &'a str,
            _: Option<&'a RawValue>,
        ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_server_that_asks_without_end_is_answered_a_few_times_at_once() {
        for (method, responds, most) in [
            ("elicitation/create", true, MAX_CONCURRENT),
            ("elicitation/create", false, MAX_CONCURRENT),
            ("ping", true, MAX_CONCURRENT),
            ("roots/list", true, MAX_OPEN + MAX_CONCURRENT),
        ] {
            let offers = OwnCapabilities {
                elicitation: true,
                ..OwnCapabilities::default()
            };
            let responder = responds.then(|| Responder::new(offers, Arc::new(Nobody)));
            let inquiry = Inquiry::new(responder);
            let sending = Arc::new(AtomicUsize::new(0));
            for _ in 0..1000 {
                let ask = ServerRequest {
                    id: RequestId::parse("7").unwrap(),
                    method: method.to_owned(),
                    params: None,
                };
                let sending = Arc::clone(&sending);
                inquiry.answer(ask, async move |_| {
                    sending.fetch_add(1, Ordering::AcqRel);
                    // A server that does not accept its answers.
                    std::future::pending::<()>().await;
                });
            }
            for _ in 0..10_000 {
                tokio::task::yield_now().await;
            }
            assert_eq!(sending.load(Ordering::Acquire), most, "{method}");
        }
    }
}

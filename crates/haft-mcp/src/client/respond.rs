//! `Respond`: who answers a server that asks something of its client in the middle of a call.
//!
//! A server may ask for input (`elicitation/create`), for a model's words (`sampling/createMessage`) or for folders
//! (`roots/list`): in the handshake era by a request of its own, in the stateless one by a result that says what is missing.
//! Nothing is answered that was not offered, and no question outlives the call in which it was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::caller::LogLevel;
use haft::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::client::offers::Offers;
use crate::client::speech::ServerAsk;
use crate::wire::{RpcError, reply};

/// Questions that a server may have open in one call, or whose answers are on their way.
const MOST_OPEN: usize = 16;
/// Answers that need nobody, pings and refusals, that are on their way at the same time. What is asked beyond is not answered:
/// each answer may take a connection.
const MOST_AT_ONCE: usize = 16;

/// Answers what a server asks in one call.
pub trait Respond: Send + Sync {
    /// The result of a request of this method, as JSON; an error is said to the server in these words. Dropping the future
    /// withdraws the question.
    fn respond<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>>;

    /// The same for a request that has a name among those of its call.
    fn respond_named<'a>(
        &'a self,
        name: Option<&'a str>,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        let _ = name;
        self.respond(method, params)
    }

    /// The mildest log messages that are wanted; none where nobody reads any.
    fn log(&self) -> Option<LogLevel> {
        None
    }

    /// Hears what a server tells beside: a log message, or what haft does not know. Must not wait.
    fn hear(&self, method: &str, params: Option<Box<RawValue>>) {
        let _ = (method, params);
    }
}

/// Who answers in one call, and for what.
#[derive(Clone)]
pub struct Responder {
    pub(crate) offers: Offers,
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
    /// Answers what is offered, and nothing else.
    pub fn new(offers: Offers, by: Arc<dyn Respond>) -> Self {
        Self { offers, by }
    }

    /// The answer to a request, where it is one that is offered.
    pub(crate) async fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Result<Box<RawValue>, String>> {
        self.answer_named(None, method, params).await
    }

    /// The same for a request that has a name.
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

/// What a server asks in one call. Dropping it withdraws its open questions.
pub(crate) struct Inquiry {
    responder: Option<Responder>,
    open: Arc<AtomicUsize>,
    /// Answers on their way that need nobody.
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

    /// Passes on what the server tells in the call.
    pub(crate) fn hear(&self, method: &str, params: Option<Box<RawValue>>) {
        if let Some(responder) = &self.responder {
            responder.by.hear(method, params);
        }
    }

    pub(crate) fn can_respond(&self) -> bool {
        self.responder.is_some()
    }

    /// Whether somebody is thinking about an answer.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Answers a request in the background, by what sends the answer.
    pub(crate) fn answer<F>(&self, ask: ServerAsk, send: impl FnOnce(Vec<u8>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let is_question = self.responder.is_some() && ask.method != "ping";
        let question = Place::take(&self.open, MOST_OPEN).filter(|_| is_question);
        let is_busy = is_question && question.is_none();
        let place = question.or_else(|| Place::take(&self.plain, MOST_AT_ONCE));
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
                // Nothing is ever sent there: it ends with the call.
                _ = alive.changed() => return,
            };
            send(answer).await;
            drop(place);
        });
    }
}

/// A place among what is answered.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |now: usize| (now < most).then_some(now + 1);
        let one = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        one.ok().map(|_| Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The message that answers a request of a server.
async fn message(ask: &ServerAsk, responder: Option<&Responder>) -> Vec<u8> {
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

/// The values that a form proposes for its fields, for a person who accepts it as it is (2025-11-25, elicitation).
pub fn proposed(params: &RawValue) -> serde_json::Map<String, serde_json::Value> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Form {
        requested_schema: Schema,
    }
    #[derive(serde::Deserialize)]
    struct Schema {
        #[serde(default)]
        properties: serde_json::Map<String, serde_json::Value>,
    }
    let form = serde_json::from_str::<Form>(params.get()).ok();
    let fields = form.map(|form| form.requested_schema.properties);
    let proposal =
        |(name, field): (String, serde_json::Value)| Some((name, field.get("default")?.clone()));
    fields.into_iter().flatten().filter_map(proposal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Id;

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
            ("elicitation/create", true, MOST_AT_ONCE),
            ("elicitation/create", false, MOST_AT_ONCE),
            ("ping", true, MOST_AT_ONCE),
            ("roots/list", true, MOST_OPEN + MOST_AT_ONCE),
        ] {
            let offers = Offers {
                elicitation: true,
                ..Offers::default()
            };
            let responder = responds.then(|| Responder::new(offers, Arc::new(Nobody)));
            let inquiry = Inquiry::new(responder);
            let sending = Arc::new(AtomicUsize::new(0));
            for _ in 0..1000 {
                let ask = ServerAsk {
                    id: Id::parse("7").unwrap(),
                    method: method.to_owned(),
                    params: None,
                };
                let sending = Arc::clone(&sending);
                inquiry.answer(ask, async move |_| {
                    sending.fetch_add(1, Ordering::AcqRel);
                    // A server that does not take its answers.
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

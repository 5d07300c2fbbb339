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

/// Questions that a server may have open in one call.
const MOST_OPEN: usize = 16;

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
    alive: watch::Sender<()>,
}

impl Inquiry {
    pub(crate) fn new(responder: Option<Responder>) -> Self {
        Self {
            responder,
            open: Arc::default(),
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
        let place = Place::take(&self.open);
        let responder = self.responder.clone();
        let mut alive = self.alive.subscribe();
        tokio::spawn(async move {
            let answer = async {
                let Some(_place) = place else {
                    let busy = RpcError::new(RpcError::BUSY, "too many open questions in one call");
                    return reply::error(Some(&ask.id), &busy);
                };
                message(&ask, responder.as_ref()).await
            };
            let answer = tokio::select! {
                biased;
                answer = answer => answer,
                // Nothing is ever sent there: it ends with the call.
                _ = alive.changed() => return,
            };
            send(answer).await;
        });
    }
}

/// A place among the open questions.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |now: usize| (now < MOST_OPEN).then_some(now + 1);
        let taken = open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Self(Arc::clone(open)))
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

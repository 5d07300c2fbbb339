//! `ClientCaller`: a call's client, as the tool reaches it. In the handshake era, the server asks on the call's own stream; in the
//! stateless one, it collects the requests for the call's response and hands what the client brings back to the waiting tools.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use haft::bounds::Charge;
use haft::caller::{Caller, CallerError, CallerRequest, LogLevel, RequestKind};
use haft::future::BoxFuture;
use haft::result::{Outcome, Status};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use url::Url;

use crate::asked_address::{address, is_same_origin};
use crate::capabilities::ClientCapabilities;
use crate::era::Era;
use crate::replies::{OwnRequest, Replies};
use crate::seal::MAX_REQUESTS;
use crate::wire::{RpcError, reply};

/// Maximum number of a call's log messages queued for a slow client; more are dropped.
const MAX_LOGGED: usize = 64;
/// Maximum length of such a message, in bytes; a longer one is dropped.
const MAX_LOG_MESSAGE: usize = 16 << 10;
/// Time to wait for further requests from a handshake-era server that asks several things at once: requests that follow each
/// other with no longer pause are sent to the client together.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// A level above all log levels: no messages are wanted.
pub(crate) const NO_LOG_LEVEL: u8 = u8::MAX;

/// A request that a stateless client gets with its call's response.
#[derive(Debug, Serialize)]
pub(crate) struct InputRequest {
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) method: &'static str,
    pub(crate) params: Box<RawValue>,
}

/// A call's client.
#[derive(Debug)]
pub(crate) struct ClientCaller {
    era: Era,
    can: ClientCapabilities,
    replies: Arc<Replies>,
    /// Sends messages to the client before the response; `None` while the client awaits none.
    notes: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    /// The lowest level of log messages that it wants.
    log: Arc<AtomicU8>,
    /// Log messages waiting to be sent.
    logged: Mutex<VecDeque<Vec<u8>>>,
    more: Notify,
    requests: Mutex<StatelessRequests>,
    /// Whether its call is being polled.
    polled: AtomicBool,
    /// Whether there is a request that the client has not received.
    fresh: AtomicBool,
    /// Whether such a request came from work beside the call: others may follow.
    beside: AtomicBool,
    notify: Notify,
    /// What the client was to be asked but does not support.
    lacks: Mutex<Vec<RequestKind>>,
    /// The address of this haft's console.
    console: Option<Url>,
}

/// The requests for a stateless client.
#[derive(Debug)]
struct StatelessRequests {
    open: Vec<UnansweredRequest>,
    /// What the client answered before it was asked, by request name.
    early: HashMap<String, Box<RawValue>>,
    made: u64,
    charge: Charge,
}

/// A request without an answer so far.
#[derive(Debug)]
struct UnansweredRequest {
    number: u64,
    name: String,
    request: CallerRequest,
    answer: oneshot::Sender<Result<Box<RawValue>, CallerError>>,
}

/// What a call's client is built from.
#[derive(Debug)]
pub(crate) struct ClientCallerConfig {
    pub(crate) era: Era,
    pub(crate) can: ClientCapabilities,
    pub(crate) replies: Arc<Replies>,
    pub(crate) log: Arc<AtomicU8>,
    /// The charge for the bytes of its requests.
    pub(crate) charge: Charge,
    /// The address of this haft's console, to which no server may send a user.
    pub(crate) console: Option<String>,
}

impl ClientCaller {
    pub(crate) fn new(client: ClientCallerConfig) -> Self {
        let requests = StatelessRequests {
            open: Vec::new(),
            early: HashMap::new(),
            made: 0,
            charge: client.charge,
        };
        Self {
            era: client.era,
            can: client.can,
            replies: client.replies,
            notes: Mutex::default(),
            log: client.log,
            logged: Mutex::default(),
            more: Notify::new(),
            requests: Mutex::new(requests),
            polled: AtomicBool::new(false),
            fresh: AtomicBool::new(false),
            beside: AtomicBool::new(false),
            notify: Notify::new(),
            lacks: Mutex::default(),
            console: client.console.and_then(|url| Url::parse(&url).ok()),
        }
    }

    /// Returns whether a request sends the user to haft's own console, where a page could act in the operator's name.
    fn leads_to_console(&self, request: &CallerRequest) -> bool {
        let asked = address(&request.params);
        let both = asked.as_ref().zip(self.console.as_ref());
        both.is_some_and(|(asked, own)| is_same_origin(asked, own))
    }

    /// Notes whether the client waits for a response, and so can be sent messages before it.
    pub(crate) fn listens(&self, notes: Option<mpsc::Sender<Vec<u8>>>) {
        *self.notes.lock() = notes;
    }

    /// Sets the lowest level of log messages for a stateless client, until its next call.
    pub(crate) fn set_log_level(&self, level: Option<LogLevel>) {
        let level = level.map_or(NO_LOG_LEVEL, |level| level as u8);
        self.log.store(level, Ordering::Relaxed);
    }

    /// Takes the client's answers, to requests made or yet to be made. Once the call has begun, answers to unknown requests are
    /// ignored.
    pub(crate) fn take_responses(
        &self,
        mut responses: HashMap<String, Box<RawValue>>,
        begins: bool,
    ) {
        responses.retain(|_, said| said.get().starts_with('{'));
        let mut requests = self.requests.lock();
        let open = std::mem::take(&mut requests.open);
        for open in open {
            match responses.remove(&open.name) {
                Some(said) => {
                    let bytes = open.request.params.get().len();
                    requests.charge.shrink(bytes);
                    let _gone = open.answer.send(Ok(said));
                }
                None => requests.open.push(open),
            }
        }
        if begins {
            let bytes = responses.values().map(|said| said.get().len()).sum();
            if requests.charge.grow(bytes) {
                requests.early = responses;
            }
        }
    }

    /// Returns the requests that wait for the client.
    pub(crate) fn open(&self) -> Vec<InputRequest> {
        let requests = self.requests.lock();
        let open = requests.open.iter().map(|open| InputRequest {
            name: open.name.clone(),
            method: open.request.kind.method(),
            params: open.request.params.clone(),
        });
        open.collect()
    }

    /// Fails the open requests: the client cannot be asked.
    pub(crate) fn refuse(&self) {
        let open = std::mem::take(&mut self.requests.lock().open);
        for open in open {
            let _gone = open.answer.send(Err(CallerError::Busy(open.request.kind)));
        }
    }

    /// Completes when there is something to ask a stateless client.
    pub(crate) async fn wait_for_requests(&self) {
        loop {
            let notified = self.notify.notified();
            let is_open = !self.requests.lock().open.is_empty();
            if self.fresh.load(Ordering::SeqCst) || !is_open {
                notified.await;
                continue;
            }
            if !self.beside.load(Ordering::SeqCst) {
                return;
            }
            tokio::select! {
                biased;
                () = notified => {}
                () = tokio::time::sleep(GATHER_TIME) => self.beside.store(false, Ordering::SeqCst),
            }
        }
    }

    /// Sends log messages as they arrive, at the client's pace.
    pub(crate) async fn sends_logs(&self) -> Infallible {
        loop {
            self.send_logs().await;
            self.more.notified().await;
        }
    }

    /// Sends the log messages left at the end of a call, as far as the client takes them in this time.
    pub(crate) async fn send_last_logs(&self, within: Duration) {
        if !self.logged.lock().is_empty() {
            let _late = tokio::time::timeout(within, self.send_logs()).await;
        }
    }

    /// Sends the queued log messages.
    pub(crate) async fn send_logs(&self) {
        let Some(notes) = self.notes.lock().clone() else {
            return;
        };
        while !self.logged.lock().is_empty() {
            // Wait for room before taking a message, so that none is lost if this future is dropped.
            let Ok(room) = notes.reserve().await else {
                return;
            };
            if let Some(message) = self.logged.lock().pop_front() {
                room.send(message);
            }
        }
    }

    /// Returns the error of a call that failed because its client does not support a request (2026-07-28).
    pub(crate) fn missing_capability(&self, outcome: &Outcome) -> Option<RpcError> {
        let lacks = self.lacks.lock();
        let failed = self.era.is_modern() && outcome.status == Status::Error;
        (failed && !lacks.is_empty()).then(|| missing_capability(outcome, &lacks))
    }

    fn note_request(&self) {
        self.fresh.store(true, Ordering::SeqCst);
        if !self.polled.load(Ordering::SeqCst) {
            self.beside.store(true, Ordering::SeqCst);
            self.announce_requests();
        }
    }

    /// Announces the requests made so far: all that belong together are there.
    fn announce_requests(&self) {
        if self.fresh.swap(false, Ordering::SeqCst) {
            self.notify.notify_waiters();
        }
    }

    /// Asks on the call's own stream.
    async fn ask_now(&self, request: CallerRequest) -> Result<Box<RawValue>, CallerError> {
        let kind = request.kind;
        let notes = self.notes.lock().clone();
        let notes = notes.ok_or(CallerError::Gone(kind))?;
        let sent = OwnRequest::send(&self.replies, &notes, |id| {
            reply::request_raw(id, kind.method(), &request.params)
        });
        let mut sent = sent.await.ok_or(CallerError::Gone(kind))?;
        drop(request);
        let answer = sent.answer().await.ok_or(CallerError::Gone(kind))?;
        match (answer.result, answer.error) {
            (Some(result), _) => Ok(result),
            (None, Some(error)) => Err(CallerError::Refused { kind, error }),
            (None, None) => Err(CallerError::Gone(kind)),
        }
    }

    /// Leaves the request for the call's response and waits for the client to bring the answer.
    async fn ask_back(&self, request: CallerRequest) -> Result<Box<RawValue>, CallerError> {
        let kind = request.kind;
        let (number, answer) = {
            let mut requests = self.requests.lock();
            let early = request.name.as_ref();
            if let Some(early) = early.and_then(|name| requests.early.remove(name)) {
                return Ok(early);
            }
            let bytes = request.params.get().len();
            if requests.open.len() >= MAX_REQUESTS || !requests.charge.grow(bytes) {
                return Err(CallerError::Busy(kind));
            }
            requests.made += 1;
            let number = requests.made;
            let name = requests.free_name(&request, number);
            let (sender, answer) = oneshot::channel();
            requests.open.push(UnansweredRequest {
                number,
                name,
                request,
                answer: sender,
            });
            (number, answer)
        };
        self.note_request();
        let _withdrawn = WithdrawGuard(self, number);
        answer.await.unwrap_or(Err(CallerError::Gone(kind)))
    }
}

impl StatelessRequests {
    /// Returns the request's name for the client: its own, unless that is taken.
    fn free_name(&self, request: &CallerRequest, number: u64) -> String {
        let made = || format!("request-{number}");
        let name = request.name.clone().unwrap_or_else(made);
        if self.open.iter().any(|open| open.name == name) {
            return format!("{name}-{number}");
        }
        name
    }
}

/// Withdraws a request when the caller stops waiting for its answer.
struct WithdrawGuard<'a>(&'a ClientCaller, u64);

impl Drop for WithdrawGuard<'_> {
    fn drop(&mut self) {
        let mut requests = self.0.requests.lock();
        let nth = requests.open.iter().position(|open| open.number == self.1);
        if let Some(nth) = nth {
            let open = requests.open.remove(nth);
            requests.charge.shrink(open.request.params.get().len());
        }
    }
}

impl Caller for ClientCaller {
    fn can(&self, kind: RequestKind) -> bool {
        self.can.can(kind)
    }

    fn capabilities(&self) -> Option<Box<RawValue>> {
        self.can.raw().map(ToOwned::to_owned)
    }

    fn ask(&self, request: CallerRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallerError>> {
        Box::pin(async move {
            let kind = request.kind;
            if !self.can.can(kind) {
                self.lacks.lock().push(kind);
                return Err(CallerError::Unsupported(kind));
            }
            if kind == RequestKind::Url && self.leads_to_console(&request) {
                let error = "{\"code\":-32602,\"message\":\"the address is of haft itself\"}";
                let error = RawValue::from_string(error.to_owned());
                let error = error.map_err(|_| CallerError::Gone(kind))?;
                return Err(CallerError::Refused { kind, error });
            }
            if self.era.is_modern() {
                self.ask_back(request).await
            } else {
                self.ask_now(request).await
            }
        })
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        level as u8 >= self.log.load(Ordering::Relaxed) && self.notes.lock().is_some()
    }

    fn log(&self, level: LogLevel, params: Box<RawValue>) {
        if !self.wants_log(level) {
            return;
        }
        let mut logged = self.logged.lock();
        if logged.len() < MAX_LOGGED && params.get().len() <= MAX_LOG_MESSAGE {
            let message = reply::notification("notifications/message", Some(params.get()));
            logged.push_back(message);
            drop(logged);
            self.more.notify_one();
        }
    }
}

/// A call that signals when it has made all the requests of one poll.
pub(crate) struct BatchedRequestsCall {
    call: BoxFuture<'static, Outcome>,
    caller: Arc<ClientCaller>,
}

impl BatchedRequestsCall {
    pub(crate) fn new(call: BoxFuture<'static, Outcome>, caller: &Arc<ClientCaller>) -> Self {
        let caller = Arc::clone(caller);
        Self { call, caller }
    }
}

impl Future for BatchedRequestsCall {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.caller.polled.store(true, Ordering::SeqCst);
        let polled = self.call.as_mut().poll(cx);
        self.caller.polled.store(false, Ordering::SeqCst);
        self.caller.announce_requests();
        polled
    }
}

fn missing_capability(outcome: &Outcome, lacks: &[RequestKind]) -> RpcError {
    let mut required = Map::new();
    for kind in lacks {
        let of = required
            .entry(kind.capability())
            .or_insert_with(|| json!({}));
        if let Some(mode) = match kind {
            RequestKind::Form => Some("form"),
            RequestKind::Url => Some("url"),
            RequestKind::Sampling | RequestKind::Roots => None,
        } {
            of[mode] = json!({});
        }
    }
    let names: Vec<_> = required.keys().cloned().collect();
    let operator_advice = outcome
        .error
        .as_ref()
        .map_or("", |error| error.message.as_str());
    let message = format!(
        "the call needs a capability that the client did not declare ({}): {operator_advice}",
        names.join(", ")
    );
    let data = json!({ "requiredCapabilities": Value::Object(required) });
    RpcError::new(RpcError::MISSING_CAPABILITY, message).with_data(data.to_string())
}

//! `ClientCaller`: a call's client as its tool reaches it. In the handshake era it is asked on the call's own stream; in the
//! stateless one its requests are gathered for the call's answer, and what comes back is handed to whoever waits.

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

use crate::capabilities::Capabilities;
use crate::era::Era;
use crate::replies::{OwnRequest, Replies};
use crate::seal::MOST_REQUESTS;
use crate::wire::{RpcError, reply};

/// The most log messages of a call that wait for a client that takes them slowly; more are dropped.
const MOST_LOGGED: usize = 64;
/// The longest of them, in bytes; a longer one is dropped.
const LONGEST_LOGGED: usize = 16 << 10;
/// How long requests are gathered that come one by one, from a server of the handshake era that asks several things at once: the
/// client gets together what comes with no longer pause between.
const GATHERED: Duration = Duration::from_millis(50);
/// A level of log messages that is above all: none are wanted.
pub(crate) const SILENT: u8 = u8::MAX;

/// A request that a stateless client is given with its call's answer.
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
    can: Capabilities,
    replies: Arc<Replies>,
    /// What goes to the client before the answer; none while nobody waits for one.
    notes: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    /// The mildest log messages that it wants.
    log: Arc<AtomicU8>,
    /// Those that wait to be sent.
    logged: Mutex<VecDeque<Vec<u8>>>,
    more: Notify,
    requests: Mutex<Requests>,
    /// Its call is being polled.
    polled: AtomicBool,
    /// A request was made that the client has not been given.
    fresh: AtomicBool,
    /// One was made by what works beside the call: others may follow.
    beside: AtomicBool,
    asked: Notify,
    /// What it was to be asked and cannot be.
    lacks: Mutex<Vec<RequestKind>>,
}

/// What a stateless client is asked.
#[derive(Debug)]
struct Requests {
    open: Vec<Open>,
    /// What it said before it was asked, by names.
    early: HashMap<String, Box<RawValue>>,
    made: u64,
    charge: Charge,
}

/// A request whose answer has not come.
#[derive(Debug)]
struct Open {
    number: u64,
    name: String,
    request: CallerRequest,
    answer: oneshot::Sender<Result<Box<RawValue>, CallerError>>,
}

/// What a call's client is made of.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) era: Era,
    pub(crate) can: Capabilities,
    pub(crate) replies: Arc<Replies>,
    pub(crate) log: Arc<AtomicU8>,
    /// What the bytes of its requests are charged to.
    pub(crate) charge: Charge,
}

impl ClientCaller {
    pub(crate) fn new(client: Client) -> Self {
        let requests = Requests {
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
            asked: Notify::new(),
            lacks: Mutex::default(),
        }
    }

    /// The client waits for an answer, and can be told things before it.
    pub(crate) fn listens(&self, notes: Option<mpsc::Sender<Vec<u8>>>) {
        *self.notes.lock() = notes;
    }

    /// The client of the stateless era wants log messages from this level on, until it calls again.
    pub(crate) fn logs(&self, level: Option<LogLevel>) {
        let level = level.map_or(SILENT, |level| level as u8);
        self.log.store(level, Ordering::Relaxed);
    }

    /// Takes what the client says: to what it was asked, or before it is. What has the name of no request is passed over, once
    /// the call has begun.
    pub(crate) fn takes(&self, mut responses: HashMap<String, Box<RawValue>>, begins: bool) {
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

    /// The requests that wait for the client.
    pub(crate) fn open(&self) -> Vec<InputRequest> {
        let requests = self.requests.lock();
        let open = requests.open.iter().map(|open| InputRequest {
            name: open.name.clone(),
            method: open.request.kind.method(),
            params: open.request.params.clone(),
        });
        open.collect()
    }

    /// Ends what waits: the client cannot be asked.
    pub(crate) fn refuse(&self) {
        let open = std::mem::take(&mut self.requests.lock().open);
        for open in open {
            let _gone = open.answer.send(Err(CallerError::Busy(open.request.kind)));
        }
    }

    /// Completes when a stateless client is to be asked something.
    pub(crate) async fn asks(&self) {
        loop {
            let asked = self.asked.notified();
            let is_open = !self.requests.lock().open.is_empty();
            if self.fresh.load(Ordering::SeqCst) || !is_open {
                asked.await;
                continue;
            }
            if !self.beside.load(Ordering::SeqCst) {
                return;
            }
            tokio::select! {
                biased;
                () = asked => {}
                () = tokio::time::sleep(GATHERED) => self.beside.store(false, Ordering::SeqCst),
            }
        }
    }

    /// Sends log messages as they come and as its client takes them.
    pub(crate) async fn sends_logs(&self) -> Infallible {
        loop {
            self.send_logs().await;
            self.more.notified().await;
        }
    }

    /// Sends those that a call leaves at its end, as far as its client takes them in this time.
    pub(crate) async fn send_last_logs(&self, within: Duration) {
        if !self.logged.lock().is_empty() {
            let _late = tokio::time::timeout(within, self.send_logs()).await;
        }
    }

    /// Sends the log messages that wait.
    pub(crate) async fn send_logs(&self) {
        let Some(notes) = self.notes.lock().clone() else {
            return;
        };
        while !self.logged.lock().is_empty() {
            // A message is taken when there is room for it: none is lost where this is not waited for.
            let Ok(room) = notes.reserve().await else {
                return;
            };
            if let Some(message) = self.logged.lock().pop_front() {
                room.send(message);
            }
        }
    }

    /// The error of a call that failed because its client cannot be asked something (2026-07-28).
    pub(crate) fn lacking(&self, outcome: &Outcome) -> Option<RpcError> {
        let lacks = self.lacks.lock();
        let failed = self.era.is_modern() && outcome.status == Status::Error;
        (failed && !lacks.is_empty()).then(|| lacking(outcome, &lacks))
    }

    fn made(&self) {
        self.fresh.store(true, Ordering::SeqCst);
        if !self.polled.load(Ordering::SeqCst) {
            self.beside.store(true, Ordering::SeqCst);
            self.settle();
        }
    }

    /// All requests that were made together are there.
    fn settle(&self) {
        if self.fresh.swap(false, Ordering::SeqCst) {
            self.asked.notify_waiters();
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

    /// Leaves the request to the call's answer, and waits until it is brought back.
    async fn ask_back(&self, request: CallerRequest) -> Result<Box<RawValue>, CallerError> {
        let kind = request.kind;
        let (number, answer) = {
            let mut requests = self.requests.lock();
            let said = request.name.as_ref();
            if let Some(said) = said.and_then(|name| requests.early.remove(name)) {
                return Ok(said);
            }
            let bytes = request.params.get().len();
            if requests.open.len() >= MOST_REQUESTS || !requests.charge.grow(bytes) {
                return Err(CallerError::Busy(kind));
            }
            requests.made += 1;
            let number = requests.made;
            let name = requests.free_name(&request, number);
            let (sender, answer) = oneshot::channel();
            requests.open.push(Open {
                number,
                name,
                request,
                answer: sender,
            });
            (number, answer)
        };
        self.made();
        let _withdrawn = Withdraw(self, number);
        answer.await.unwrap_or(Err(CallerError::Gone(kind)))
    }
}

impl Requests {
    /// The name that the request has for its client: its own, unless another has it.
    fn free_name(&self, request: &CallerRequest, number: u64) -> String {
        let made = || format!("request-{number}");
        let name = request.name.clone().unwrap_or_else(made);
        if self.open.iter().any(|open| open.name == name) {
            return format!("{name}-{number}");
        }
        name
    }
}

/// Takes a request back when nobody waits for its answer any more.
struct Withdraw<'a>(&'a ClientCaller, u64);

impl Drop for Withdraw<'_> {
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
        if logged.len() < MOST_LOGGED && params.get().len() <= LONGEST_LOGGED {
            let message = reply::notification("notifications/message", Some(params.get()));
            logged.push_back(message);
            drop(logged);
            self.more.notify_one();
        }
    }
}

/// A call that says when it has made all the requests that it makes in one go.
pub(crate) struct Gathering {
    call: BoxFuture<'static, Outcome>,
    caller: Arc<ClientCaller>,
}

impl Gathering {
    pub(crate) fn new(call: BoxFuture<'static, Outcome>, caller: &Arc<ClientCaller>) -> Self {
        let caller = Arc::clone(caller);
        Self { call, caller }
    }
}

impl Future for Gathering {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.caller.polled.store(true, Ordering::SeqCst);
        let polled = self.call.as_mut().poll(cx);
        self.caller.polled.store(false, Ordering::SeqCst);
        self.caller.settle();
        polled
    }
}

fn lacking(outcome: &Outcome, lacks: &[RequestKind]) -> RpcError {
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
    let said = outcome
        .error
        .as_ref()
        .map_or("", |error| error.message.as_str());
    let message = format!(
        "the call needs a capability that the client did not declare ({}): {said}",
        names.join(", ")
    );
    let data = json!({ "requiredCapabilities": Value::Object(required) });
    RpcError::new(RpcError::MISSING_CAPABILITY, message).with_data(data.to_string())
}

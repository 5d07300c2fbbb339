//! `Client`: a connection to an MCP server of either era, over any wire.
//!
//! ```text
//! Client ── era of the server found out once ──► Wire ── pipe.rs │ http.rs │ sse.rs ──► the server
//! ```
//!
//! The client trusts nothing from a server: every message, list and wait is bounded, unrequested messages are dropped, and an
//! answer belongs to one request or to none.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft::caller::LogLevel;
use haft::progress::Progress;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

use crate::era::{Era, Revision};

mod call_reply;
mod changes;
mod courier;
mod cursor;
mod endpoint;
mod error;
mod greeting;
pub mod http;
mod input;
mod levels;
mod marks;
mod server_change;
pub mod oauth;
mod offers;
mod pending;
pub mod pipe;
mod respond;
mod rounds;
mod speech;
mod sse;
mod tasks;
mod tools;
mod wire;

pub use call_reply::CallReply;
pub use error::ClientError;
pub use haft_http::dial::{Dial, Io};
pub use offers::OwnCapabilities;
pub use respond::{Respond, Responder, default_values};
pub use server_change::ServerChange;
pub use tools::ToolRecord;
pub use wire::Wire;

pub(crate) use changes::{ChangeFilter as WantedNews, ChangeStream};
pub(crate) use cursor::{ListCursor, PageEnd};

use marks::HeaderArgument;
use respond::Inquiry;
use speech::ServerResult;
use wire::WireRequest;

/// Limits on what a client waits for and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Time to detect the server's era, including its handshake.
    pub connect: Duration,
    /// Time per page of a list.
    pub list: Duration,
    /// Time of a call, including everything that it waits for.
    pub call: Duration,
    /// Maximum number of tools per server.
    pub tools: usize,
}

impl Default for ClientLimits {
    /// 20 seconds, 60 seconds, 10 minutes, 2,000 tools.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            list: Duration::from_secs(60),
            call: Duration::from_secs(600),
            tools: 2000,
        }
    }
}

/// A server's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each capability")]
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it tells its clients and their models about its use (`instructions`).
    pub instructions: Option<String>,
    /// Whether it has tools.
    pub has_tools: bool,
    /// Whether it does not say if it has tools: it names none of the capabilities of which haft makes use, or null for tools. Then it is
    /// asked for them all the same.
    pub is_silent: bool,
    /// Whether it has resources.
    pub has_resources: bool,
    /// Whether it has prompts.
    pub has_prompts: bool,
    /// Whether it completes arguments.
    pub has_completions: bool,
    /// Whether it sends log messages.
    pub has_logging: bool,
    /// Whether it reports changes of single resources.
    pub has_subscriptions: bool,
    /// Whether it reports changes of its list of tools.
    pub tells_tools: bool,
    /// Whether it reports changes of its list of prompts.
    pub tells_prompts: bool,
    /// Whether it reports changes of its list of resources.
    pub tells_resources: bool,
}

impl ServerRecord {
    /// Returns whether it reports changes of any list.
    pub(crate) fn tells(&self) -> bool {
        self.tells_tools || self.tells_prompts || self.tells_resources
    }
}

/// A connection to a server. Dropping it closes the wire.
pub struct Client {
    wire: Arc<dyn Wire>,
    era: Era,
    server: ServerRecord,
    limits: ClientLimits,
    offers: OwnCapabilities,
    next: AtomicU64,
    listed: Mutex<ToolListExtras>,
    /// The lowest level of log messages that a handshake-era server was told to send.
    log_level: Mutex<Option<LogLevel>>,
}

/// What the last list of tools gave besides the tools.
#[derive(Debug, Default)]
struct ToolListExtras {
    /// The arguments that are repeated in headers, by tool name.
    marks: HashMap<String, Arc<[HeaderArgument]>>,
    /// Tools that were left out, each with the reason, and what was odd about the list.
    left_out: Vec<String>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("era", &self.era)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A request without a number so far.
#[derive(Clone)]
pub(crate) struct ClientRequest<'a> {
    pub(crate) method: &'a str,
    /// The members of `params` other than `_meta`, as JSON without braces.
    pub(crate) params: &'a str,
    /// The value of the header `Mcp-Name`.
    pub(crate) name: Option<&'a str>,
    /// Headers that repeat arguments.
    pub(crate) mirrored: Vec<(String, String)>,
    /// Receives the progress.
    pub(crate) progress: Option<Progress>,
    /// Answers what the server asks meanwhile.
    pub(crate) responder: Option<Responder>,
    /// The lowest level of log messages that is wanted.
    pub(crate) log: Option<LogLevel>,
    /// Whether the answer may be a task, or the request is about one.
    pub(crate) tasks: bool,
    pub(crate) limit: Duration,
}

impl<'a> ClientRequest<'a> {
    pub(crate) fn new(method: &'a str, params: &'a str, limit: Duration) -> Self {
        Self {
            method,
            params,
            name: None,
            mirrored: Vec::new(),
            progress: None,
            responder: None,
            log: None,
            tasks: false,
            limit,
        }
    }

    /// Returns what is offered to the server while it handles this request.
    pub(crate) fn offers(&self) -> OwnCapabilities {
        self.responder
            .as_ref()
            .map(|responder| responder.offers)
            .unwrap_or_default()
    }
}

impl Client {
    /// Connects: detects how the server speaks, unless `known` says so, and greets it.
    ///
    /// # Errors
    /// The server does not respond in time, disconnects, or speaks no revision that haft supports.
    pub async fn connect(
        wire: Arc<dyn Wire>,
        known: Option<Era>,
        limits: ClientLimits,
    ) -> Result<Self, ClientError> {
        Self::connect_offering(wire, known, limits, OwnCapabilities::default()).await
    }

    /// Like [`connect`](Self::connect), and tells the server what haft offers in calls that have a [`Responder`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_offering(
        wire: Arc<dyn Wire>,
        known: Option<Era>,
        limits: ClientLimits,
        offers: OwnCapabilities,
    ) -> Result<Self, ClientError> {
        let mut client = Self {
            wire,
            era: known.unwrap_or(Era::Modern),
            server: ServerRecord::default(),
            limits,
            offers,
            next: AtomicU64::new(1),
            listed: Mutex::default(),
            log_level: Mutex::default(),
        };
        let greeted = tokio::time::timeout(limits.connect, client.greet(known)).await;
        match greeted {
            Ok(done) => done.map(|()| client),
            Err(_) => Err(client.timeout_error("connect", limits.connect)),
        }
    }

    pub(crate) fn limits(&self) -> ClientLimits {
        self.limits
    }

    /// Returns the era that the server speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Returns the transport: `stdio`, `http` or `sse`.
    pub fn transport(&self) -> &'static str {
        self.wire.transport()
    }

    /// Returns the server's description of itself.
    pub fn server(&self) -> &ServerRecord {
        &self.server
    }

    /// Returns whether the wire is still open.
    pub fn is_open(&self) -> bool {
        self.wire.is_open()
    }

    /// Returns a counter of the changes to the server's list of tools.
    pub fn list_changes(&self) -> watch::Receiver<u64> {
        self.wire.list_changes()
    }

    /// Returns all news from the server, from now on.
    pub fn news(&self) -> broadcast::Receiver<ServerChange> {
        self.wire.news()
    }

    /// Closes the connection in an orderly way: requests in progress fail.
    pub async fn close(&self) {
        self.wire.close().await;
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn ask(
        &self,
        question: ClientRequest<'_>,
    ) -> Result<Box<RawValue>, ClientError> {
        Ok(self.ask_noted(question).await?.raw)
    }

    /// Like [`ask`](Self::ask), with what had to be replaced in the answer.
    pub(crate) async fn ask_noted(
        &self,
        question: ClientRequest<'_>,
    ) -> Result<ServerResult, ClientError> {
        self.ask_as(Some(self.era), question).await
    }

    /// Like [`ask`](Self::ask), as a client of this era; `None` before the handshake.
    async fn ask_as(
        &self,
        era: Option<Era>,
        question: ClientRequest<'_>,
    ) -> Result<ServerResult, ClientError> {
        let id = self.next_id();
        let message = speech::request(id, era, &question);
        let ClientRequest { method, limit, .. } = question;
        let inquiry = Arc::new(Inquiry::new(question.responder));
        let ask = WireRequest {
            id,
            method,
            name: question.name,
            mirrored: &question.mirrored,
            era,
            message,
            progress: question.progress,
            inquiry: Arc::clone(&inquiry),
        };
        let mut answer = self.wire.ask(ask);
        loop {
            match tokio::time::timeout(limit, &mut answer).await {
                Ok(answer) => return speech::result(&answer?),
                // The server is waiting for a user, and that does not count as its own time.
                Err(_) if inquiry.is_open() => {}
                Err(_) => return Err(self.timeout_error(method, limit)),
            }
        }
    }

    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn timeout_error(&self, method: &str, limit: Duration) -> ClientError {
        ClientError::Late {
            method: method.to_owned(),
            limit,
            said: self.wire.stderr_tail(),
        }
    }
}

/// The revision that the handshake offers.
const OFFERED_REVISION: Revision = Revision::LATEST;

#[cfg(test)]
mod tests;

//! `Client`: a connection to an MCP server of either era, over any wire.
//!
//! ```text
//! Client ── era of the server found out once ──► Wire ── pipe.rs │ http.rs │ sse.rs ──► the server
//! ```
//!
//! Nothing of a server is believed: every message, list and wait is bounded, what nobody asked for is dropped, and an
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

mod changes;
mod connections;
mod courier;
mod endpoint;
mod error;
mod greeting;
pub mod http;
mod input;
mod levels;
mod marks;
mod news;
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

pub use connections::{Dial, Io};
pub use error::ClientError;
pub use news::News;
pub use offers::Offers;
pub use respond::{Respond, Responder, proposed};
pub use tools::{CallReply, ToolRecord};
pub use wire::Wire;

pub(crate) use changes::{Stream, Wanted as WantedNews};

use marks::Mark;
use respond::Inquiry;
use wire::Ask;

/// What a client waits for at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Finding out the server's era, its handshake included.
    pub connect: Duration,
    /// Each page of a list.
    pub list: Duration,
    /// A call, with all that it waits for.
    pub call: Duration,
    /// Tools that are taken of one server.
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

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each capability")]
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it tells those who use it.
    pub instructions: Option<String>,
    /// Whether it has tools.
    pub has_tools: bool,
    /// Whether it has resources.
    pub has_resources: bool,
    /// Whether it has prompts.
    pub has_prompts: bool,
    /// Whether it completes arguments.
    pub has_completions: bool,
    /// Whether it sends log messages.
    pub has_logging: bool,
    /// Whether it tells of changes of single resources.
    pub has_subscriptions: bool,
    /// Whether it says when its list of tools changes.
    pub tells_tools: bool,
    /// The same of its prompts.
    pub tells_prompts: bool,
    /// The same of its resources.
    pub tells_resources: bool,
}

impl ServerRecord {
    /// Whether it says when any of its lists changes.
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
    offers: Offers,
    next: AtomicU64,
    listed: Mutex<Listed>,
    /// The mildest log messages that a server of the handshake era was told to send.
    log_level: Mutex<Option<LogLevel>>,
}

/// What the last list of tools said beside the tools.
#[derive(Debug, Default)]
struct Listed {
    /// The arguments that are repeated in headers, by the tool's name.
    marks: HashMap<String, Arc<[Mark]>>,
    /// Tools that were left out, with the reason.
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

/// A request before it has a number.
#[derive(Clone)]
pub(crate) struct Question<'a> {
    pub(crate) method: &'a str,
    /// The members of `params` but `_meta`, as JSON without braces.
    pub(crate) params: &'a str,
    /// What the header `Mcp-Name` repeats.
    pub(crate) name: Option<&'a str>,
    /// Headers that repeat what stands in the arguments.
    pub(crate) mirrored: Vec<(String, String)>,
    /// Who hears of progress.
    pub(crate) progress: Option<Progress>,
    /// Who answers what the server asks meanwhile.
    pub(crate) responder: Option<Responder>,
    /// The mildest log messages that are wanted.
    pub(crate) log: Option<LogLevel>,
    /// Whether the answer may be a task, or this is about one.
    pub(crate) tasks: bool,
    pub(crate) limit: Duration,
}

impl<'a> Question<'a> {
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

    /// What is offered to the server while it works on this.
    pub(crate) fn offers(&self) -> Offers {
        self.responder
            .as_ref()
            .map(|responder| responder.offers)
            .unwrap_or_default()
    }
}

impl Client {
    /// Connects: finds out how the server speaks, unless `known` says it, and greets it.
    ///
    /// # Errors
    /// The server does not answer in time, breaks off, or speaks no revision that haft speaks.
    pub async fn connect(
        wire: Arc<dyn Wire>,
        known: Option<Era>,
        limits: ClientLimits,
    ) -> Result<Self, ClientError> {
        Self::connect_offering(wire, known, limits, Offers::default()).await
    }

    /// The same, and tells the server what haft offers to do for it in calls that bring a [`Responder`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_offering(
        wire: Arc<dyn Wire>,
        known: Option<Era>,
        limits: ClientLimits,
        offers: Offers,
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
            Err(_) => Err(client.late("connect", limits.connect)),
        }
    }

    /// What is waited for at most.
    pub(crate) fn limits(&self) -> ClientLimits {
        self.limits
    }

    /// How the server speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// By what it is spoken to: `stdio`, `http` or `sse`.
    pub fn transport(&self) -> &'static str {
        self.wire.transport()
    }

    /// What the server says of itself.
    pub fn server(&self) -> &ServerRecord {
        &self.server
    }

    /// Whether the wire still carries something.
    pub fn is_open(&self) -> bool {
        self.wire.is_open()
    }

    /// Counts how often the server said that its list of tools has changed.
    pub fn list_changes(&self) -> watch::Receiver<u64> {
        self.wire.list_changes()
    }

    /// All that the server tells of what it has, from now on.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.wire.news()
    }

    /// Ends the connection in order: what is under way fails.
    pub async fn close(&self) {
        self.wire.close().await;
    }

    /// Asks, and waits for the answer's result.
    pub(crate) async fn ask(&self, question: Question<'_>) -> Result<Box<RawValue>, ClientError> {
        self.ask_as(Some(self.era), question).await
    }

    /// The same as a client of this era; of none before the handshake.
    async fn ask_as(
        &self,
        era: Option<Era>,
        question: Question<'_>,
    ) -> Result<Box<RawValue>, ClientError> {
        let id = self.next_id();
        let message = speech::request(id, era, &question);
        let Question { method, limit, .. } = question;
        let inquiry = Arc::new(Inquiry::new(question.responder));
        let ask = Ask {
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
                // The server waits for a person: that is no time of its own.
                Err(_) if inquiry.is_open() => {}
                Err(_) => return Err(self.late(method, limit)),
            }
        }
    }

    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn late(&self, method: &str, limit: Duration) -> ClientError {
        ClientError::Late {
            method: method.to_owned(),
            limit,
            said: self.wire.last_words(),
        }
    }
}

/// The revision that a handshake offers.
const OFFERED: Revision = Revision::LATEST;

#[cfg(test)]
mod tests;

//! `Client`: a connection to an MCP server of either era, over any wire.
//!
//! ```text
//! Client ── era.rs of the server found out once ──► Wire ── pipe.rs │ http.rs ──► the server
//! ```
//!
//! Nothing of a server is believed: every message, list and wait is bounded, what nobody asked for is dropped, and an
//! answer belongs to one request or to none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft::progress::Progress;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::era::{Era, Revision};

mod connections;
mod error;
mod events;
mod greeting;
pub mod http;
pub mod pipe;
mod speech;
mod tools;
mod wire;

pub use connections::{Dial, Io};
pub use error::ClientError;
pub use tools::{CallReply, ToolRecord};
pub use wire::Wire;

use speech::Answer;
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
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it tells those who use it.
    pub instructions: Option<String>,
    /// Whether it has tools.
    pub has_tools: bool,
}

/// A connection to a server. Dropping it closes the wire.
pub struct Client {
    wire: Arc<dyn Wire>,
    era: Era,
    server: ServerRecord,
    limits: ClientLimits,
    next: AtomicU64,
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
pub(crate) struct Question<'a> {
    pub(crate) method: &'a str,
    /// The members of `params` but `_meta`, as JSON without braces.
    pub(crate) params: &'a str,
    /// What the header `Mcp-Name` repeats.
    pub(crate) name: Option<&'a str>,
    /// Who hears of progress.
    pub(crate) progress: Option<Progress>,
    pub(crate) limit: Duration,
}

impl<'a> Question<'a> {
    pub(crate) fn new(method: &'a str, params: &'a str, limit: Duration) -> Self {
        Self {
            method,
            params,
            name: None,
            progress: None,
            limit,
        }
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
        let mut client = Self {
            wire,
            era: known.unwrap_or(Era::Modern),
            server: ServerRecord::default(),
            limits,
            next: AtomicU64::new(1),
        };
        let greeted = tokio::time::timeout(limits.connect, client.greet(known)).await;
        match greeted {
            Ok(done) => done.map(|()| client),
            Err(_) => Err(client.late("connect", limits.connect)),
        }
    }

    /// How the server speaks.
    pub fn era(&self) -> Era {
        self.era
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
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let Question { method, limit, .. } = question;
        let ask = Ask {
            id,
            method,
            name: question.name,
            era,
            message: speech::request(id, era, &question),
            progress: question.progress,
        };
        match tokio::time::timeout(limit, self.wire.ask(ask)).await {
            Ok(answer) => speech::result(&answer?),
            Err(_) => Err(self.late(method, limit)),
        }
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

/// The answer to a request that a server makes: haft offers servers nothing but that it lives.
pub(crate) fn reply_to(method: &str) -> Answer {
    if method == "ping" {
        Answer::Empty
    } else {
        Answer::Unknown
    }
}

#[cfg(test)]
mod tests;

//! `RunFactory`: supplied by the host to give the server a governed run for each client.

use std::fmt;
use std::sync::Arc;

use haft::bounds::{CallerClass, ShareKey};
use haft::call::Principal;
use haft::error::HostFailure;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::progress::Pace;
use haft::session::Session;
use haft::skill::Skill;

use crate::capabilities::ClientCapabilities;
use crate::era::Era;
use crate::offer::Offer;
use crate::wire::params::Implementation;

/// Prepares a run for each connection, each handshake-era session, and each stateless client.
///
/// A client may come and go without a call, so a run's record begins only when the server starts the run for its first call. The
/// server releases every run once, when its client is gone. What starting and releasing mean is up to the host.
pub trait RunFactory: Send + Sync + fmt::Debug + 'static {
    /// Prepares a run in memory: a new session, and the executor for its calls. See [`start`](Self::start).
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>>;

    /// Starts a run that is about to make its first call: its record begins. If this fails, the call is not made.
    fn start<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>>;

    /// Returns whether clients may be shown the progress of their calls.
    fn shows_progress(&self) -> bool {
        true
    }

    /// Returns how their progress is collected.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Returns whether users may be asked at all: the settings can rule out asking through clients.
    fn asks(&self) -> bool {
        true
    }

    /// Returns the address of the console, where users decide, without a path: `http://127.0.0.1:7420`. `None` if there is no console.
    fn console(&self) -> Option<String> {
        None
    }

    /// Returns the console's address when a user is about to be asked; starting a console may take a moment.
    fn reach_console(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { self.console() })
    }

    /// Returns whether the settings name a client whose forms may decide about calls. Only called for a client with the
    /// operator's token, and never about a critical call.
    fn trusts(&self, client: &str) -> bool {
        let _ = client;
        false
    }

    /// Returns the key for the state that stateless clients carry. It must survive a restart, otherwise the state ends with the process.
    fn state_key(&self) -> Option<[u8; 32]> {
        None
    }

    /// Returns the skills that clients may be shown as resources and prompts; empty if the host has none. May read files and block.
    fn skills(&self) -> Vec<Skill> {
        Vec::new()
    }

    /// Returns whether calls of this tool take so long that no client should wait for them: they are tasks from the start, and a
    /// stateless client without tasks is refused.
    fn is_only_task(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// Returns what clients are offered besides tools, skills and artifacts; `None` if the host offers nothing.
    fn offer(&self) -> Option<Arc<dyn Offer>> {
        None
    }

    /// Releases a run whose client is gone, whether it was started or not: the host suspends or finishes it. Its calls were
    /// cancelled, and it has stopped waiting for decisions. Must not block.
    fn release(&self, session: &Session);

    /// Receives a message that was refused before it belonged to a run, so that it leaves a trace. Must not block.
    fn stray(&self, transport: Transport, reason: &str) {
        tracing::warn!(?transport, reason, "mcp message refused");
    }

    /// Receives a message that was refused before it became a call of a run in progress, so that it leaves a trace.
    fn refused(&self, session: &Session, reason: &str) {
        tracing::warn!(run = %session.run(), reason, "mcp message refused");
    }
}

/// Marks, in the extensions of an HTTP request, that it came with the operator's token: its client's user may decide, if
/// [`RunFactory::trusts`] names the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorMarker;

/// Names, in the extensions of an HTTP request, its caller's view: the only tools that the caller sees and may call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ViewName(pub Arc<str>);

/// Why no run could be opened for a client.
#[derive(Debug, thiserror::Error)]
#[error("open a run: {0}")]
pub struct OpenError(#[source] pub HostFailure);

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// What is known about a client when its run opens. Names are what the client says about itself: for display only.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// The name that it gives.
    pub name: String,
    /// The version that it gives.
    pub version: String,
    /// The era of the protocol it speaks.
    pub era: Era,
    /// How it is connected.
    pub transport: Transport,
    /// Its principal, if the transport has verified it.
    pub principal: Option<Principal>,
    /// Its view, if it does not have all tools. The host knows what the name means, and opens no run if it does not.
    pub view: Option<ViewName>,
    /// The class whose share of limited resources it uses.
    pub class: CallerClass,
    /// The capabilities that it declared.
    pub capabilities: ClientCapabilities,
}

/// How a client connected, and who it is according to the transport.
#[derive(Debug)]
pub(crate) struct ClientOrigin {
    pub(crate) transport: Transport,
    pub(crate) principal: Option<Principal>,
    pub(crate) view: Option<ViewName>,
    pub(crate) class: CallerClass,
}

impl ClientInfo {
    /// Describes a client that connected, with its own names truncated to a length that can be kept and shown.
    pub(crate) fn new(
        implementation: Implementation,
        capabilities: ClientCapabilities,
        era: Era,
        arrival: ClientOrigin,
    ) -> Self {
        Self {
            name: clipped(implementation.name),
            version: clipped(implementation.version),
            era,
            transport: arrival.transport,
            principal: arrival.principal,
            view: arrival.view,
            class: arrival.class,
            capabilities,
        }
    }

    /// Returns whose share of limited resources it uses.
    pub(crate) fn share(&self) -> ShareKey {
        ShareKey {
            class: self.class,
            principal: self.principal.clone(),
        }
    }
}

fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(200));
    text
}

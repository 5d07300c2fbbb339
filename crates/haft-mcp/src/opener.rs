//! `RunFactory`: what a host gives the server: a governed run for each client.

use std::fmt;
use std::sync::Arc;

use haft::bounds::Class;
use haft::call::Principal;
use haft::error::Failure;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::progress::Pace;
use haft::session::Session;
use haft::skill::Skill;

use crate::capabilities::Capabilities;
use crate::era::Era;
use crate::offer::Offer;
use crate::wire::params::Implementation;

/// Prepares a run for each connection, each legacy session, and each client of the stateless era.
///
/// A client may come and go without a call, so nothing is recorded of a run before its first: the server starts it then. It releases
/// every run, once, when its client is gone. What starting and releasing mean is the host's to say.
pub trait RunFactory: Send + Sync + fmt::Debug + 'static {
    /// Prepares a run: a fresh session, and the executor its calls go through. In memory alone: see [`start`](Self::start).
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>>;

    /// Starts a run that is about to make its first call: its record begins. Where that fails no call is made.
    fn start<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>>;

    /// Whether clients may be shown the progress of their calls.
    fn shows_progress(&self) -> bool {
        true
    }

    /// How their progress is gathered.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Whether people may be asked at all: nobody is by way of clients where settings say so.
    fn asks(&self) -> bool {
        true
    }

    /// The console's address without a path, where people decide: `http://127.0.0.1:7420`. None where there is no console.
    fn console(&self) -> Option<String> {
        None
    }

    /// The same when a person is about to be asked: it may take a moment until there is a console.
    fn reach_console(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { self.console() })
    }

    /// Whether settings name a client whose forms may decide about calls. Asked about one that came with the operator's
    /// token alone, and never about a critical call.
    fn trusts(&self, client: &str) -> bool {
        let _ = client;
        false
    }

    /// The key of the states that stateless clients carry: the same after a restart, or the states end with the process.
    fn state_key(&self) -> Option<[u8; 32]> {
        None
    }

    /// The skills that clients may be shown, as resources and as prompts; none where the host has none. It may read files and block.
    fn skills(&self) -> Vec<Skill> {
        Vec::new()
    }

    /// Whether calls of this tool take so long that no client should wait for them: they are tasks from their beginning, and a
    /// stateless client without tasks is refused.
    fn is_only_task(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// What clients are offered beside tools, skills and artifacts; nothing where the host has nothing.
    fn offer(&self) -> Option<Arc<dyn Offer>> {
        None
    }

    /// Releases a run whose client is gone, whether it was started or not: the host suspends or finishes it. Its calls were cancelled, and
    /// its waits for decisions ended. Must not wait.
    fn release(&self, session: &Session);

    /// Hears of a message that was refused before it belonged to any run, so that it leaves a trace. Must not wait.
    fn stray(&self, transport: Transport, reason: &str) {
        tracing::warn!(?transport, reason, "mcp message refused");
    }

    /// Hears of a message that was refused before it became a call, in a run that has begun, so that it leaves a trace.
    fn refused(&self, session: &Session, reason: &str) {
        tracing::warn!(run = %session.run(), reason, "mcp message refused");
    }
}

/// Marks an HTTP request, among its extensions, that came with the operator's token: what its client's person says may decide,
/// where [`RunFactory::trusts`] names the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByOperator;

/// Names, among an HTTP request's extensions, the view of its caller: the only tools that the caller is told of and may call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ViewName(pub Arc<str>);

/// Why no run could be opened for a client.
#[derive(Debug, thiserror::Error)]
#[error("open a run: {0}")]
pub struct OpenError(#[source] pub Failure);

/// By which transport a client came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// What is known of a client when its run opens. Names are what the client says of itself: for display alone.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// The name it gives itself.
    pub name: String,
    /// The version it gives itself.
    pub version: String,
    /// The protocol it speaks.
    pub era: Era,
    /// How it is connected.
    pub transport: Transport,
    /// Who it is, where the transport has checked that.
    pub principal: Option<Principal>,
    /// The view that it has, where it has not all tools. The host knows what the name means, and opens no run where it does not.
    pub view: Option<ViewName>,
    /// Whose share of bounded resources it uses.
    pub class: Class,
    /// What it said it can do.
    pub capabilities: Capabilities,
}

/// How a client connected, and who the transport found it to be.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) transport: Transport,
    pub(crate) principal: Option<Principal>,
    pub(crate) view: Option<ViewName>,
    pub(crate) class: Class,
}

impl ClientInfo {
    /// Who came by a transport, with what they say of themselves at a length that can be kept and shown.
    pub(crate) fn new(
        said: Implementation,
        capabilities: Capabilities,
        era: Era,
        arrival: Arrival,
    ) -> Self {
        Self {
            name: clipped(said.name),
            version: clipped(said.version),
            era,
            transport: arrival.transport,
            principal: arrival.principal,
            view: arrival.view,
            class: arrival.class,
            capabilities,
        }
    }
}

fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(200));
    text
}

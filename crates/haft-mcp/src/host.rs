//! `Host`: one governed run behind one MCP connection, session, or stateless server.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactRef};
use haft::audit::BoxFuture;
use haft::call::{Principal, RunId, ToolCall};
use haft::result::Outcome;
use haft::spec::ToolSpec;
use tokio::sync::mpsc;

use crate::era::Era;
use crate::wire::reply;

/// The longest progress message sent, in bytes: one flush of a tool's output (`progress.flush_bytes`).
const MAX_PROGRESS_TEXT: usize = 16 * 1024;

/// The tools a run lists.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Changes whenever the list does; never misses a change.
    pub version: u64,
    /// The listed specs in their stable order. The same `Arc` while nothing changed: rendered lists are kept by it.
    pub specs: Arc<[Arc<ToolSpec>]>,
}

/// A piece of an artifact.
#[derive(Debug, Clone)]
pub struct ArtifactPart {
    /// What is known of the whole.
    pub info: ArtifactInfo,
    /// The bytes asked for.
    pub bytes: Bytes,
}

/// One governed run: what an MCP client reaches, and nothing else.
pub trait Host: Send + Sync + fmt::Debug + 'static {
    /// The run's id.
    fn run(&self) -> &RunId;

    /// The tools listed now.
    fn tools(&self) -> Tools;

    /// Waits until the list's version is another than `seen`, and returns it.
    fn changed(&self, seen: u64) -> BoxFuture<'_, u64>;

    /// One call through the executor. Dropping the future cancels the call, which is recorded as cancelled.
    fn call(&self, call: ToolCall, progress: ProgressSink) -> BoxFuture<'_, Outcome>;

    /// The run's artifacts, newest first.
    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<ArtifactInfo>, ArtifactError>>;

    /// Bytes `range` (clipped to the end) of one of the run's artifacts.
    fn read_artifact(
        &self,
        reference: ArtifactRef,
        range: Range<u64>,
    ) -> BoxFuture<'_, Result<ArtifactPart, ArtifactError>>;

    /// Hears of a message that was refused before it became a call, so that it leaves a trace.
    fn refused(&self, reason: &str) {
        tracing::warn!(run = %self.run(), reason, "mcp message refused");
    }

    /// The connection or session is over: ends the run.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Why no run could be opened for a client.
#[derive(Debug, thiserror::Error)]
#[error("open a run: {0}")]
pub struct OpenError(pub String);

/// Opens a run for each connection, legacy session, and caller of the stateless era.
pub trait HostFactory: Send + Sync + fmt::Debug + 'static {
    /// Opens one.
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn Host>, OpenError>>;
}

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
}

/// Where a call's progress goes: to the client's screen, never into a result.
///
/// Sending never waits; what the client is too slow to take is dropped.
#[derive(Debug, Clone, Default)]
pub struct ProgressSink(Option<Arc<ProgressLine>>);

#[derive(Debug)]
struct ProgressLine {
    /// The token of the request, as raw JSON.
    token: Box<str>,
    out: mpsc::Sender<Vec<u8>>,
    /// The last value sent; `None` once the call has ended.
    last: Mutex<Option<u64>>,
}

impl ProgressSink {
    /// A sink for the request that gave this token (raw JSON).
    pub(crate) fn new(token: &str, out: mpsc::Sender<Vec<u8>>) -> Self {
        Self(Some(Arc::new(ProgressLine {
            token: token.into(),
            out,
            last: Mutex::new(Some(0)),
        })))
    }

    /// Whether the client asked for progress; nothing need be made for one that did not.
    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Sends a line of progress; each counts one step further. False when it was not taken.
    pub fn send(&self, message: &str) -> bool {
        let Some(line) = &self.0 else { return false };
        // The lock is held while sending so that values rise in the order they arrive.
        let mut last = line.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = last.map(|v| v + 1) else {
            return false;
        };
        let text = &message[..message.floor_char_boundary(MAX_PROGRESS_TEXT)];
        let sent = line
            .out
            .try_send(reply::progress(&line.token, value, text))
            .is_ok();
        if sent {
            *last = Some(value);
        }
        sent
    }

    /// The call is over: nothing may follow its answer.
    pub(crate) fn end(&self) {
        if let Some(line) = &self.0 {
            *line.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

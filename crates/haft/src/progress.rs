//! Progress: the live channel, for screens only; lossy if no screen reads, never part of the history.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::call::{CallId, RunId};
use crate::clock;
use crate::future::BoxFuture;
use crate::json::escape;
use haft_types::opaque_debug;

mod fan;
mod guarded;
mod held;
pub mod hub;
mod live;

pub(crate) use fan::Tee;
pub(crate) use live::{LiveOutput, LiveOutputGuard};

/// The stream that a piece of progress belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressStream {
    /// A command's standard output.
    Stdout,
    /// A command's standard error.
    Stderr,
    /// Messages about the work.
    Info,
}

impl ProgressStream {
    /// Returns the name of the stream.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Info => "info",
        }
    }
}

/// A piece of progress of a call. Serialised as contract §6 defines it, with the type `tool_progress`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressEvent {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The text, shared by all readers.
    pub text: Arc<str>,
    /// The bytes that the text represents, if they differ from it. Never serialised.
    pub bytes: Option<Bytes>,
    /// Its stream.
    pub stream: ProgressStream,
    /// The position of the piece in its stream, in bytes. If a call continues what another call showed, it continues its offsets; a
    /// gap means that bytes were left out.
    pub offset: u64,
    /// Whether this is the stream's last piece for this call.
    pub closed: bool,
    /// Time in nanoseconds since 1970, UTC.
    pub at: i128,
}

impl Serialize for ProgressEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_struct("ProgressEvent", 8)?;
        event.serialize_field("type", "tool_progress")?;
        event.serialize_field("run", &self.run)?;
        event.serialize_field("tool_call_id", &self.call)?;
        event.serialize_field("text", &self.text)?;
        event.serialize_field("stream", &self.stream)?;
        event.serialize_field("closed", &self.closed)?;
        event.serialize_field("ts", &clock::rfc3339(self.at))?;
        event.serialize_field("offset", &self.offset)?;
        event.end()
    }
}

impl ProgressEvent {
    /// Returns the bytes that the piece represents.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Appends its JSON form, like serialising does. Most of the text needs no escapes and is copied eight bytes at a time.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"tool_progress\",\"run\":");
        escape::string(out, self.run.as_str());
        out.extend_from_slice(b",\"tool_call_id\":");
        escape::string(out, self.call.as_str());
        out.extend_from_slice(b",\"text\":");
        escape::string(out, &self.text);
        out.extend_from_slice(b",\"stream\":");
        escape::string(out, self.stream.as_str());
        let rest = format!(
            ",\"closed\":{},\"ts\":\"{}\",\"offset\":{}}}",
            self.closed,
            clock::rfc3339(self.at),
            self.offset
        );
        out.extend_from_slice(rest.as_bytes());
    }
}

/// How live output is batched, so that a flood becomes few events; whichever limit is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Maximum time to batch; zero for none.
    pub gather: Duration,
    /// Maximum number of bytes to batch. A reader that keeps up receives a batch as soon as it has this many; a slower one receives
    /// longer texts.
    pub bytes: usize,
}

impl Default for Pace {
    /// 50 ms or 16 KiB (contract §6).
    fn default() -> Self {
        Self {
            gather: Duration::from_millis(50),
            bytes: 16 << 10,
        }
    }
}

/// A receiver that shows progress. It must not block: a slow screen merges or drops pieces.
pub trait ProgressSink: Send + Sync {
    /// Receives a piece.
    fn progress(&self, event: ProgressEvent);

    /// Returns whether it passes on every byte of a command's output, as a pipe does: the command then waits for [`room`](Self::room), and
    /// nothing is left out. False by default.
    fn is_exact(&self) -> bool {
        false
    }

    /// Completes when it can take more; dropping the future loses nothing. By default it completes immediately.
    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

opaque_debug!(ProgressSink);

/// A tool's handle on the live channel of its call.
#[derive(Debug, Clone)]
pub struct Progress {
    live: Option<Arc<LiveOutput>>,
    pace: Pace,
}

impl Progress {
    /// Creates the handle of a call, with or without a listener.
    pub(crate) fn new(live: Option<Arc<LiveOutput>>, pace: Pace) -> Self {
        Self { live, pace }
    }

    /// Returns whether there is a listener; if not, a tool may skip producing text.
    pub fn is_watched(&self) -> bool {
        self.live.is_some()
    }

    /// Returns whether every byte counts: see [`ProgressSink::is_exact`].
    pub fn is_exact(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.sink().is_exact())
    }

    /// Completes when the listener can take more.
    pub async fn room(&self) {
        if let Some(live) = &self.live {
            live.sink().room().await;
        }
    }

    /// Returns how a tool should batch what it sends.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Sends the next piece of a stream.
    pub fn send(&self, stream: ProgressStream, text: impl Into<Arc<str>>) {
        self.emit(stream, None, StreamChunk::from(text.into()));
    }

    /// Sends a piece at this byte offset of its stream: for a stream that an earlier call started, or whose bytes differ from the
    /// text.
    pub fn send_at(&self, stream: ProgressStream, offset: u64, piece: impl Into<StreamChunk>) {
        self.emit(stream, Some(offset), piece.into());
    }

    /// Sends a message about the work, as a line.
    pub fn info(&self, text: impl Into<String>) {
        let mut line: String = text.into();
        if !line.ends_with('\n') {
            line.push('\n');
        }
        self.send(ProgressStream::Info, line);
    }

    /// Ends a stream. Streams that a tool does not close are closed when its call ends.
    pub fn close(&self, stream: ProgressStream) {
        if let Some(live) = &self.live {
            live.close(stream);
        }
    }

    fn emit(&self, stream: ProgressStream, offset: Option<u64>, piece: StreamChunk) {
        if let Some(live) = &self.live {
            live.send(stream, offset, piece);
        }
    }
}

/// A piece of a stream: its text, and its bytes if they differ.
#[derive(Debug, Clone)]
pub struct StreamChunk {
    /// The text.
    pub text: Arc<str>,
    /// The bytes that the text represents, if they differ from it.
    pub bytes: Option<Bytes>,
}

impl StreamChunk {
    fn length(&self) -> usize {
        self.bytes.as_ref().map_or(self.text.len(), Bytes::len)
    }
}

impl From<Arc<str>> for StreamChunk {
    fn from(text: Arc<str>) -> Self {
        Self { text, bytes: None }
    }
}

impl From<String> for StreamChunk {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<&str> for StreamChunk {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

#[cfg(test)]
mod tests;

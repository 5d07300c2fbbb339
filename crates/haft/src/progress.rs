//! Progress: the live channel for screens alone; lossy when nobody reads, never in history.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::call::{CallId, RunId};
use crate::clock;
use crate::future::BoxFuture;
use crate::json::escape;
use crate::opaque::opaque_debug;

mod fan;
mod guarded;
mod held;
pub mod hub;
mod live;

pub(crate) use fan::Fan;
pub(crate) use live::{Live, LiveEnd};

/// Which stream a piece of progress belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// A command's standard output.
    Stdout,
    /// A command's standard error.
    Stderr,
    /// Words about the work.
    Info,
}

impl Stream {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Info => "info",
        }
    }
}

/// One piece of progress of one call. Serialised as contract §6 has it, with the type `tool_progress`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressEvent {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The text: one for all readers.
    pub text: Arc<str>,
    /// The bytes that it stands for, where it is not exactly them. Never serialised.
    pub bytes: Option<Bytes>,
    /// Its stream.
    pub stream: Stream,
    /// The bytes of the stream before it. Where one call goes on with what another showed, it goes on from there; a gap
    /// is what was left out.
    pub offset: u64,
    /// The stream's last piece, for this call.
    pub closed: bool,
    /// Nanoseconds since 1970, UTC.
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
    /// The bytes that it stands for.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Writes what serialising it gives. Most of it is text that stays as it is, and goes over eight bytes at a time.
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

/// How live output is gathered, so that a flood becomes few events: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long; zero is at once.
    pub gather: Duration,
    /// How many bytes. A reader that keeps up hears of so many as soon as they are there; one that does not gets longer
    /// texts.
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

/// Whoever shows progress. Must not block: a slow screen merges or drops.
pub trait ProgressSink: Send + Sync {
    /// Takes one piece.
    fn progress(&self, event: ProgressEvent);

    /// Whether it passes on every byte of a command's output, as a pipe does: the command waits for [`room`](Self::room) then, and
    /// nothing is left out. False by default.
    fn is_exact(&self) -> bool {
        false
    }

    /// Completes when it can take more; dropping it loses nothing. At once by default.
    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

opaque_debug!(ProgressSink);

/// A tool's handle on the live channel of its call.
#[derive(Debug, Clone)]
pub struct Progress {
    live: Option<Arc<Live>>,
    pace: Pace,
}

impl Progress {
    /// The handle of a call that somebody watches, or nobody.
    pub(crate) fn new(live: Option<Arc<Live>>, pace: Pace) -> Self {
        Self { live, pace }
    }

    /// Whether anybody listens; a tool may skip the work of making text otherwise.
    pub fn is_watched(&self) -> bool {
        self.live.is_some()
    }

    /// Whether every byte counts: see [`ProgressSink::is_exact`].
    pub fn is_exact(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.sink().is_exact())
    }

    /// Completes when whoever listens can take more.
    pub async fn room(&self) {
        if let Some(live) = &self.live {
            live.sink().room().await;
        }
    }

    /// How a tool is to gather what it sends.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Shows a piece of a stream: what follows the piece before it.
    pub fn send(&self, stream: Stream, text: impl Into<Arc<str>>) {
        self.emit(stream, None, Piece::from(text.into()));
    }

    /// Shows a piece that stands at this byte of its stream: of one that an earlier call began to show, or whose bytes
    /// are not those of the text.
    pub fn send_at(&self, stream: Stream, offset: u64, piece: impl Into<Piece>) {
        self.emit(stream, Some(offset), piece.into());
    }

    /// Shows words about the work: a line.
    pub fn info(&self, text: impl Into<String>) {
        let mut line: String = text.into();
        if !line.ends_with('\n') {
            line.push('\n');
        }
        self.send(Stream::Info, line);
    }

    /// Says that a stream has ended. What a tool does not close is closed when its call ends.
    pub fn close(&self, stream: Stream) {
        if let Some(live) = &self.live {
            live.close(stream);
        }
    }

    fn emit(&self, stream: Stream, offset: Option<u64>, piece: Piece) {
        if let Some(live) = &self.live {
            live.send(stream, offset, piece);
        }
    }
}

/// A piece of a stream: its text, and the bytes where those are another thing.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The text.
    pub text: Arc<str>,
    /// The bytes that it stands for, where it is not exactly them.
    pub bytes: Option<Bytes>,
}

impl Piece {
    fn length(&self) -> usize {
        self.bytes.as_ref().map_or(self.text.len(), Bytes::len)
    }
}

impl From<Arc<str>> for Piece {
    fn from(text: Arc<str>) -> Self {
        Self { text, bytes: None }
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

#[cfg(test)]
mod tests;

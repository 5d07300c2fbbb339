//! Progress: the live channel for screens alone; lossy when nobody reads, never in history.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::call::{CallId, RunId};
use crate::clock;

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

/// One piece of progress of one call.
#[derive(Debug, Clone)]
pub struct ProgressEvent {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The text.
    pub text: String,
    /// Its stream.
    pub stream: Stream,
    /// The stream's last piece.
    pub closed: bool,
    /// Nanoseconds since 1970, UTC.
    pub at: i128,
}

/// How live output is gathered, so that a flood becomes few events: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long.
    pub gather: Duration,
    /// How many bytes; also the longest text of one event.
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
pub trait ProgressSink: Send + Sync + std::fmt::Debug {
    /// Takes one piece.
    fn progress(&self, event: ProgressEvent);
}

/// A tool's handle on the live channel of its call.
#[derive(Debug, Clone)]
pub struct Progress {
    pub(crate) run: RunId,
    pub(crate) call: CallId,
    pub(crate) sink: Option<Arc<dyn ProgressSink>>,
    pub(crate) pace: Pace,
}

impl Progress {
    /// Whether anybody listens; a tool may skip the work of making text otherwise.
    pub fn is_watched(&self) -> bool {
        self.sink.is_some()
    }

    /// How a tool is to gather what it sends.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Shows a piece of a stream.
    pub fn send(&self, stream: Stream, text: impl Into<String>) {
        self.emit(stream, text.into(), false);
    }

    /// Shows words about the work.
    pub fn info(&self, text: impl Into<String>) {
        self.send(Stream::Info, text);
    }

    /// Says that a stream has ended.
    pub fn close(&self, stream: Stream) {
        self.emit(stream, String::new(), true);
    }

    fn emit(&self, stream: Stream, text: String, closed: bool) {
        if let Some(sink) = &self.sink {
            let (run, call) = (self.run.clone(), self.call.clone());
            sink.progress(ProgressEvent {
                run,
                call,
                text,
                stream,
                closed,
                at: clock::now(),
            });
        }
    }
}

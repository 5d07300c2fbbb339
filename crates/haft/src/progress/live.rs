//! `LiveOutput`: the watched streams of a call: the offset of each, and that each is closed once.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::call::{CallId, RunId};
use crate::clock;
use crate::progress::guarded::GuardedSink;
use crate::progress::{ProgressEvent, ProgressSink, ProgressStream, StreamChunk};

/// The streams in the order in which they are closed: messages last.
const ALL: [ProgressStream; 3] = [
    ProgressStream::Stdout,
    ProgressStream::Stderr,
    ProgressStream::Info,
];

/// A call's side of the live channel.
#[derive(Debug)]
pub(crate) struct LiveOutput {
    run: RunId,
    call: CallId,
    sink: GuardedSink,
    streams: Mutex<[StreamState; ALL.len()]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct StreamState {
    offset: u64,
    begun: bool,
    closed: bool,
}

impl LiveOutput {
    pub(crate) fn new(run: RunId, call: CallId, sink: Arc<dyn ProgressSink>) -> Arc<Self> {
        let streams = Mutex::default();
        Arc::new(Self {
            run,
            call,
            sink: GuardedSink::new(sink),
            streams,
        })
    }

    /// Returns the sink that receives its events.
    pub(super) fn sink(&self) -> &dyn ProgressSink {
        &self.sink
    }

    pub(super) fn send(&self, stream: ProgressStream, offset: Option<u64>, piece: StreamChunk) {
        let mut streams = self.lock();
        let shown = &mut streams[stream as usize];
        if shown.closed || piece.text.is_empty() {
            return;
        }
        let offset = offset.unwrap_or(shown.offset);
        shown.offset = offset + piece.length() as u64;
        shown.begun = true;
        // Locked while sending, so that pieces arrive in the order of their offsets.
        self.emit(stream, offset, piece, false);
    }

    pub(super) fn close(&self, stream: ProgressStream) {
        let mut streams = self.lock();
        let shown = &mut streams[stream as usize];
        if !shown.closed {
            shown.closed = true;
            self.emit(stream, shown.offset, StreamChunk::from(""), true);
        }
    }

    /// Closes started streams that are still open; nothing is sent from now on.
    fn end(&self) {
        let mut streams = self.lock();
        for stream in ALL {
            let shown = &mut streams[stream as usize];
            let open = shown.begun && !shown.closed;
            shown.closed = true;
            if open {
                self.emit(stream, shown.offset, StreamChunk::from(""), true);
            }
        }
    }

    fn emit(&self, stream: ProgressStream, offset: u64, piece: StreamChunk, closed: bool) {
        let (run, call) = (self.run.clone(), self.call.clone());
        let StreamChunk { text, bytes } = piece;
        self.sink.progress(ProgressEvent {
            run,
            call,
            text,
            bytes,
            stream,
            offset,
            closed,
            at: clock::now(),
        });
    }

    fn lock(&self) -> MutexGuard<'_, [StreamState; ALL.len()]> {
        self.streams.lock()
    }
}

/// Held while a call runs: closes its streams however it ends, even if it is dropped.
#[derive(Debug)]
pub(crate) struct LiveOutputGuard(pub(crate) Option<Arc<LiveOutput>>);

impl Drop for LiveOutputGuard {
    fn drop(&mut self) {
        if let Some(live) = &self.0 {
            live.end();
        }
    }
}

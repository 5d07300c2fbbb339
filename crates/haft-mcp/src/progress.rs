//! A call's progress on its way to the client that asked for it: rising values, nothing after the answer.

use std::sync::{Mutex, PoisonError};

use haft::progress::{ProgressEvent, ProgressSink};
use tokio::sync::mpsc;

use crate::wire::reply;

/// The longest message sent, in bytes: one flush of a tool's output (`progress.flush_bytes`).
const MAX_TEXT: usize = 16 * 1024;

/// Sends progress for one request. Never waits: what the client is too slow to take is dropped.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    /// The request's token, as raw JSON.
    token: Box<str>,
    out: mpsc::Sender<Vec<u8>>,
    /// The last value sent; `None` once the call has ended.
    last: Mutex<Option<u64>>,
}

impl ProgressLine {
    pub(crate) fn new(token: Box<str>, out: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            token,
            out,
            last: Mutex::new(Some(0)),
        }
    }

    /// The call is over: nothing may follow its answer.
    pub(crate) fn end(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl ProgressSink for ProgressLine {
    fn progress(&self, event: ProgressEvent) {
        if event.text.is_empty() {
            return;
        }
        let text = &event.text[..event.text.floor_char_boundary(MAX_TEXT)];
        // The lock is held while sending so that values rise in the order they arrive.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = last.map(|v| v + 1) else {
            return;
        };
        let message = reply::progress(&self.token, value, text);
        if self.out.try_send(message).is_ok() {
            *last = Some(value);
        }
    }
}

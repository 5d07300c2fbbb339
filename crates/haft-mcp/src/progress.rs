//! A call's progress on its way to the client that asked for it: rising values, nothing after the answer.

use std::sync::{Mutex, PoisonError};

use haft::progress::{ProgressEvent, ProgressSink};
use tokio::sync::mpsc;

use crate::wire::reply;

/// The longest message sent, in bytes; a longer text goes out in several.
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
        // The lock is held while sending so that values rise in the order they arrive.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = event.text.as_str();
        while !rest.is_empty() {
            let Some(value) = last.map(|v| v + 1) else {
                return;
            };
            let (text, more) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
            if self
                .out
                .try_send(reply::progress(&self.token, value, text))
                .is_ok()
            {
                *last = Some(value);
            }
            rest = more;
        }
    }
}

#[cfg(test)]
mod tests {
    use haft::call::{CallId, RunId};
    use haft::progress::Stream;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_text_over_the_longest_message_goes_out_in_several() {
        let (out, mut sent) = mpsc::channel(8);
        let line = ProgressLine::new("7".into(), out);
        let text = "é".repeat(MAX_TEXT);
        line.progress(ProgressEvent {
            run: RunId::generate(),
            call: CallId::new("1"),
            text: text.clone(),
            stream: Stream::Stdout,
            offset: 0,
            closed: false,
            at: 0,
        });
        line.end();
        let mut got = String::new();
        while let Ok(message) = sent.try_recv() {
            let message: Value = serde_json::from_slice(&message).unwrap();
            let piece = message["params"]["message"].as_str().unwrap().to_owned();
            assert!(piece.len() <= MAX_TEXT);
            got.push_str(&piece);
        }
        assert_eq!(got, text);
    }
}

//! `ProgressLine`: a call's progress for a client that asked for it: increasing values, nothing after the answer.

use std::convert::Infallible;
use std::time::Duration;

use haft::progress::hub::Listener;
use haft::progress::{ProgressEvent, ProgressStream};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use crate::wire::reply;

/// Maximum length of a message, in bytes; a longer text is sent in several.
const MAX_TEXT: usize = 16 * 1024;
/// How long an answer waits for a client that has not received the progress before it.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the progress of one request.
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

    /// Passes on what the call reports. Waits for a slow client here, where it does not delay the tool; what is reported
    /// meanwhile is collected.
    pub(crate) async fn follow(&self, listener: &mut Listener) -> Infallible {
        loop {
            let event = listener.next().await;
            self.show(&event).await;
        }
    }

    /// Ends the progress: sends what the call reported last, and allows nothing after its answer.
    pub(crate) async fn end(&self, mut listener: Listener) {
        let rest = async {
            while let Some(event) = listener.rest() {
                self.show(&event).await;
            }
        };
        let _late = tokio::time::timeout(FLUSH_TIMEOUT, rest).await;
        *self.last() = None;
    }

    /// Sends a text if the client has room for it now.
    pub(crate) fn say(&self, text: &str) {
        if let Ok(room) = self.out.try_reserve() {
            self.send(room, text);
        }
    }

    async fn show(&self, event: &ProgressEvent) {
        let mut rest = match event.stream {
            // A message is displayed as a line of its own.
            ProgressStream::Info => event.text.trim_end_matches('\n'),
            ProgressStream::Stdout | ProgressStream::Stderr => &event.text,
        };
        while !rest.is_empty() {
            let Ok(room) = self.out.reserve().await else {
                return;
            };
            let (text, more) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
            self.send(room, text);
            rest = more;
        }
    }

    fn send(&self, room: mpsc::Permit<'_, Vec<u8>>, text: &str) {
        // The lock is held while sending, so that values arrive in increasing order.
        let mut last = self.last();
        if let Some(value) = last.map(|value| value + 1) {
            room.send(reply::progress(&self.token, value, text));
            *last = Some(value);
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<u64>> {
        self.last.lock()
    }
}

#[cfg(test)]
mod tests {
    use haft::call::{CallId, RunId};
    use haft::progress::hub::Hub;
    use haft::progress::{Pace, ProgressSink};
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn a_text_over_the_longest_message_goes_out_in_several_to_a_client_however_slow() {
        let (out, mut sent) = mpsc::channel(1);
        let line = ProgressLine::new("7".into(), out);
        let hub = Hub::new(Pace::default());
        let listener = hub.listen(None);
        let text = "é".repeat(MAX_TEXT);
        hub.progress(ProgressEvent {
            run: RunId::generate(),
            call: CallId::new("1"),
            text: text.as_str().into(),
            bytes: None,
            stream: ProgressStream::Stdout,
            offset: 0,
            closed: false,
            at: 0,
        });
        let reading = tokio::spawn(async move {
            let (mut got, mut value) = (String::new(), 0);
            while let Some(message) = sent.recv().await {
                let message: Value = serde_json::from_slice(&message).unwrap();
                let piece = message["params"]["message"].as_str().unwrap().to_owned();
                value += 1;
                assert!(piece.len() <= MAX_TEXT);
                assert_eq!(message["params"]["progress"], value);
                got.push_str(&piece);
            }
            got
        });
        line.end(listener).await;
        line.say("too late");
        drop(line);
        assert_eq!(reading.await.unwrap(), text);
    }
}

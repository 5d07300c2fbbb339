//! `Replies`: this server's requests to its client, and their answers: each id is unique, and each request is answered at most once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::wire::{RequestId, reply};

/// An answer from the client.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The result as received; `None` if the client returned an error.
    pub(crate) result: Option<Box<RawValue>>,
    /// The error as received.
    pub(crate) error: Option<Box<RawValue>>,
    /// Whether it came with the operator's token.
    pub(crate) operator: bool,
}

/// The requests without an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    last: AtomicU64,
    open: Mutex<HashMap<RequestId, oneshot::Sender<Reply>>>,
}

/// A request that awaits its answer; dropping it stops the wait.
#[derive(Debug)]
pub(crate) struct ReplyReceiver {
    replies: Arc<Replies>,
    pub(crate) id: RequestId,
    answer: oneshot::Receiver<Reply>,
}

impl Replies {
    /// Returns a new id with the receiver for its answer.
    pub(crate) fn expect(self: &Arc<Self>) -> Option<ReplyReceiver> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let id = RequestId::parse(&format!("\"haft-{number}\""))?;
        let (sender, answer) = oneshot::channel();
        self.lock().insert(id.clone(), sender);
        Some(ReplyReceiver {
            replies: Arc::clone(self),
            id,
            answer,
        })
    }

    /// Delivers an answer to whoever awaits it; a second one is ignored.
    pub(crate) fn take(&self, id: &RequestId, reply: Reply) {
        if let Some(waiting) = self.lock().remove(id) {
            let _gone = waiting.send(reply);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Reply>>> {
        self.open.lock()
    }
}

impl ReplyReceiver {
    /// Returns the answer. Dropping the future loses nothing.
    pub(crate) async fn answer(&mut self) -> Option<Reply> {
        (&mut self.answer).await.ok()
    }
}

impl ReplyReceiver {
    /// Returns whether the answer has arrived, taken or not.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.replies.lock().contains_key(&self.id)
    }
}

impl Drop for ReplyReceiver {
    fn drop(&mut self) {
        self.replies.lock().remove(&self.id);
    }
}

/// A request that was sent to a client. If it is dropped before its answer arrives, the client is told.
pub(crate) struct OwnRequest<'a> {
    expected: ReplyReceiver,
    notes: &'a mpsc::Sender<Vec<u8>>,
}

impl<'a> OwnRequest<'a> {
    /// Sends the message that `write` makes for a new id; `None` if it cannot be sent.
    pub(crate) async fn send(
        replies: &Arc<Replies>,
        notes: &'a mpsc::Sender<Vec<u8>>,
        write: impl FnOnce(&RequestId) -> Vec<u8>,
    ) -> Option<Self> {
        let expected = replies.expect()?;
        let message = write(&expected.id);
        let sent = Self { expected, notes };
        notes.send(message).await.ok()?;
        Some(sent)
    }

    /// Returns the answer; `None` if the client is gone. Dropping the future loses nothing.
    pub(crate) async fn answer(&mut self) -> Option<Reply> {
        tokio::select! {
            answer = self.expected.answer() => answer,
            () = self.notes.closed() => None,
        }
    }
}

impl Drop for OwnRequest<'_> {
    fn drop(&mut self) {
        if !self.expected.has_arrived() {
            let id = self.expected.id.as_str();
            let params =
                format!("{{\"requestId\":{id},\"reason\":\"no answer is needed any more\"}}");
            let cancellation = reply::notification("notifications/cancelled", Some(&params));
            // A client that reads nothing need not know.
            let _full = self.notes.try_send(cancellation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_reaches_its_request_once_and_a_strange_one_nobody() {
        let replies = Arc::new(Replies::default());
        let mut one = replies.expect().unwrap();
        let two = replies.expect().unwrap();
        assert_ne!(one.id, two.id);
        let reply = |operator| Reply {
            result: None,
            error: None,
            operator,
        };
        replies.take(&RequestId::parse("\"haft-9\"").unwrap(), reply(false));
        replies.take(&one.id, reply(true));
        replies.take(&one.id, reply(false));
        assert!(one.answer().await.unwrap().operator);
        drop(two);
        assert!(replies.lock().is_empty());
    }
}

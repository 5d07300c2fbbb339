//! `Outbox`: messages queued for the client, in order and limited in bytes. Senders do not wait.

use std::collections::VecDeque;
use std::sync::Arc;

use haft::CancellationToken;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use crate::limits::UNREAD;

/// The messages queued for the client. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbox(Arc<OutboxState>);

#[derive(Debug, Default)]
struct OutboxState {
    queue: Mutex<OutboxQueue>,
    more: Notify,
    /// Notifies when messages were taken.
    less: Notify,
    /// Cancelled when the client counts as disconnected.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct OutboxQueue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether no more messages will come.
    is_finished: bool,
}

impl Outbox {
    /// Sends a message. A client that leaves too many unread counts as disconnected.
    pub(crate) fn send(&self, message: &Value) {
        let line = message.to_string().into_bytes();
        let mut queue = self.0.queue.lock();
        queue.bytes += line.len();
        if queue.bytes > UNREAD {
            queue.lines.clear();
            self.0.closed.cancel();
            return;
        }
        queue.lines.push_back(line);
        drop(queue);
        self.0.more.notify_one();
    }

    /// Waits until the client has read most of what was sent.
    pub(crate) async fn room(&self) {
        loop {
            let less = self.0.less.notified();
            if self.0.queue.lock().bytes < UNREAD / 2 {
                return;
            }
            tokio::select! {
                () = less => {}
                () = self.0.closed.cancelled() => return,
            }
        }
    }

    /// Marks the client as disconnected.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }

    /// Returns the token that is cancelled when the client counts as disconnected.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    /// Marks the end of the messages: [`pump`](Self::pump) returns once the queue is empty.
    pub(crate) fn finish(&self) {
        self.0.queue.lock().is_finished = true;
        self.0.more.notify_one();
    }

    /// Forwards the messages until there are no more, or the other side stops taking them.
    pub(crate) async fn pump(self, out: mpsc::Sender<Vec<u8>>) {
        loop {
            let more = self.0.more.notified();
            let (line, is_finished) = {
                let mut queue = self.0.queue.lock();
                let line = queue.lines.pop_front();
                queue.bytes -= line.as_ref().map_or(0, Vec::len).min(queue.bytes);
                (line, queue.is_finished)
            };
            self.0.less.notify_waiters();
            match line {
                Some(line) => {
                    if out.send(line).await.is_err() {
                        return self.close();
                    }
                }
                None if is_finished => return,
                None => tokio::select! {
                    () = more => {}
                    () = out.closed() => return self.close(),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn messages_go_out_in_order_and_a_client_that_reads_none_counts_as_gone() {
        let outbox = Outbox::default();
        let (out, mut lines) = mpsc::channel(1);
        let pump = tokio::spawn(outbox.clone().pump(out));
        for number in 0..20 {
            outbox.send(&json!(number));
        }
        outbox.finish();
        let mut numbers = Vec::new();
        while let Some(line) = lines.recv().await {
            numbers.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(numbers, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
        pump.await.unwrap();
        assert!(!outbox.closed().is_cancelled());

        let large = json!("x".repeat(UNREAD / 4));
        for _ in 0..4 {
            outbox.send(&large);
        }
        assert!(outbox.closed().is_cancelled());
    }
}

//! `AwaitedResponses`: the requests that wait for their answers on one shared stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use haft::progress::Progress;
use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot, watch};

use crate::client::error::ClientError;
use crate::client::respond::Inquiry;
use crate::client::server_change::{ChangeBroadcast, ServerChange};
use crate::client::speech::{self, ServerMessage, ServerRequest};
use crate::client::wire::WireRequest;

/// The answer to a request: the whole message.
pub(crate) type ResponseReceiver = oneshot::Receiver<Result<Bytes, ClientError>>;

/// The requests in progress on a stream, and the state of the stream.
pub(crate) struct AwaitedResponses {
    entries: Mutex<HashMap<u64, AwaitedResponse>>,
    open: AtomicBool,
    bulletin: ChangeBroadcast,
    /// Receives what belongs to no call.
    no_call: Arc<Inquiry>,
}

struct AwaitedResponse {
    answer: oneshot::Sender<Result<Bytes, ClientError>>,
    progress: Option<Progress>,
    inquiry: Arc<Inquiry>,
}

impl AwaitedResponses {
    pub(crate) fn new() -> Self {
        Self {
            entries: Mutex::default(),
            open: AtomicBool::new(true),
            bulletin: ChangeBroadcast::new(),
            no_call: Arc::new(Inquiry::new(None)),
        }
    }

    /// Registers a request that is about to be sent.
    pub(crate) fn begin(&self, ask: &mut WireRequest<'_>) -> ResponseReceiver {
        let (answer, answered) = oneshot::channel();
        let entry = AwaitedResponse {
            answer,
            progress: ask.progress.take(),
            inquiry: Arc::clone(&ask.inquiry),
        };
        self.entries.lock().insert(ask.id, entry);
        answered
    }

    /// Removes a request; returns whether it was still waiting.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.entries.lock().remove(&id).is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Returns a counter of the changes to the server's list of tools.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.bulletin.list_changes()
    }

    /// Returns all news from the server, from now on.
    pub(crate) fn news(&self) -> broadcast::Receiver<ServerChange> {
        self.bulletin.listen()
    }

    /// Marks the stream as ended: all requests in progress fail.
    pub(crate) fn end(&self) {
        self.open.store(false, Ordering::Release);
        let entries = std::mem::take(&mut *self.entries.lock());
        for (_, entry) in entries {
            let said = String::new();
            let _gone = entry.answer.send(Err(ClientError::Closed { said }));
        }
        self.bulletin.post(ServerChange::Over);
    }

    /// Handles a message. Returns a server's request along with the call that it is for.
    pub(crate) fn hear(&self, bytes: Bytes) -> Option<(Arc<Inquiry>, ServerRequest)> {
        match speech::hear(&bytes) {
            ServerMessage::Answer(id) => {
                // An answer without a waiting request, or a second one, is ignored.
                let entry = self.entries.lock().remove(&id);
                if let Some(entry) = entry {
                    let _gone = entry.answer.send(Ok(bytes));
                }
            }
            ServerMessage::Request(request) => {
                return Some((self.call_of_server_request(), request));
            }
            ServerMessage::News(news) => self.bulletin.post(news),
            ServerMessage::Progress(id, line) => {
                let progress = self
                    .entries
                    .lock()
                    .get(&id)
                    .and_then(|e| e.progress.clone());
                speech::pass_on(progress.as_ref(), line);
            }
            ServerMessage::Notification(method, params) => {
                self.call_of_server_request().hear(&method, params);
            }
            ServerMessage::Unread(id, why) => {
                let entry = self.entries.lock().remove(&id);
                if let Some(entry) = entry {
                    let _gone = entry.answer.send(Err(ClientError::Malformed(why)));
                }
            }
            ServerMessage::Nothing => {}
            ServerMessage::Garbage => tracing::debug!(
                bytes = bytes.len(),
                "a server sent something that is not a message"
            ),
        }
        None
    }

    /// Returns the call that a server's request is for. The request does not name its call, so if several are possible, it is for
    /// none.
    fn call_of_server_request(&self) -> Arc<Inquiry> {
        let entries = self.entries.lock();
        let mut able = entries.values().filter(|entry| entry.inquiry.can_respond());
        match (able.next(), able.next()) {
            (Some(one), None) => Arc::clone(&one.inquiry),
            _ => Arc::clone(&self.no_call),
        }
    }

    /// Fails the request that an overlong message answers, or all requests if the message does not say which.
    pub(crate) fn fail_overlong(&self, begin: &[u8], longest: usize) {
        let mut entries = self.entries.lock();
        let failed = match speech::id_in(begin).and_then(|id| entries.remove(&id)) {
            Some(one) => vec![one],
            None => entries.drain().map(|(_, entry)| entry).collect(),
        };
        for entry in failed {
            let _gone = entry.answer.send(Err(ClientError::TooLong(longest)));
        }
    }
}

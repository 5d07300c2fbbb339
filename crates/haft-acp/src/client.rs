//! `Client`: the other side: it receives updates and requests. A request is withdrawn when the call that made it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::outbox::Outbox;
use crate::rpc::{self, RpcError, RpcId};

/// The client's answer to a request.
type ClientReply = Result<Box<RawValue>, RpcError>;

/// The client at the other end. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    outbox: Outbox,
    parts: Arc<ClientState>,
}

#[derive(Debug, Default)]
struct ClientState {
    next: AtomicI64,
    waiting: Mutex<HashMap<RpcId, oneshot::Sender<ClientReply>>>,
}

/// A request that the client has not answered yet. Dropping it withdraws it.
pub(crate) struct OpenClientRequest<'a> {
    client: &'a Client,
    id: RpcId,
    answer: oneshot::Receiver<ClientReply>,
}

impl Client {
    pub(crate) fn new(outbox: Outbox) -> Self {
        Self {
            outbox,
            parts: Arc::default(),
        }
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Sends an update about a session.
    pub(crate) fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.outbox
            .send(&rpc::notification("session/update", &params));
    }

    /// Sends a request.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> OpenClientRequest<'_> {
        let id = RpcId::Number(self.parts.next.fetch_add(1, Ordering::Relaxed));
        let (send, answer) = oneshot::channel();
        self.parts.waiting.lock().insert(id.clone(), send);
        self.outbox.send(&rpc::request(&id, method, params));
        OpenClientRequest {
            client: self,
            id,
            answer,
        }
    }

    /// Delivers an answer; drops it if the request was withdrawn.
    pub(crate) fn answered(&self, id: &RpcId, reply: ClientReply) {
        let waiting = self.parts.waiting.lock().remove(id);
        if let Some(waiting) = waiting {
            // The receiver may already be dropped.
            let _gone = waiting.send(reply);
        }
    }
}

impl OpenClientRequest<'_> {
    /// Waits for the answer; `None` if the client answers with an error.
    pub(crate) async fn answer(mut self) -> Option<Box<RawValue>> {
        let answer = (&mut self.answer).await;
        match answer {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                tracing::warn!(code = error.code, message = %error.message, "the client did not answer");
                None
            }
            Err(_) => None,
        }
    }
}

impl Drop for OpenClientRequest<'_> {
    fn drop(&mut self) {
        let waits = self.client.parts.waiting.lock().remove(&self.id).is_some();
        if waits {
            let params = json!({"requestId": self.id});
            let withdrawn = rpc::notification("$/cancel_request", &params);
            self.client.outbox.send(&withdrawn);
        }
    }
}

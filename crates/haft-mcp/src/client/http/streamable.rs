//! `Streamable`: Streamable HTTP: one POST per message, answered with JSON or an event stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::JoinHandle;

use super::listening;
use super::session::{NOTICE_TIMEOUT, StreamableSession};
use crate::client::courier::Courier;
use crate::client::error::ClientError;
use crate::client::server_change::ServerChange;
use crate::client::speech;
use crate::client::wire::WireRequest;
use crate::era::{Era, Revision};

/// Maximum time to wait for the server's own stream to open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// A server with Streamable HTTP.
pub(super) struct Streamable {
    session: Arc<StreamableSession>,
    /// Reads what the server sends besides its answers.
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Streamable {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

/// Tells a handshake-era server that a request was cancelled; in the stateless era, closing the stream does.
struct StreamableCancelGuard<'a> {
    session: &'a Arc<StreamableSession>,
    id: u64,
    era: Option<Era>,
    answered: bool,
}

impl Drop for StreamableCancelGuard<'_> {
    fn drop(&mut self) {
        let Some(era @ Era::Legacy(_)) = self.era else {
            return;
        };
        if self.answered {
            return;
        }
        let (session, id) = (Arc::clone(self.session), self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let tell = session.send_notification(speech::cancelled(id), era);
                let _gone = tokio::time::timeout(NOTICE_TIMEOUT, tell).await;
            });
        }
    }
}

impl Streamable {
    pub(super) fn new(courier: Arc<Courier>) -> Self {
        Self {
            session: Arc::new(StreamableSession::new(courier)),
            listening: Mutex::default(),
        }
    }

    pub(super) fn courier(&self) -> &Arc<Courier> {
        &self.session.courier
    }

    pub(super) fn list_changes(&self) -> watch::Receiver<u64> {
        self.session.bulletin.list_changes()
    }

    pub(super) fn news(&self) -> broadcast::Receiver<ServerChange> {
        self.session.bulletin.listen()
    }

    pub(super) async fn ask(&self, ask: WireRequest<'_>) -> Result<Bytes, ClientError> {
        let mut waiting = StreamableCancelGuard {
            session: &self.session,
            id: ask.id,
            era: ask.era,
            answered: false,
        };
        let answer = self.session.ask(ask).await;
        waiting.answered = true;
        answer
    }

    pub(super) async fn send_notification(
        &self,
        message: Vec<u8>,
        era: Era,
    ) -> Result<(), ClientError> {
        self.session.send_notification(message, era).await
    }

    /// Starts to read what a handshake-era server sends besides its answers. Messages sent before its stream is open are lost, so
    /// this waits briefly until it is.
    pub(super) async fn listen(&self, era: Era) {
        if era >= Revision::V2025_03_26 && !era.is_modern() {
            let (opened, open) = oneshot::channel();
            let wire = Arc::downgrade(&self.session);
            let listening = tokio::spawn(listening::listen(wire, era, opened));
            *self.listening.lock() = Some(listening);
            let _opened_or_not = tokio::time::timeout(OPEN_TIMEOUT, open).await;
        }
    }

    fn stop_listening(&self) {
        if let Some(listening) = self.listening.lock().take() {
            listening.abort();
        }
    }

    /// Ends the session, if there is one.
    pub(super) async fn leave(&self) {
        self.stop_listening();
        self.session.leave().await;
    }
}

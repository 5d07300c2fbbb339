//! `Wire`: carries a client's messages to a server.

use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft::progress::Progress;
use tokio::sync::{broadcast, watch};

use crate::client::error::ClientError;
use crate::client::respond::Inquiry;
use crate::client::server_change::ServerChange;
use crate::era::Era;

/// A request to be sent.
#[derive(Clone)]
pub struct WireRequest<'a> {
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    /// Headers that repeat arguments, by name.
    pub(crate) mirrored: &'a [(String, String)],
    /// `None` before the handshake.
    pub(crate) era: Option<Era>,
    /// The whole message.
    pub(crate) message: Vec<u8>,
    /// Receives the progress.
    pub(crate) progress: Option<Progress>,
    /// Answers what the server asks meanwhile.
    pub(crate) inquiry: Arc<Inquiry>,
}

impl std::fmt::Debug for WireRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireRequest")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// Carries messages to a server and its answers back.
pub trait Wire: Send + Sync {
    /// Sends a request and waits for the message that answers it. Dropping the future cancels the request.
    fn ask<'a>(&'a self, ask: WireRequest<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>>;

    /// Sends a notification.
    fn send_notification(
        &self,
        message: Vec<u8>,
        era: Era,
    ) -> BoxFuture<'_, Result<(), ClientError>>;

    /// Called once the server was greeted in this era; from now on, its own messages are read as well.
    fn begun(&self, _era: Era) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the kind of wire: `stdio`, `http` or `sse`.
    fn transport(&self) -> &'static str;

    /// Returns whether it is still open.
    fn is_open(&self) -> bool;

    /// Returns a counter of the changes to the server's list of tools.
    fn list_changes(&self) -> watch::Receiver<u64>;

    /// Returns all news from the server, from now on.
    fn news(&self) -> broadcast::Receiver<ServerChange>;

    /// Returns the end of the server's error output; empty if there is none.
    fn stderr_tail(&self) -> String;

    /// Returns whether a server that does not know `server/discover` may leave it unanswered.
    fn may_ignore_discover(&self) -> bool;

    /// Closes the wire and waits until the server has ended, if haft started it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

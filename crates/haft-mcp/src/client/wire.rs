//! `Wire`: what carries a client's messages.

use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft::progress::Progress;
use tokio::sync::{broadcast, watch};

use crate::client::error::ClientError;
use crate::client::news::News;
use crate::client::respond::Inquiry;
use crate::era::Era;

/// A request on its way.
#[derive(Clone)]
pub struct Ask<'a> {
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    /// Headers that repeat what stands in the arguments, by name.
    pub(crate) mirrored: &'a [(String, String)],
    /// None before the handshake.
    pub(crate) era: Option<Era>,
    /// The whole message.
    pub(crate) message: Vec<u8>,
    /// Who hears of progress.
    pub(crate) progress: Option<Progress>,
    /// Who answers what the server asks meanwhile.
    pub(crate) inquiry: Arc<Inquiry>,
}

impl std::fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// What carries messages to a server and its answers back.
pub trait Wire: Send + Sync {
    /// Sends a request and waits for the message that answers it. Dropping the future cancels the request.
    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>>;

    /// Sends a notification.
    fn tell(&self, message: Vec<u8>, era: Era) -> BoxFuture<'_, Result<(), ClientError>>;

    /// The server was greeted as one of this era; what it says by itself is heard from now on.
    fn begun(&self, _era: Era) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What it is: `stdio`, `http` or `sse`.
    fn transport(&self) -> &'static str;

    /// Whether it carries something still.
    fn is_open(&self) -> bool;

    /// Counts how often the server said that its list of tools has changed.
    fn list_changes(&self) -> watch::Receiver<u64>;

    /// All that the server tells of what it has, from now on.
    fn news(&self) -> broadcast::Receiver<News>;

    /// The end of what the server wrote for people; empty where nothing is known of that.
    fn last_words(&self) -> String;

    /// Whether a server behind it that knows no `server/discover` may stay silent about it.
    fn may_stay_silent(&self) -> bool;

    /// Closes it and waits until the server is gone, as far as it is haft's to end.
    fn close(&self) -> BoxFuture<'_, ()>;
}

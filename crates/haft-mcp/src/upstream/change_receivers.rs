//! `ChangeReceivers`: tells haft's clients about changes that a server behind haft reports.

use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::CancellationToken;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use crate::client::{ChangeStream, Client, ClientError, ServerChange, WantedNews};
use crate::offer::OfferChange;

/// Delay before a stream of changes that broke off is reopened; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Maximum delay.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The receivers of a server's reports: none until a gateway listens.
#[derive(Debug, Default)]
pub(crate) struct ChangeReceivers(Mutex<Vec<broadcast::WeakSender<OfferChange>>>);

impl ChangeReceivers {
    /// Adds this gateway as a receiver.
    pub(crate) fn send_changes_to(&self, out: &broadcast::Sender<OfferChange>) {
        let mut all = self.0.lock();
        let is_known = |one: broadcast::Sender<_>| one.same_channel(out);
        if !all.iter().any(|one| one.upgrade().is_some_and(is_known)) {
            all.retain(|one| one.upgrade().is_some());
            all.push(out.downgrade());
        }
    }

    /// Tells all clients; those that it does not concern ignore it.
    pub(crate) fn notify_all(&self, change: &OfferChange) {
        let all = self.0.lock().clone();
        for out in all.iter().filter_map(broadcast::WeakSender::upgrade) {
            // There may be no listeners.
            let _ = out.send(change.clone());
        }
    }

    /// Reports changes of lists for the life of a connection.
    pub(crate) async fn follow(self: Arc<Self>, client: Weak<Client>, over: CancellationToken) {
        let Some(mut news) = client.upgrade().map(|client| client.news()) else {
            return;
        };
        let mut streams = ListChangeStream::of(client);
        loop {
            let told = tokio::select! {
                told = news.recv() => told,
                () = over.cancelled() => return,
                () = streams.keep() => continue,
            };
            match told {
                Ok(ServerChange::Prompts) => self.notify_all(&OfferChange::Prompts),
                Ok(ServerChange::Resources) => self.notify_all(&OfferChange::Resources),
                Ok(ServerChange::Over) | Err(RecvError::Closed) => return,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    self.notify_all(&OfferChange::Prompts);
                    self.notify_all(&OfferChange::Resources);
                }
            }
        }
    }
}

/// The stream by which a stateless server reports changes of its lists, reopened if it breaks off.
struct ListChangeStream {
    client: Weak<Client>,
    now: Option<ChangeStream>,
    /// When to reopen it.
    again: Option<Instant>,
    pause: Duration,
}

impl ListChangeStream {
    fn of(client: Weak<Client>) -> Self {
        let mut streams = Self {
            client,
            now: None,
            again: None,
            pause: FIRST_PAUSE,
        };
        streams.open();
        streams
    }

    fn open(&mut self) {
        let client = self.client.upgrade();
        let client = client.filter(|client| client.era().is_modern() && client.server().tells());
        let wanted = WantedNews {
            lists: true,
            uris: &[],
        };
        self.now = client.map(|client| client.stream(&wanted));
    }

    /// Waits until the stream breaks off, or until it is reopened. Dropping the future loses nothing.
    async fn keep(&mut self) {
        if let Some(now) = &mut self.now {
            let error = now.ended().await;
            self.now = None;
            // Any other error means that the server has no such stream.
            if matches!(
                error,
                ClientError::Closed { .. } | ClientError::Unreachable(_)
            ) {
                tracing::debug!(%error, "a stream of changes broke off");
                self.again = Some(Instant::now() + self.pause);
                self.pause = (self.pause * 2).min(MAX_PAUSE);
            }
        } else if let Some(again) = self.again {
            sleep_until(again).await;
            self.again = None;
            self.open();
        } else {
            std::future::pending::<()>().await;
        }
    }
}

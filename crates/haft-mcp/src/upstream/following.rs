//! `UpstreamSubscriptions`: the resources of a server that clients follow. haft subscribes to each once at the server, however many clients
//! follow it, for as long as one of them does.
//!
//! While there are any, the connection is kept. If it breaks, it is reopened, all subscriptions are renewed, and clients are told
//! that each resource may have changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{ChangeStream, ClientError, ServerChange};
use crate::offer::OfferChange;
use crate::upstream::change_receivers::ChangeReceivers;
use crate::upstream::link::{LiveConnection, UpstreamLink};

/// Maximum number of resources of one server that are followed.
const MAX_RESOURCES: usize = 4096;
/// How long a resource without followers is still followed: another client, or the same one, may come.
const LINGER: Duration = Duration::from_secs(2);
/// Pause after a server's connection broke; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Maximum pause; a connection that lasted longer than this resets it.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// What is followed of a server.
#[derive(Debug)]
pub(crate) struct UpstreamSubscriptions {
    state: Mutex<SubscriptionsState>,
    /// Counts the changes of what is wanted.
    wishes: watch::Sender<u64>,
    pub(crate) herald: Arc<ChangeReceivers>,
}

#[derive(Debug)]
struct SubscriptionsState {
    link: Arc<UpstreamLink>,
    wanted: BTreeMap<Arc<str>, UpstreamSubscription>,
    /// Whether a task is running.
    is_kept: bool,
}

/// A resource that clients want to follow.
#[derive(Debug)]
struct UpstreamSubscription {
    leases: usize,
    /// The clients' addresses of it, with the number of clients for each.
    addresses: BTreeMap<Arc<str>, usize>,
    standing: watch::Sender<SubscriptionStatus>,
    /// Whether it may have changed while there was no connection.
    is_missed: bool,
    /// Since when no client has wanted it.
    left: Option<Instant>,
}

/// The server's answer to a wish.
#[derive(Debug, Clone)]
enum SubscriptionStatus {
    /// No answer yet.
    Open,
    /// It reports changes.
    Confirmed,
    Refused(ClientError),
}

/// One client's wish. Dropping it withdraws the wish.
#[derive(Debug)]
pub(crate) struct SubscriptionLease {
    following: Arc<UpstreamSubscriptions>,
    uri: Arc<str>,
    /// The client's address of it; a wish without one is reported to no client.
    address: Option<Arc<str>>,
}

impl UpstreamSubscriptions {
    pub(crate) fn new(link: Arc<UpstreamLink>, herald: Arc<ChangeReceivers>) -> Arc<Self> {
        let state = SubscriptionsState {
            link,
            wanted: BTreeMap::new(),
            is_kept: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            wishes: watch::Sender::new(0),
            herald,
        })
    }

    /// Adds a wish to follow the resource with this URI; `None` if too many are followed. Needs a tokio runtime.
    pub(crate) fn lease(
        self: &Arc<Self>,
        uri: &str,
        address: Option<&str>,
    ) -> Option<SubscriptionLease> {
        let mut state = self.state.lock();
        if state.wanted.len() >= MAX_RESOURCES && !state.wanted.contains_key(uri) {
            return None;
        }
        let (uri, address): (Arc<str>, Option<Arc<str>>) = (uri.into(), address.map(Into::into));
        let wish = state
            .wanted
            .entry(Arc::clone(&uri))
            .or_insert_with(UpstreamSubscription::new);
        wish.leases += 1;
        wish.left = None;
        if let Some(address) = &address {
            *wish.addresses.entry(Arc::clone(address)).or_default() += 1;
        }
        if !std::mem::replace(&mut state.is_kept, true) {
            tokio::spawn(keep(Arc::clone(self)));
        }
        drop(state);
        self.changed();
        Some(SubscriptionLease {
            following: Arc::clone(self),
            uri,
            address,
        })
    }

    /// Continues over this link once the connection of the other one has ended.
    pub(crate) fn resume_on(&self, link: &Arc<UpstreamLink>) {
        self.state.lock().link = Arc::clone(link);
        self.changed();
    }

    fn changed(&self) {
        self.wishes.send_modify(|count| *count += 1);
    }

    fn release(&self, lease: &SubscriptionLease) {
        let mut state = self.state.lock();
        let Some(wish) = state.wanted.get_mut(&lease.uri) else {
            return;
        };
        wish.leases = wish.leases.saturating_sub(1);
        if let Some(address) = &lease.address
            && let Some(count) = wish.addresses.get_mut(address)
        {
            *count -= 1;
            if *count == 0 {
                wish.addresses.remove(address);
            }
        }
        if wish.leases == 0 {
            wish.left = Some(Instant::now());
            if wish.is_refused() {
                state.wanted.remove(&lease.uri);
            }
        }
        drop(state);
        self.changed();
    }

    /// Returns whether nothing is wanted any more, in which case the task ends.
    fn rest(&self) -> bool {
        let mut state = self.state.lock();
        state.forget();
        state.is_kept = !state.wanted.is_empty();
        !state.is_kept
    }

    /// Returns when the next wish without clients ends.
    fn next_end(&self) -> Option<Instant> {
        let state = self.state.lock();
        let left = state.wanted.values().filter_map(|wish| wish.left);
        left.min().map(|left| left + LINGER)
    }

    /// Returns the wishes that have not been refused.
    fn wanted(&self) -> BTreeSet<Arc<str>> {
        let mut state = self.state.lock();
        state.forget();
        let open = state.wanted.iter().filter(|(_, wish)| !wish.is_refused());
        open.map(|(uri, _)| Arc::clone(uri)).collect()
    }

    /// Reopens all wishes that an earlier connection answered.
    fn reopen_all(&self) {
        let mut state = self.state.lock();
        for wish in state.wanted.values_mut().filter(|wish| !wish.is_open()) {
            wish.is_missed = true;
            wish.standing.send_replace(SubscriptionStatus::Open);
        }
    }

    /// Notes the server's answer to a wish. Followers of a renewed subscription may have missed a change, so they are told.
    fn note(&self, uri: &str, standing: SubscriptionStatus) {
        let is_missed = {
            let mut state = self.state.lock();
            let Some(wish) = state.wanted.get_mut(uri) else {
                return;
            };
            let stands = matches!(standing, SubscriptionStatus::Confirmed);
            wish.standing.send_replace(standing);
            stands && std::mem::take(&mut wish.is_missed)
        };
        if is_missed {
            self.report_change(uri);
        }
    }

    /// Refuses the wishes that the server has not answered.
    fn refuse_open(&self, error: &ClientError) {
        let state = self.state.lock();
        for wish in state.wanted.values().filter(|wish| wish.is_open()) {
            wish.standing
                .send_replace(SubscriptionStatus::Refused(error.clone()));
        }
    }

    /// Reports a change to a resource's clients. A change of a part counts as one of the whole.
    fn report_change(&self, uri: &str) {
        let state = self.state.lock();
        let addresses: Vec<_> = if let Some(wish) = state.wanted.get(uri) {
            wish.addresses.keys().cloned().collect()
        } else {
            let wholes = state.wanted.iter();
            let wholes = wholes.filter(|(whole, _)| is_part(whole, uri));
            let addresses = wholes.flat_map(|(_, wish)| wish.addresses.keys().cloned());
            addresses.collect()
        };
        drop(state);
        for address in addresses {
            self.herald.notify_all(&OfferChange::Updated(address));
        }
    }

    /// Reports a change of everything, when individual changes were missed.
    fn report_all_changed(&self) {
        for uri in self.wanted() {
            self.report_change(&uri);
        }
    }

    /// Maintains the subscriptions over one connection, until it ends or nothing is wanted.
    async fn set_attended(&self, link: &UpstreamLink, live: &Arc<LiveConnection>) {
        let mut news = live.client.news();
        let mut wishes = self.wishes.subscribe();
        let mut orders = ConnectionSubscriptions::default();
        self.reopen_all();
        loop {
            wishes.mark_unchanged();
            let wanted = self.wanted();
            if let Err(error) = orders.ask(self, live, &wanted).await {
                link.discard(live, &error).await;
                return;
            }
            if wanted.is_empty() {
                return;
            }
            let end = self.next_end();
            tokio::select! {
                _ = wishes.changed() => {}
                told = news.recv() => match told {
                    Ok(ServerChange::Updated(uri)) => self.report_change(&uri),
                    Ok(ServerChange::Over) | Err(RecvError::Closed) => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.report_all_changed(),
                },
                () = live.over.cancelled() => return,
                () = orders.ended() => return,
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => {}
            }
        }
    }
}

/// Returns whether a URI is of a part of another resource.
fn is_part(whole: &str, uri: &str) -> bool {
    let rest = uri.strip_prefix(whole);
    rest.is_some_and(|rest| {
        let begins = whole.ends_with('/') || rest.starts_with(['/', '?', '#']);
        begins && !rest.is_empty()
    })
}

impl SubscriptionsState {
    /// Removes the wishes that have had no clients for a while.
    fn forget(&mut self) {
        let is_over = |left: Option<Instant>| left.is_some_and(|left| left.elapsed() >= LINGER);
        self.wanted.retain(|_, wish| !is_over(wish.left));
    }
}

impl UpstreamSubscription {
    fn new() -> Self {
        Self {
            leases: 0,
            addresses: BTreeMap::new(),
            standing: watch::Sender::new(SubscriptionStatus::Open),
            is_missed: false,
            left: None,
        }
    }

    fn is_refused(&self) -> bool {
        matches!(*self.standing.borrow(), SubscriptionStatus::Refused(_))
    }

    fn is_open(&self) -> bool {
        matches!(*self.standing.borrow(), SubscriptionStatus::Open)
    }
}

impl SubscriptionLease {
    /// Waits for the server's answer to the wish.
    pub(crate) async fn wait_until_confirmed(&self) -> Result<(), ClientError> {
        let standing = {
            let state = self.following.state.lock();
            let wish = state.wanted.get(&self.uri);
            wish.map(|wish| wish.standing.subscribe())
        };
        let mut standing = standing.ok_or(ClientError::SessionOver)?;
        let settled = standing.wait_for(|now| !matches!(now, SubscriptionStatus::Open));
        match settled.await.as_deref() {
            Ok(SubscriptionStatus::Refused(error)) => Err(error.clone()),
            Ok(_) => Ok(()),
            Err(_) => Err(ClientError::SessionOver),
        }
    }
}

impl Drop for SubscriptionLease {
    fn drop(&mut self) {
        self.following.release(self);
    }
}

/// Maintains the subscriptions until nothing is wanted.
async fn keep(following: Arc<UpstreamSubscriptions>) {
    let mut pause = FIRST_PAUSE;
    while !following.rest() {
        let link = Arc::clone(&following.state.lock().link);
        let began = Instant::now();
        match link.open_connection().await {
            Ok(live) => following.set_attended(&link, &live).await,
            Err(error) => following.refuse_open(&error),
        }
        if began.elapsed() > MAX_PAUSE {
            pause = FIRST_PAUSE;
        }
        let mut wishes = following.wishes.subscribe();
        if following.rest() {
            return;
        }
        // A wish that arrives during the pause ends it, so that its client gets an answer at once.
        let _paused = timeout(pause, wishes.changed()).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// The subscriptions made over one connection.
#[derive(Debug, Default)]
struct ConnectionSubscriptions {
    uris: BTreeSet<Arc<str>>,
    /// The stream that reports them (stateless era).
    stream: Option<ChangeStream>,
}

impl ConnectionSubscriptions {
    /// Subscribes to what is newly wanted, and unsubscribes from what is no longer wanted.
    ///
    /// # Errors
    /// The connection is lost.
    async fn ask(
        &mut self,
        following: &UpstreamSubscriptions,
        live: &LiveConnection,
        wanted: &BTreeSet<Arc<str>>,
    ) -> Result<(), ClientError> {
        if *wanted == self.uris {
            return Ok(());
        }
        if live.client.era().is_modern() {
            return self.open(following, live, wanted).await;
        }
        for uri in wanted.difference(&self.uris.clone()) {
            match live.client.subscribe(uri, true).await {
                Ok(()) => {
                    self.uris.insert(Arc::clone(uri));
                    following.note(uri, SubscriptionStatus::Confirmed);
                }
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) => following.note(uri, SubscriptionStatus::Refused(error)),
            }
        }
        for uri in self.uris.clone().difference(wanted) {
            self.uris.remove(uri);
            match live.client.subscribe(uri, false).await {
                Err(error) if is_gone(&error) => return Err(error),
                // The server still reports the resource, but no one listens.
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Opens a stream for what is wanted, which then replaces the previous one.
    async fn open(
        &mut self,
        following: &UpstreamSubscriptions,
        live: &LiveConnection,
        wanted: &BTreeSet<Arc<str>>,
    ) -> Result<(), ClientError> {
        if wanted.is_empty() {
            *self = Self::default();
            return Ok(());
        }
        let uris: Vec<String> = wanted.iter().map(|uri| String::from(&**uri)).collect();
        let (stream, changes) = match live.client.follow(&uris).await {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Err(error),
            Err(error) => {
                // An earlier stream continues with what it reports.
                for uri in wanted.difference(&self.uris) {
                    following.note(uri, SubscriptionStatus::Refused(error.clone()));
                }
                return Ok(());
            }
        };
        let before = std::mem::take(&mut self.uris);
        self.stream = Some(stream);
        for uri in wanted {
            if changes.iter().any(|changed| **changed == **uri) {
                self.uris.insert(Arc::clone(uri));
                if !before.contains(uri) {
                    following.note(uri, SubscriptionStatus::Confirmed);
                }
            } else {
                let why = "nothing: it tells of no changes of this resource";
                let error = ClientError::refused(-32601, why, None);
                following.note(uri, SubscriptionStatus::Refused(error));
            }
        }
        Ok(())
    }

    /// Waits until the stream ends, if there is one.
    async fn ended(&mut self) {
        match &mut self.stream {
            Some(stream) => {
                let error = stream.ended().await;
                tracing::debug!(%error, "a stream of changes ended");
            }
            None => std::future::pending().await,
        }
    }
}

fn is_gone(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Closed { .. } | ClientError::SessionOver | ClientError::Unreachable(_)
    )
}

#[cfg(test)]
mod tests {
    use super::is_part;

    #[test]
    fn a_part_of_a_resource_is_below_its_address() {
        for (whole, uri, expect) in [
            ("file:///a", "file:///a/b", true),
            ("file:///a/", "file:///a/b", true),
            ("db://t", "db://t?row=1", true),
            ("db://t", "db://t#1", true),
            ("file:///a", "file:///ab", false),
            ("file:///a", "file:///a", false),
            ("file:///a/b", "file:///a", false),
        ] {
            assert_eq!(is_part(whole, uri), expect, "{whole} {uri}");
        }
    }
}

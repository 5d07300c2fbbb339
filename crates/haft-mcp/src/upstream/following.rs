//! `Following`: the resources of a server of whose changes clients hear. Each is asked for once at the server, whoever wants to hear
//! of it, for as long as one of them does.
//!
//! While there is one, the connection is kept: it is opened again where it breaks, all is asked for anew, and the clients are told
//! that each resource may have changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{ClientError, News, Stream};
use crate::offer::OfferChange;
use crate::upstream::herald::Herald;
use crate::upstream::link::{Link, Live};

/// The most resources of one server that are followed at once.
const MOST: usize = 4096;
/// How long a resource is still followed that no client wants to hear of: the next one may come, or the same again.
const LINGER: Duration = Duration::from_secs(2);
/// How long a server is left alone whose connection broke; twice as long after each further time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How long at most; a connection that lasted longer breaks for the first time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What of a server is followed.
#[derive(Debug)]
pub(crate) struct Following {
    state: Mutex<State>,
    /// Counts the changes of what is wanted.
    wishes: watch::Sender<u64>,
    pub(crate) herald: Arc<Herald>,
}

#[derive(Debug)]
struct State {
    link: Arc<Link>,
    wanted: BTreeMap<Arc<str>, Wish>,
    /// Whether a task sees to it.
    is_kept: bool,
}

/// A resource of which clients want to hear.
#[derive(Debug)]
struct Wish {
    leases: usize,
    /// By what its clients know it, with how many of them do.
    addresses: BTreeMap<Arc<str>, usize>,
    standing: watch::Sender<Standing>,
    /// It may have changed while there was no connection.
    is_missed: bool,
    /// Since when nobody wants to hear of it.
    left: Option<Instant>,
}

/// What the server said to a wish.
#[derive(Debug, Clone)]
enum Standing {
    /// Nothing yet.
    Open,
    /// It tells of changes.
    Stands,
    Refused(ClientError),
}

/// One client's wish. Dropping it withdraws the wish.
#[derive(Debug)]
pub(crate) struct Lease {
    following: Arc<Following>,
    uri: Arc<str>,
    /// By what the client knows it; a wish without is told to none.
    address: Option<Arc<str>>,
}

impl Following {
    pub(crate) fn new(link: Arc<Link>, herald: Arc<Herald>) -> Arc<Self> {
        let state = State {
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

    /// A wish to hear of a resource of this address; none where too many are followed. Needs a tokio runtime.
    pub(crate) fn lease(self: &Arc<Self>, uri: &str, address: Option<&str>) -> Option<Lease> {
        let mut state = self.state.lock();
        if state.wanted.len() >= MOST && !state.wanted.contains_key(uri) {
            return None;
        }
        let (uri, address): (Arc<str>, Option<Arc<str>>) = (uri.into(), address.map(Into::into));
        let wish = state
            .wanted
            .entry(Arc::clone(&uri))
            .or_insert_with(Wish::new);
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
        Some(Lease {
            following: Arc::clone(self),
            uri,
            address,
        })
    }

    /// Goes on over this link, once the connection of the other one has ended.
    pub(crate) fn go_on(&self, link: &Arc<Link>) {
        self.state.lock().link = Arc::clone(link);
        self.changed();
    }

    fn changed(&self) {
        self.wishes.send_modify(|count| *count += 1);
    }

    fn release(&self, lease: &Lease) {
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

    /// Whether nothing is left to see to: the task ends then.
    fn rest(&self) -> bool {
        let mut state = self.state.lock();
        state.forget();
        state.is_kept = !state.wanted.is_empty();
        !state.is_kept
    }

    /// When the next wish ends that nobody has any more.
    fn next_end(&self) -> Option<Instant> {
        let state = self.state.lock();
        let left = state.wanted.values().filter_map(|wish| wish.left);
        left.min().map(|left| left + LINGER)
    }

    /// What is to be asked for, and has not been refused.
    fn wanted(&self) -> BTreeSet<Arc<str>> {
        let mut state = self.state.lock();
        state.forget();
        let open = state.wanted.iter().filter(|(_, wish)| !wish.is_refused());
        open.map(|(uri, _)| Arc::clone(uri)).collect()
    }

    /// All that was asked for at an earlier connection is asked for again.
    fn ask_again(&self) {
        let mut state = self.state.lock();
        for wish in state.wanted.values_mut().filter(|wish| !wish.is_open()) {
            wish.is_missed = true;
            wish.standing.send_replace(Standing::Open);
        }
    }

    /// Notes what the server said to a wish. Who wants to hear of one that stands again may have missed something.
    fn note(&self, uri: &str, standing: Standing) {
        let is_missed = {
            let mut state = self.state.lock();
            let Some(wish) = state.wanted.get_mut(uri) else {
                return;
            };
            let stands = matches!(standing, Standing::Stands);
            wish.standing.send_replace(standing);
            stands && std::mem::take(&mut wish.is_missed)
        };
        if is_missed {
            self.tell(uri);
        }
    }

    /// Refuses what the server has not said anything to.
    fn refuse_open(&self, error: &ClientError) {
        let state = self.state.lock();
        for wish in state.wanted.values().filter(|wish| wish.is_open()) {
            wish.standing.send_replace(Standing::Refused(error.clone()));
        }
    }

    /// Tells the clients of a resource that it has changed. One that is part of another is told as the other.
    fn tell(&self, uri: &str) {
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
            self.herald.tell(&OfferChange::Updated(address));
        }
    }

    /// So much changed that nobody knows what.
    fn tell_all(&self) {
        for uri in self.wanted() {
            self.tell(&uri);
        }
    }

    /// Sees to what is wanted over one connection, until it ends or nothing is wanted.
    async fn attend(&self, link: &Link, live: &Arc<Live>) {
        let mut news = live.client.news();
        let mut wishes = self.wishes.subscribe();
        let mut orders = Orders::default();
        self.ask_again();
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
                    Ok(News::Updated(uri)) => self.tell(&uri),
                    Ok(News::Over) | Err(RecvError::Closed) => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.tell_all(),
                },
                () = live.over.cancelled() => return,
                () = orders.ended() => return,
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => {}
            }
        }
    }
}

/// Whether an address is of a part of the resource of another one.
fn is_part(whole: &str, uri: &str) -> bool {
    let rest = uri.strip_prefix(whole);
    rest.is_some_and(|rest| {
        let begins = whole.ends_with('/') || rest.starts_with(['/', '?', '#']);
        begins && !rest.is_empty()
    })
}

impl State {
    /// Forgets what nobody has wanted to hear of for a while.
    fn forget(&mut self) {
        let is_over = |left: Option<Instant>| left.is_some_and(|left| left.elapsed() >= LINGER);
        self.wanted.retain(|_, wish| !is_over(wish.left));
    }
}

impl Wish {
    fn new() -> Self {
        Self {
            leases: 0,
            addresses: BTreeMap::new(),
            standing: watch::Sender::new(Standing::Open),
            is_missed: false,
            left: None,
        }
    }

    fn is_refused(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Refused(_))
    }

    fn is_open(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Open)
    }
}

impl Lease {
    /// Waits for what the server says to the wish.
    pub(crate) async fn stands(&self) -> Result<(), ClientError> {
        let standing = {
            let state = self.following.state.lock();
            let wish = state.wanted.get(&self.uri);
            wish.map(|wish| wish.standing.subscribe())
        };
        let mut standing = standing.ok_or(ClientError::SessionOver)?;
        let said = standing.wait_for(|now| !matches!(now, Standing::Open));
        match said.await.as_deref() {
            Ok(Standing::Refused(error)) => Err(error.clone()),
            Ok(_) => Ok(()),
            Err(_) => Err(ClientError::SessionOver),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.following.release(self);
    }
}

/// Sees to what is wanted, until nothing is.
async fn keep(following: Arc<Following>) {
    let mut pause = FIRST_PAUSE;
    while !following.rest() {
        let link = Arc::clone(&following.state.lock().link);
        let began = Instant::now();
        match link.live().await {
            Ok(live) => following.attend(&link, &live).await,
            Err(error) => following.refuse_open(&error),
        }
        if began.elapsed() > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        let mut wishes = following.wishes.subscribe();
        if following.rest() {
            return;
        }
        // Whoever comes meanwhile hears at once what becomes of it.
        let _paused = timeout(pause, wishes.changed()).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What was asked for over one connection.
#[derive(Debug, Default)]
struct Orders {
    uris: BTreeSet<Arc<str>>,
    /// The stream that tells of them (stateless era).
    stream: Option<Stream>,
}

impl Orders {
    /// Asks for what is wanted and was not, and no more for what is not.
    ///
    /// # Errors
    /// The connection carries nothing any more.
    async fn ask(
        &mut self,
        following: &Following,
        live: &Live,
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
                    following.note(uri, Standing::Stands);
                }
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) => following.note(uri, Standing::Refused(error)),
            }
        }
        for uri in self.uris.clone().difference(wanted) {
            self.uris.remove(uri);
            match live.client.subscribe(uri, false).await {
                Err(error) if is_gone(&error) => return Err(error),
                // It tells of the resource still, and nobody hears it.
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Opens the stream that tells of what is wanted; then the one before ends.
    async fn open(
        &mut self,
        following: &Following,
        live: &Live,
        wanted: &BTreeSet<Arc<str>>,
    ) -> Result<(), ClientError> {
        if wanted.is_empty() {
            *self = Self::default();
            return Ok(());
        }
        let uris: Vec<String> = wanted.iter().map(|uri| String::from(&**uri)).collect();
        let (stream, told) = match live.client.follow(&uris).await {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Err(error),
            Err(error) => {
                // What an earlier stream tells of goes on.
                for uri in wanted.difference(&self.uris) {
                    following.note(uri, Standing::Refused(error.clone()));
                }
                return Ok(());
            }
        };
        let before = std::mem::take(&mut self.uris);
        self.stream = Some(stream);
        for uri in wanted {
            if told.iter().any(|told| **told == **uri) {
                self.uris.insert(Arc::clone(uri));
                if !before.contains(uri) {
                    following.note(uri, Standing::Stands);
                }
            } else {
                let why = "nothing: it tells of no changes of this resource";
                let error = ClientError::refused(-32601, why, None);
                following.note(uri, Standing::Refused(error));
            }
        }
        Ok(())
    }

    /// Waits until the stream ends, where there is one.
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

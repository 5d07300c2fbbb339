//! `ClientSession`: a run that an HTTP client uses, and how long it has been idle; which one makes room for another.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use haft::bounds::{ConcurrencyLimit, ConcurrencyPermit, ShareKey};
use haft::call::Principal;
use haft::clock;
use tokio::time::Instant;

use super::resume::ResumableStreams;

use crate::core::EncodedResponse;
use crate::run::ClientRun;

/// When a session was last used, and how many uses are in progress.
#[derive(Debug)]
struct SessionUsage {
    began: Instant,
    /// Milliseconds since `began`.
    last: AtomicU64,
    now: AtomicUsize,
    /// Whether it has been used after its opening.
    worked: AtomicBool,
}

impl SessionUsage {
    fn touch(&self) {
        let passed = self.began.elapsed().as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Relaxed);
    }

    fn idle(&self) -> Option<Duration> {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        let unused = self.now.load(Ordering::Relaxed) == 0;
        unused.then(|| self.began.elapsed().saturating_sub(last))
    }
}

/// A run that a client uses.
#[derive(Debug)]
pub(super) struct ClientSession {
    pub(super) run: Arc<ClientRun>,
    /// Whose share of the sessions it uses.
    pub(super) share: ShareKey,
    /// When it was opened, in nanoseconds since 1970.
    pub(super) opened: i128,
    /// The response streams that its client may lose.
    streams: Arc<ResumableStreams>,
    used: SessionUsage,
}

impl ClientSession {
    /// Ends what runs for it if its principal no longer counts; returns whether that is so.
    pub(super) fn revoke(&self, is_over: &impl Fn(&Principal, i128) -> bool) -> bool {
        let principal = self.share.principal.as_ref();
        let over = principal.is_some_and(|principal| is_over(principal, self.opened));
        if over {
            self.run.session.cancel();
        }
        over
    }

    pub(super) fn new(run: Arc<ClientRun>, share: ShareKey) -> Arc<Self> {
        Arc::new(Self {
            run,
            share,
            opened: clock::now(),
            streams: Arc::default(),
            used: SessionUsage {
                began: Instant::now(),
                last: AtomicU64::new(0),
                now: AtomicUsize::new(0),
                worked: AtomicBool::new(false),
            },
        })
    }

    /// Returns how long it has been idle; `None` while its client uses it or a call waits for the client.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.used.idle().filter(|_| !self.run.is_at_work())
    }

    /// Returns whether it has been used after its opening.
    pub(super) fn was_used(&self) -> bool {
        self.used.worked.load(Ordering::Relaxed)
    }
}

/// A session in use: it does not expire meanwhile.
#[derive(Debug)]
pub(crate) struct SessionLease(pub(super) Arc<ClientSession>);

impl SessionLease {
    pub(super) fn new(session: &Arc<ClientSession>) -> Self {
        session.used.now.fetch_add(1, Ordering::Relaxed);
        session.used.touch();
        Self(Arc::clone(session))
    }

    pub(crate) fn run(&self) -> &Arc<ClientRun> {
        &self.0.run
    }

    /// Returns the response streams that its client may lose.
    pub(crate) fn streams(&self) -> &Arc<ResumableStreams> {
        &self.0.streams
    }

    /// Notes that the client uses it.
    pub(crate) fn mark_used(&self) {
        self.0.used.worked.store(true, Ordering::Relaxed);
    }

    /// Ends the use; if the call still waits for an approval, only once that is decided, since the run must exist then.
    pub(crate) fn keep_for(self, answer: Option<&EncodedResponse>) {
        if let Some(id) = answer.and_then(|answer| answer.waits.clone()) {
            tokio::spawn(async move { self.run().settled(&id).await });
        }
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        self.0.used.touch();
        self.0.used.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open session with its place among the sessions of its principal; the place is free once it is no longer open.
#[derive(Debug)]
pub(super) struct OpenSession {
    session: Arc<ClientSession>,
    _place: ConcurrencyPermit,
}

impl OpenSession {
    pub(super) fn new(session: Arc<ClientSession>, place: ConcurrencyPermit) -> Self {
        Self {
            session,
            _place: place,
        }
    }

    pub(super) fn session(&self) -> &Arc<ClientSession> {
        &self.session
    }
}

/// A place for one more session, and the session that made room for it, which the caller ends.
type MadeRoom = (ConcurrencyPermit, Option<Arc<ClientSession>>);

/// Takes a place for one more session. If there is none, removes the most dispensable session: of the same principal if that holds
/// its whole share, else of the principal that holds the most. `None` if all of them are in use.
pub(super) fn take_place<K: Clone + Eq + Hash>(
    open: &mut HashMap<K, OpenSession>,
    places: &ConcurrencyLimit,
    who: &ShareKey,
) -> Option<MadeRoom> {
    if let Some(place) = places.take(who) {
        return Some((place, None));
    }
    let only_own = places.is_at_share(who);
    let mut counts: HashMap<&ShareKey, usize> = HashMap::new();
    // Among a principal's own, the count decides nothing, and one that floods comes here each time.
    for open in open.values().filter(|_| !only_own) {
        *counts.entry(&open.session.share).or_default() += 1;
    }
    let key = most_dispensable(
        open.iter().filter_map(|(key, open)| {
            let share = &open.session.share;
            let may_go = share == who || (!only_own && share.class == who.class);
            may_go.then_some((key, &open.session))
        }),
        |session| counts.get(&session.share).copied().unwrap_or(0),
    );
    let key = key?.clone();
    let ended = open.remove(&key).map(|open| open.session);
    Some((places.take(who)?, ended))
}

/// Returns the most dispensable session: of the principal that holds the most, the one idle the longest, unused ones first.
fn most_dispensable<'a, K>(
    sessions: impl Iterator<Item = (K, &'a Arc<ClientSession>)>,
    held: impl Fn(&ClientSession) -> usize,
) -> Option<K> {
    let idle = sessions.filter_map(|(key, session)| {
        let idle = session.idle()?;
        Some(((held(session), !session.was_used(), idle), key))
    });
    idle.max_by_key(|(order, _)| *order).map(|(_, key)| key)
}

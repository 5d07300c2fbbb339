//! `ClientSessions`: the sessions of the handshake era by id, limited for each principal, swept when idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::bounds::{ConcurrencyLimit, ShareKey};
use haft::call::Principal;
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};

use super::TokenOwner;
use super::session::{ClientSession, OpenSession, SessionLease, take_place};
use crate::limits::{ServerLimits, shares};
use crate::run::ClientRun;
use crate::seal::random_name;

/// Maximum interval between sweeps of idle sessions.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(15);

type SessionsById = HashMap<Box<str>, OpenSession>;

#[derive(Debug)]
pub(crate) struct ClientSessions {
    open: Mutex<SessionsById>,
    places: ConcurrencyLimit,
    idle: Duration,
    unused: Duration,
    swept: AtomicBool,
}

impl ClientSessions {
    pub(crate) fn new(limits: &ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            places: ConcurrencyLimit::new(&shares(limits.sessions)),
            idle: limits.idle,
            unused: limits.unused,
            swept: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SessionsById> {
        self.open.lock()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Adds a session and returns its id as a header value. If its principal or class has too many, ends the most dispensable one;
    /// `None` if all are in use, or no id could be generated.
    pub(crate) fn add(
        self: &Arc<Self>,
        run: &Arc<ClientRun>,
        share: ShareKey,
    ) -> Option<HeaderValue> {
        if !self.swept.swap(true, Ordering::Relaxed) {
            let every = (self.idle / 4).min(self.unused).min(MAX_SWEEP_INTERVAL);
            tokio::spawn(sweep(Arc::downgrade(self), every));
        }
        let name = random_name()?;
        let header = HeaderValue::from_str(&name).ok()?;
        let session = ClientSession::new(Arc::clone(run), share);
        let ended = {
            let mut open = self.lock();
            let (place, ended) = take_place(&mut open, &self.places, &session.share)?;
            open.insert(name, OpenSession::new(session, place));
            ended
        };
        if let Some(ended) = ended {
            ended.run.end();
        }
        Some(header)
    }

    /// Returns the session with this id if it is the caller's: an operator's session needs the operator's token each time.
    pub(crate) fn lease(&self, name: &str, caller: &TokenOwner) -> Option<SessionLease> {
        let open = self.lock();
        let session = open.get(name)?.session();
        let is_callers = session.share.principal == caller.principal
            && session.run.client.view == caller.view
            && session.share.class <= caller.class();
        is_callers.then(|| SessionLease::new(session))
    }

    pub(crate) fn end(&self, lease: &SessionLease) {
        self.end_where(|session| Arc::ptr_eq(session, &lease.0));
    }

    pub(crate) fn end_all(&self) {
        self.end_where(|_| true);
    }

    /// Ends sessions that have been idle too long; unused ones after a short while.
    fn sweep(&self) {
        self.end_where(|session| {
            let most = if session.was_used() {
                self.idle
            } else {
                self.unused
            };
            session.idle().is_some_and(|idle| idle >= most)
        });
    }

    /// Ends what principals that no longer count have open, with what runs for them.
    pub(crate) fn revoke(&self, is_over: &impl Fn(&Principal, i128) -> bool) {
        self.end_where(|session| session.revoke(is_over));
    }

    fn end_where(&self, ends: impl Fn(&Arc<ClientSession>) -> bool) {
        let ended: Vec<_> = {
            let mut open = self.lock();
            open.extract_if(|_, open| ends(open.session())).collect()
        };
        for (_, ended) in ended {
            ended.session().run.end();
        }
    }
}

/// Sweeps periodically until the sessions are dropped.
async fn sweep(sessions: Weak<ClientSessions>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(sessions) = sessions.upgrade() else {
            return;
        };
        sessions.sweep();
    }
}

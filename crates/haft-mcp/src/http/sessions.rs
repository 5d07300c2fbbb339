//! `ClientSessions`: the sessions of the handshake era by id, limited for each class of callers, swept when idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::bounds::{CallerClass, Shares};
use haft::call::Principal;
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};

use super::TokenOwner;
use super::session::{ClientSession, SessionLease, most_dispensable};
use crate::limits::{ServerLimits, shares};
use crate::run::ClientRun;
use crate::seal::random_name;

/// Maximum interval between sweeps of idle sessions.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(15);

type SessionsById = HashMap<Box<str>, Arc<ClientSession>>;

#[derive(Debug)]
pub(crate) struct ClientSessions {
    open: Mutex<SessionsById>,
    most: Shares<usize>,
    idle: Duration,
    unused: Duration,
    swept: AtomicBool,
}

impl ClientSessions {
    pub(crate) fn new(limits: &ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            most: shares(limits.sessions),
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

    /// Adds a session and returns its id as a header value. If its class has too many, ends the most dispensable one; `None` if
    /// all are in use, or no id could be generated.
    pub(crate) fn add(
        self: &Arc<Self>,
        run: &Arc<ClientRun>,
        principal: Option<Principal>,
        class: CallerClass,
    ) -> Option<HeaderValue> {
        if !self.swept.swap(true, Ordering::Relaxed) {
            let every = (self.idle / 4).min(self.unused).min(MAX_SWEEP_INTERVAL);
            tokio::spawn(sweep(Arc::downgrade(self), every));
        }
        let name = random_name()?;
        let header = HeaderValue::from_str(&name).ok()?;
        let session = ClientSession::new(Arc::clone(run), principal, class);
        let ended = {
            let mut open = self.lock();
            let of_class = || open.iter().filter(|(_, session)| session.class == class);
            let full = of_class().count() >= *self.most.of(class);
            let ended = if full {
                Some(most_dispensable(of_class())?.clone())
            } else {
                None
            };
            let ended = ended.and_then(|name| open.remove(&name));
            open.insert(name, session);
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
        let session = open.get(name)?;
        let is_callers = session.principal == caller.principal
            && session.run.client.view == caller.view
            && session.class <= caller.class();
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

    fn end_where(&self, ends: impl Fn(&Arc<ClientSession>) -> bool) {
        let ended: Vec<_> = {
            let mut open = self.lock();
            open.extract_if(|_, session| ends(session)).collect()
        };
        for (_, session) in ended {
            session.run.end();
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

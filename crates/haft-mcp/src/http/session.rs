//! Who has a run open over HTTP: legacy sessions by id, stateless callers by principal. Bounded, and swept when idle.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::time::Duration;

use haft::call::Principal;
use http::HeaderValue;
use tokio::time::Instant;

use crate::opener::ClientInfo;
use crate::run::Run;
use crate::server::{Answer, Core, Limits};
use crate::wire::RpcError;

/// When something was last used, and how often it is in use now.
#[derive(Debug)]
struct Use {
    began: Instant,
    /// Milliseconds after `began`.
    last: AtomicU64,
    now: AtomicUsize,
}

impl Use {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            last: AtomicU64::new(0),
            now: AtomicUsize::new(0),
        }
    }

    fn touch(&self) {
        let passed = self.began.elapsed().as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Relaxed);
    }

    fn idle(&self, limit: Duration) -> bool {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.now.load(Ordering::Relaxed) == 0 && self.began.elapsed().saturating_sub(last) >= limit
    }
}

#[derive(Debug)]
struct Session {
    name: Box<str>,
    run: Arc<Run>,
    principal: Option<Principal>,
    used: Use,
}

/// A session in use: it does not expire meanwhile.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Session>);

impl Lease {
    fn new(session: &Arc<Session>) -> Self {
        session.used.now.fetch_add(1, Ordering::Relaxed);
        session.used.touch();
        Self(Arc::clone(session))
    }

    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.0.run
    }

    /// Given back; where the call still waits for a person, when they have decided: its run must be there then.
    pub(crate) fn keep_for(self, answer: Option<&Answer>) {
        if let Some(id) = answer.and_then(|answer| answer.waits.clone()) {
            tokio::spawn(async move { self.run().settled(&id).await });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.used.touch();
        self.0.used.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The legacy sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<Box<str>, Arc<Session>>>,
    most: usize,
    idle: Duration,
    swept: AtomicUsize,
}

impl Sessions {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            open: Mutex::default(),
            most: limits.sessions,
            idle: limits.idle,
            swept: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether one more fits, once those that lay idle too long are gone.
    pub(crate) fn make_room(self: &Arc<Self>) -> bool {
        if self.swept.fetch_add(1, Ordering::Relaxed) == 0 {
            tokio::spawn(sweep_sessions(Arc::downgrade(self), self.idle));
        }
        if self.len() < self.most {
            return true;
        }
        self.sweep();
        self.len() < self.most
    }

    /// Opens a session and gives its name as a header; `None` when the limit was reached meanwhile or no name could be made.
    pub(crate) fn add(&self, run: &Arc<Run>, principal: Option<Principal>) -> Option<HeaderValue> {
        let name = random_name()?;
        let header = HeaderValue::from_str(&name).ok()?;
        let session = Arc::new(Session {
            name: name.clone(),
            run: Arc::clone(run),
            principal,
            used: Use::new(),
        });
        let mut open = self.lock();
        if open.len() >= self.most {
            return None;
        }
        open.insert(name, session);
        Some(header)
    }

    /// The session with this name, if it is this caller's.
    pub(crate) fn lease(&self, name: &str, principal: Option<&Principal>) -> Option<Lease> {
        let open = self.lock();
        let session = open.get(name)?;
        (session.principal.as_ref() == principal).then(|| Lease::new(session))
    }

    /// Ends a session.
    pub(crate) fn end(&self, lease: &Lease) {
        self.lock().remove(&lease.0.name);
        lease.0.run.end();
    }

    /// Ends all.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = self.lock().drain().map(|(_, session)| session).collect();
        for session in all {
            session.run.end();
        }
    }

    /// Ends those that lay idle too long.
    fn sweep(&self) {
        let mut idle = Vec::new();
        self.lock().retain(|_, session| {
            let keep = !session.used.idle(self.idle);
            if !keep {
                idle.push(Arc::clone(session));
            }
            keep
        });
        for session in idle {
            session.run.end();
        }
    }
}

/// Sweeps now and then, as long as the sessions exist.
async fn sweep_sessions(sessions: Weak<Sessions>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        let Some(sessions) = sessions.upgrade() else {
            return;
        };
        sessions.sweep();
    }
}

/// 128 random bits in hex.
fn random_name() -> Option<Box<str>> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut name = String::with_capacity(32);
    for byte in bytes {
        write!(name, "{byte:02x}").ok()?;
    }
    Some(name.into())
}

/// The runs of stateless callers: one each, opened at the first request, ended when idle.
#[derive(Debug)]
pub(crate) struct Callers {
    open: RwLock<HashMap<Option<Principal>, Arc<Session>>>,
    /// Held while a run is opened, so that a caller's first requests share one.
    opening: tokio::sync::Mutex<bool>,
    most: usize,
    idle: Duration,
}

impl Callers {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            open: RwLock::default(),
            opening: tokio::sync::Mutex::default(),
            most: limits.sessions,
            idle: limits.idle,
        }
    }

    /// The caller's run.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        core: &Core,
        client: ClientInfo,
    ) -> Result<Lease, RpcError> {
        let principal = client.principal.clone();
        if let Some(lease) = self.find(principal.as_ref()) {
            return Ok(lease);
        }
        self.retire_spent(principal.as_ref());
        let mut swept = self.opening.lock().await;
        if let Some(lease) = self.find(principal.as_ref()) {
            return Ok(lease);
        }
        if !std::mem::replace(&mut *swept, true) {
            tokio::spawn(sweep_callers(Arc::downgrade(self), self.idle));
        }
        if self.read().len() >= self.most {
            let message = "too many callers have a run open: try again later";
            return Err(RpcError::new(RpcError::BUSY, message));
        }
        let opened = core.open(client).await;
        let run = opened.map_err(|e| RpcError::new(RpcError::INTERNAL, e.to_string()))?;
        let session = Arc::new(Session {
            name: Box::default(),
            run,
            principal: principal.clone(),
            used: Use::new(),
        });
        let lease = Lease::new(&session);
        self.write().insert(principal.clone(), session);
        Ok(lease)
    }

    fn find(&self, principal: Option<&Principal>) -> Option<Lease> {
        let open = self.read();
        let session = open.get(&principal.cloned())?;
        (!session.run.session.is_spent()).then(|| Lease::new(session))
    }

    /// A stateless caller has no way to ask for a new run when the budget of its run is used up: it gets one. The old one
    /// ends when its last call has.
    fn retire_spent(&self, principal: Option<&Principal>) {
        let mut open = self.write();
        let key = principal.cloned();
        if !open
            .get(&key)
            .is_some_and(|session| session.run.session.is_spent())
        {
            return;
        }
        let Some(session) = open.remove(&key) else {
            return;
        };
        tokio::spawn(async move {
            while !session.used.idle(Duration::ZERO) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            session.run.end();
        });
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Option<Principal>, Arc<Session>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Option<Principal>, Arc<Session>>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all.
    pub(crate) fn end_all(&self) {
        self.end_where(|_| true);
    }

    fn end_where(&self, ends: impl Fn(&Session) -> bool) {
        let mut ended = Vec::new();
        self.write().retain(|_, session| {
            let keep = !ends(session);
            if !keep {
                ended.push(Arc::clone(session));
            }
            keep
        });
        for session in ended {
            session.run.end();
        }
    }
}

/// Sweeps now and then, as long as there is somebody to sweep for.
async fn sweep_callers(callers: Weak<Callers>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        let Some(callers) = callers.upgrade() else {
            return;
        };
        callers.end_where(|session| session.used.idle(idle));
    }
}

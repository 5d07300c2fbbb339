//! `StatelessRuns`: the runs of stateless clients: one per client, opened with its first request, replaced when over, ended when idle.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::bounds::{CallerClass, Shares};
use haft::call::Principal;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::session::{ClientSession, SessionLease, most_dispensable};
use crate::core::Core;
use crate::limits::{ServerLimits, shares};
use crate::opener::{ClientInfo, ViewName};
use crate::wire::RpcError;

/// Interval between checks whether a run that is over still has calls.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// What distinguishes stateless clients: the principal, view and class that the token shows, and the name and version that they give. Two
/// programs of one user with the same name and version count as one client: nothing in their requests distinguishes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallerKey {
    principal: Option<Principal>,
    view: Option<ViewName>,
    class: CallerClass,
    name: String,
    version: String,
}

type SessionsByCaller = HashMap<CallerKey, Arc<ClientSession>>;

/// The runs of stateless clients.
#[derive(Debug)]
pub(crate) struct StatelessRuns {
    open: RwLock<SessionsByCaller>,
    /// Locked while a run is opened, so that a client's first requests share one.
    opening: tokio::sync::Mutex<bool>,
    most: Shares<usize>,
    idle: Duration,
}

impl StatelessRuns {
    pub(crate) fn new(limits: &ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            open: RwLock::default(),
            opening: tokio::sync::Mutex::default(),
            most: shares(limits.sessions),
            idle: limits.idle,
        })
    }

    /// Returns the client's run.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        core: &Core,
        client: ClientInfo,
        class: CallerClass,
    ) -> Result<SessionLease, RpcError> {
        let key = CallerKey {
            principal: client.principal.clone(),
            view: client.view.clone(),
            class,
            name: client.name.clone(),
            version: client.version.clone(),
        };
        if let Some(lease) = self.find(&key) {
            return Ok(lease);
        }
        let mut swept = self.opening.lock().await;
        if let Some(lease) = self.find(&key) {
            return Ok(lease);
        }
        self.retire(&key);
        if !std::mem::replace(&mut *swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.idle / 4));
        }
        self.make_room(class)?;
        let opened = core.open(client).await;
        let run = opened.map_err(|e| RpcError::new(RpcError::INTERNAL, e.to_string()))?;
        let session = ClientSession::new(run, key.principal.clone(), class);
        let lease = SessionLease::new(&session);
        self.write().insert(key, session);
        Ok(lease)
    }

    fn find(&self, key: &CallerKey) -> Option<SessionLease> {
        let open = self.read();
        let session = open.get(key)?;
        (!session.run.is_over()).then(|| SessionLease::new(session))
    }

    /// If the class has too many runs, ends the most dispensable one.
    fn make_room(&self, class: CallerClass) -> Result<(), RpcError> {
        let ended = {
            let mut open = self.write();
            let of_class = || open.iter().filter(|(key, _)| key.class == class);
            if of_class().count() < *self.most.of(class) {
                return Ok(());
            }
            let least = most_dispensable(of_class()).cloned();
            least.and_then(|key| open.remove(&key))
        };
        let message = "too many clients have a run in use: try again later";
        let ended = ended.ok_or_else(|| RpcError::new(RpcError::BUSY, message))?;
        ended.run.end();
        Ok(())
    }

    /// Retires a run that takes no more calls, because its budget is used up or a user stopped it. A stateless client cannot ask
    /// for a new run, so it gets one; the old run ends after its last call.
    fn retire(&self, key: &CallerKey) {
        let Some(session) = self.write().remove(key) else {
            return;
        };
        tokio::spawn(async move {
            while session.idle().is_none() {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
            session.run.end();
        });
    }

    fn read(&self) -> RwLockReadGuard<'_, SessionsByCaller> {
        self.open.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, SessionsByCaller> {
        self.open.write()
    }

    pub(crate) fn end_all(&self) {
        self.end_where(|_| true);
    }

    fn end_where(&self, ends: impl Fn(&ClientSession) -> bool) {
        let ended: Vec<_> = {
            let mut open = self.write();
            open.extract_if(|_, session| ends(session)).collect()
        };
        for (_, session) in ended {
            session.run.end();
        }
    }
}

/// Sweeps periodically until the callers are dropped.
async fn sweep(callers: Weak<StatelessRuns>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(callers) = callers.upgrade() else {
            return;
        };
        let most = callers.idle;
        callers.end_where(|session| session.idle().is_some_and(|idle| idle >= most));
    }
}

//! `StatelessRuns`: the runs of stateless clients: one per client, opened with its first request, replaced when over, ended when idle.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::bounds::{ConcurrencyLimit, ConcurrencyPermit, ShareKey};
use haft::call::Principal;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::session::{ClientSession, OpenSession, SessionLease, take_place};
use crate::core::Core;
use crate::limits::{ServerLimits, shares};
use crate::opener::{ClientInfo, ViewName};
use crate::wire::RpcError;

/// Interval between checks whether a run that is over still has calls.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// What distinguishes stateless clients: the principal, class and view that the token shows, and the name and version that they give. Two
/// programs of one user with the same name and version count as one client: nothing in their requests distinguishes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallerKey {
    share: ShareKey,
    view: Option<ViewName>,
    name: String,
    version: String,
}

type SessionsByCaller = HashMap<CallerKey, OpenSession>;

/// The runs of stateless clients.
#[derive(Debug)]
pub(crate) struct StatelessRuns {
    open: RwLock<SessionsByCaller>,
    /// Locked while a run is opened, so that a client's first requests share one.
    opening: tokio::sync::Mutex<bool>,
    places: ConcurrencyLimit,
    idle: Duration,
}

impl StatelessRuns {
    pub(crate) fn new(limits: &ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            open: RwLock::default(),
            opening: tokio::sync::Mutex::default(),
            places: ConcurrencyLimit::new(&shares(limits.sessions)),
            idle: limits.idle,
        })
    }

    /// Returns the client's run.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        core: &Core,
        client: ClientInfo,
        share: &ShareKey,
    ) -> Result<SessionLease, RpcError> {
        let key = CallerKey {
            share: share.clone(),
            view: client.view.clone(),
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
        let place = self.make_room(share)?;
        let opened = core.open(client).await;
        let run = opened.map_err(|e| RpcError::new(RpcError::INTERNAL, e.to_string()))?;
        let session = ClientSession::new(run, share.clone());
        let lease = SessionLease::new(&session);
        let open = OpenSession::new(session, place);
        self.write().insert(key, open);
        Ok(lease)
    }

    fn find(&self, key: &CallerKey) -> Option<SessionLease> {
        let open = self.read();
        let session = open.get(key)?.session();
        (!session.run.is_over()).then(|| SessionLease::new(session))
    }

    /// Takes a place for a run. If the principal or its class has too many, ends the most dispensable one.
    fn make_room(&self, share: &ShareKey) -> Result<ConcurrencyPermit, RpcError> {
        let made = take_place(&mut self.write(), &self.places, share);
        let message = "too many clients have a run in use: try again later";
        let (place, ended) = made.ok_or_else(|| RpcError::new(RpcError::BUSY, message))?;
        if let Some(ended) = ended {
            ended.run.end();
        }
        Ok(place)
    }

    /// Retires a run that takes no more calls, because its budget is used up or a user stopped it. A stateless client cannot ask
    /// for a new run, so it gets one; the old run ends after its last call.
    fn retire(&self, key: &CallerKey) {
        let Some(open) = self.write().remove(key) else {
            return;
        };
        let session = Arc::clone(open.session());
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

    /// Ends what principals that no longer count have open, with what runs for them.
    pub(crate) fn revoke(&self, is_over: &impl Fn(&Principal, i128) -> bool) {
        self.end_where(|session| session.revoke(is_over));
    }

    fn end_where(&self, ends: impl Fn(&ClientSession) -> bool) {
        let ended: Vec<_> = {
            let mut open = self.write();
            open.extract_if(|_, open| ends(open.session())).collect()
        };
        for (_, ended) in ended {
            ended.session().run.end();
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

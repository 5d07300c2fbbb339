//! `ParkedCalls`: calls of stateless clients that continue while their clients ask the user. They are limited in number and in
//! bytes by principal, and in time; a client can join each again at most once per parking.

use std::collections::HashMap;
use std::sync::Arc;

use haft::bounds::{
    ByteBudget, Charge, ConcurrencyLimit, ConcurrencyPermit, PrincipalShares, ShareKey,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::limits::{ServerLimits, shares};
use crate::owner::{DetachedCallGuard, Owner};
use crate::running::Running;

/// Bytes that the requests of one call may hold in any case.
const RESERVED_BYTES: usize = 16 << 10;

/// The calls that wait for their clients.
#[derive(Debug)]
pub(crate) struct ParkedCalls {
    calls: Mutex<HashMap<Box<str>, ParkedCall>>,
    places: ConcurrencyLimit,
    /// The bytes of what clients are asked and what they answer.
    bytes: PrincipalShares,
}

#[derive(Debug)]
struct ParkedCall {
    running: Running,
    _place: ConcurrencyPermit,
    _work: DetachedCallGuard,
    /// Dropped with the entry, which ends the task that watches it.
    _watched: oneshot::Sender<()>,
}

impl ParkedCalls {
    pub(crate) fn new(limits: &ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::default(),
            places: ConcurrencyLimit::new(&shares(limits.parked)),
            bytes: shares(limits.parked_bytes),
        })
    }

    /// Returns the charge for what one call's client is asked and what it answers.
    pub(crate) fn charge(&self, who: &ShareKey) -> Charge {
        ByteBudget::of(&self.bytes, who, RESERVED_BYTES).charge()
    }

    /// Lets a call continue by itself until its client joins it again by this name, its run ends, or the time is over. Returns
    /// the call if there is no room for it.
    pub(crate) fn park(
        self: &Arc<Self>,
        name: Box<str>,
        running: Running,
        owner: Owner,
        until: Instant,
    ) -> Result<(), Box<Running>> {
        let Some(place) = self.places.take(&owner.share) else {
            return Err(Box::new(running));
        };
        let (watched, taken) = oneshot::channel();
        let waiting = ParkedCall {
            running: running.part(),
            _place: place,
            _work: owner.work,
            _watched: watched,
        };
        let mut over = owner.run_over;
        self.calls.lock().insert(name.clone(), waiting);
        let (parked, of) = (Arc::downgrade(self), name);
        tokio::spawn(async move {
            tokio::select! {
                _ = taken => {}
                _ = over.wait_for(|over| *over) => {}
                () = tokio::time::sleep_until(until) => {}
            }
            drop(parked.upgrade().and_then(|parked| parked.take(&of)));
        });
        Ok(())
    }

    /// Takes the call with this name, to wait for it again.
    pub(crate) fn take(&self, name: &str) -> Option<Running> {
        let waiting = self.calls.lock().remove(name)?;
        Some(waiting.running)
    }
}

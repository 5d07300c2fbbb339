//! `Owner`: the owner of a call that continues while its client is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::bounds::ShareKey;
use haft::call::Principal;
use tokio::sync::watch;

/// The owner of a call that continues while its client is away.
pub(crate) struct Owner {
    pub(crate) principal: Principal,
    /// Whose share of such calls it uses.
    pub(crate) share: ShareKey,
    /// Whether the run of the call is over.
    pub(crate) run_over: watch::Receiver<bool>,
    /// Keeps the run from being swept.
    pub(crate) work: DetachedCallGuard,
}

/// The number of a run's calls that continue without their client.
#[derive(Debug, Default)]
pub(crate) struct DetachedCalls(Arc<AtomicUsize>);

/// One of them, until dropped.
#[derive(Debug)]
pub(crate) struct DetachedCallGuard(Arc<AtomicUsize>);

impl DetachedCalls {
    /// Counts one more.
    pub(crate) fn begin(&self) -> DetachedCallGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        DetachedCallGuard(Arc::clone(&self.0))
    }

    /// Returns whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for DetachedCallGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

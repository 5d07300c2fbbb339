//! `Owner`: whose a call is that goes on while its client is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::bounds::Class;
use haft::call::Principal;
use tokio::sync::watch;

/// Whose a call is that goes on while its client is away.
pub(crate) struct Owner {
    pub(crate) principal: Principal,
    pub(crate) class: Class,
    /// Whether the run is over in which the call was made.
    pub(crate) over: watch::Receiver<bool>,
    /// Keeps the run from being swept.
    pub(crate) work: AtWork,
}

/// How many calls of a run go on without their client.
#[derive(Debug, Default)]
pub(crate) struct Working(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct AtWork(Arc<AtomicUsize>);

impl Working {
    /// One more.
    pub(crate) fn begin(&self) -> AtWork {
        self.0.fetch_add(1, Ordering::Relaxed);
        AtWork(Arc::clone(&self.0))
    }

    /// Whether there is one.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

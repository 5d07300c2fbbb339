//! `Running`: the calls of a run under way. A run's end is recorded after the last of them, however they end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// Set in the count when the run has been told to end.
const ENDING: u64 = 1 << 63;

/// Counts calls; says who must record the run's end.
#[derive(Debug, Default)]
pub(crate) struct Running {
    count: AtomicU64,
    /// Somebody records the run's end.
    sealed: AtomicBool,
    /// It is recorded.
    recorded: AtomicBool,
    idle: Notify,
}

impl Running {
    /// A call begins.
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// A call has ended and its end is recorded; true when it was the last of an ending run, whose end is now to be recorded.
    pub(crate) fn end(&self) -> bool {
        let before = self.count.fetch_sub(1, Ordering::AcqRel);
        if before & !ENDING == 1 {
            self.idle.notify_waiters();
        }
        before == ENDING | 1 && self.seal()
    }

    /// The run is told to end; true when nothing runs, so that its end is to be recorded at once.
    pub(crate) fn finish(&self) -> bool {
        self.count.fetch_or(ENDING, Ordering::AcqRel) == 0 && self.seal()
    }

    /// The run's end has been recorded.
    pub(crate) fn recorded(&self) {
        self.recorded.store(true, Ordering::Release);
        self.idle.notify_waiters();
    }

    /// Waits until the run's end is recorded.
    pub(crate) async fn settled(&self) {
        loop {
            let idle = self.idle.notified();
            if self.recorded.load(Ordering::Acquire) {
                return;
            }
            idle.await;
        }
    }

    /// Waits until no call is under way.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.count.load(Ordering::Acquire) & !ENDING == 0 {
                return;
            }
            idle.await;
        }
    }

    fn seal(&self) -> bool {
        !self.sealed.swap(true, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::Running;

    #[test]
    fn the_end_is_recorded_once_and_after_the_last_call() {
        let idle = Running::default();
        assert!(idle.finish());
        let busy = Running::default();
        busy.begin();
        busy.begin();
        assert!(!busy.end());
        assert!(!busy.finish());
        assert!(busy.end());
        // A call that comes too late is refused elsewhere; it does not end the run again.
        busy.begin();
        assert!(!busy.end());
    }
}

//! `CallCounter`: the running calls of a run. The run's end is recorded after the last of them, however they end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// Bit set in the count when the run has been told to end.
const ENDING_BIT: u64 = 1 << 63;

/// Counts calls and decides who must record the run's end.
#[derive(Debug, Default)]
pub(crate) struct CallCounter {
    count: AtomicU64,
    /// Whether someone records the run's end.
    sealed: AtomicBool,
    /// Whether the run's end is recorded.
    recorded: AtomicBool,
    idle: Notify,
}

impl CallCounter {
    /// Counts a call that begins.
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a call whose end is recorded. Returns true if it was the last of an ending run, whose end must now be recorded.
    pub(crate) fn end(&self) -> bool {
        let before = self.count.fetch_sub(1, Ordering::AcqRel);
        if before & !ENDING_BIT == 1 {
            self.idle.notify_waiters();
        }
        before == ENDING_BIT | 1 && self.seal()
    }

    /// Ends the run. Returns true if nothing runs, so that its end must be recorded at once.
    pub(crate) fn finish(&self) -> bool {
        self.count.fetch_or(ENDING_BIT, Ordering::AcqRel) == 0 && self.seal()
    }

    /// Notes that the run's end has been recorded.
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

    /// Waits until no call is running.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.count.load(Ordering::Acquire) & !ENDING_BIT == 0 {
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
    use super::CallCounter;

    #[test]
    fn the_end_is_recorded_once_and_after_the_last_call() {
        let idle = CallCounter::default();
        assert!(idle.finish());
        let busy = CallCounter::default();
        busy.begin();
        busy.begin();
        assert!(!busy.end());
        assert!(!busy.finish());
        assert!(busy.end());
        // A call that comes too late is refused elsewhere and does not end the run again.
        busy.begin();
        assert!(!busy.end());
    }
}

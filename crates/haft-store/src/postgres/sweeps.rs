//! `SweepClock`: when old suspended calls are deleted.

use std::sync::atomic::{AtomicI64, Ordering};

/// Interval between a process's sweeps of old suspended calls, in nanoseconds.
pub(crate) const SWEEP_NANOS: i64 = 3_600_000_000_000;

/// Time of this process's last sweep.
#[derive(Debug, Default)]
pub(crate) struct SweepClock(AtomicI64);

impl SweepClock {
    /// Returns whether a sweep is due, which is so once an hour.
    pub(crate) fn is_due(&self, now: i64) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        now.saturating_sub(last) >= SWEEP_NANOS && self.0.swap(now, Ordering::Relaxed) == last
    }
}

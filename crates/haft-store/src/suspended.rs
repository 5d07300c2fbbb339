//! Suspended calls in both databases.

use std::sync::atomic::{AtomicI64, Ordering};

use haft::approval::suspended::SuspendedError;

use crate::error::StoreError;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

/// Most suspended calls of a key that are looked at.
const MOST: i64 = 100;

/// How often a process sweeps old suspended calls, in nanoseconds.
const SWEEP: i64 = 3_600_000_000_000;

/// When this process swept last.
#[derive(Debug, Default)]
pub(crate) struct Sweeps(AtomicI64);

impl Sweeps {
    /// Whether it is time, which it is once an hour.
    pub(crate) fn is_due(&self, now: i64) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        now.saturating_sub(last) >= SWEEP && self.0.swap(now, Ordering::Relaxed) == last
    }
}

impl From<StoreError> for SuspendedError {
    fn from(error: StoreError) -> Self {
        Self(error.0)
    }
}

//! `Lease`: how processes that share a database know which of them are alive.

use std::time::Duration;

/// How long a process counts as alive after it last renewed its lease, and how often it renews while it waits for a decision or
/// runs a call. All processes that share a database must use the same values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// How long the lease lasts after a renewal.
    pub lasts: Duration,
    /// Interval between renewals: several within `lasts`, so that one may be late.
    pub beat: Duration,
}

impl Default for Lease {
    /// Five seconds, renewed every 1.5 seconds.
    fn default() -> Self {
        Self {
            lasts: Duration::from_secs(5),
            beat: Duration::from_millis(1500),
        }
    }
}

impl Lease {
    /// Returns the end of a lease that begins at `now`, in nanoseconds since 1970.
    #[cfg(feature = "sqlite")]
    pub(crate) fn until(self, now: i64) -> i64 {
        now.saturating_add(i64::try_from(self.lasts.as_nanos()).unwrap_or(i64::MAX))
    }
}

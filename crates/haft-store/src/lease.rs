//! `Lease`: how processes that share a database know of each other whether they are alive.

use std::time::Duration;

/// How long a process counts as alive after its last sign, and how often it gives one while it waits for a decision or carries
/// one out. All processes at a database use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// How long a sign lasts.
    pub lasts: Duration,
    /// How often a sign is given: several times within `lasts`, so that one may come late.
    pub beat: Duration,
}

impl Default for Lease {
    /// Five seconds, and a sign every one and a half.
    fn default() -> Self {
        Self {
            lasts: Duration::from_secs(5),
            beat: Duration::from_millis(1500),
        }
    }
}

impl Lease {
    /// The end of a lease that begins at `now`, in nanoseconds since 1970.
    #[cfg(feature = "sqlite")]
    pub(crate) fn until(self, now: i64) -> i64 {
        now.saturating_add(i64::try_from(self.lasts.as_nanos()).unwrap_or(i64::MAX))
    }
}

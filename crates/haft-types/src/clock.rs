//! The only module that reads the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Returns the current time, in the form of file times.
#[expect(clippy::disallowed_methods, reason = "this is the one clock function")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Returns the current time in nanoseconds since 1970 (UTC).
pub fn now() -> i128 {
    match wall().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    }
}

/// Formats a time as RFC 3339 in UTC with milliseconds: `2026-11-21T21:00:00.123Z`.
pub fn rfc3339(nanoseconds: i128) -> String {
    let time = Timestamp::from_nanosecond(nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

//! Conversion of numbers for databases.

/// Converts nanoseconds since 1970 to a signed 64-bit number, which lasts until 2262.
pub(crate) fn nanoseconds(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// Converts a count, saturating at the maximum of a signed number.
pub(crate) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

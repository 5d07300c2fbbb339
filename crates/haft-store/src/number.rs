//! Numbers as databases keep them.

/// Nanoseconds since 1970 in 64 bits with a sign: enough until 2262.
pub(crate) fn nanoseconds(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// A count; more than a signed number holds becomes the highest that it does.
pub(crate) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

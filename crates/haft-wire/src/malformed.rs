//! The error for input that is not JSON of a dialect, with the beginning of what was read.

use std::fmt::Display;

use crate::dialect::Dialect;
use crate::error::{WireError, quote};

impl WireError {
    /// Returns the error for input that is not in a dialect's format.
    pub(crate) fn malformed(
        dialect: Dialect,
        what: &'static str,
        reason: impl Display,
        read: &[u8],
    ) -> Self {
        let read = String::from_utf8_lossy(read.get(..400).unwrap_or(read));
        let reason = reason.to_string();
        Self::Malformed {
            dialect: dialect.as_str(),
            what,
            reason: format!("{}, in {}", quote(&reason), quote(&read)),
        }
    }
}

//! The error for what is not the JSON of a dialect, with the beginning of what was read.

use std::fmt::Display;

use crate::dialect::Dialect;
use crate::error::{WireError, quote};

impl WireError {
    /// What was read is not what a dialect sends.
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

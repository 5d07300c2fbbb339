//! `ApprovalId`: the id of an approval request.

use serde::{Deserialize, Serialize};

use crate::text::hex;

/// Number of random bytes in an id: too many to guess.
const ID_BYTES: usize = 12;

/// The permanent, globally unique id of a request: `ap-` and 24 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Creates an id from this text, unchecked.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Generates an id; `None` if the system has no randomness.
    pub fn generate() -> Option<Self> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).ok()?;
        Some(Self(format!("ap-{}", hex(&random))))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ApprovalId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl std::fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

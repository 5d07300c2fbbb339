//! `ApprovalId`: the name of a request.

use serde::{Deserialize, Serialize};

use crate::text::hex;

/// Random bytes of an id: nobody guesses one.
const ID_BYTES: usize = 12;

/// Names a request, for good and everywhere: `ap-` and 24 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Keeps an id as given.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// A fresh one; none where the system has no randomness to give.
    pub(crate) fn generate() -> Option<Self> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).ok()?;
        Some(Self(format!("ap-{}", hex(&random))))
    }

    /// The id as text.
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

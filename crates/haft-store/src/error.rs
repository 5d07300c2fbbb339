//! `StoreError`: why a database could not be opened or closed.

/// Why a database could not be opened or closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub(crate) String);

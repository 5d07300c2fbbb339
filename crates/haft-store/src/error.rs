//! `StoreError`: why a database could not be opened or closed.

use haft::error::HostFailure;

/// Why a database could not be opened or closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(#[source] pub(crate) HostFailure);

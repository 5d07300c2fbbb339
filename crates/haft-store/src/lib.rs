//! haft's durable store: which runs there are, what agents remember, and what waits for a person.

mod approvals;
pub mod journal;
mod lane;
pub mod postgres;
pub mod sqlite;

/// Why a database could not be opened or closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(String);

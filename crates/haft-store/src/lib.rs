//! haft's durable store, on `SQLite` or `PostgreSQL`: which runs there are, what agents remember, what waits for a person,
//! and what chains did.

mod approvals;
mod error;
pub mod journal;
mod lane;
pub mod postgres;
pub mod sqlite;

pub use error::StoreError;

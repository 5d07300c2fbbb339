//! haft's durable store, on `SQLite` or `PostgreSQL`: which runs there are, what agents remember, what waits for a person,
//! and what chains did; and large results in a bucket.

mod approvals;
mod error;
pub mod journal;
mod lane;
#[cfg(feature = "s3")]
pub mod objects;
pub mod postgres;
mod runs;
pub mod sqlite;

pub use error::StoreError;

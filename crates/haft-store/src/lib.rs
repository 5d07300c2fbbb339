//! haft's durable store, by what it stores: approval requests and the calls that wait for them (`inbox`), `runs`, the `journal`s of chains,
//! `memory` and `artifacts`, each on the databases that it supports. `sqlite` and `postgres` connect to the databases.
//!
//! Features: `sqlite` and `postgres`, each with everything but artifacts (memory is on `SQLite` alone), and `s3` for artifacts in
//! a bucket.

#[cfg(feature = "s3")]
pub mod artifacts;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "s3"))]
mod blocking;
mod error;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod inbox;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod journal;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "what waits for a server has a part of it")
)]
mod lane;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod lease;
#[cfg(feature = "sqlite")]
mod memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod number;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod request_changes;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod request_draft;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod runs;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use error::StoreError;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use lease::Lease;

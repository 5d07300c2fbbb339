//! The store against real database files, folders and servers.

mod asking;
mod cluster;
mod inbox;
mod inbox_bytes;
mod inbox_steps;
mod journal;
mod killed;
mod leases;
mod memory;
mod memory_search;
#[cfg(feature = "s3")]
mod objects;
#[cfg(feature = "s3")]
mod objects_life;
#[cfg(feature = "s3")]
mod objects_trouble;
#[cfg(feature = "s3")]
mod places;
mod processes;
mod request;
mod run_notes;
mod runs;
#[cfg(feature = "s3")]
#[path = "../bucket/server.rs"]
mod server;
mod suspended;
mod transition;
mod trouble;
mod unchanged;
mod upgrade;
mod upgrade_suspended;
mod waiting;

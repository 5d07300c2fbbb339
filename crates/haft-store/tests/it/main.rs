//! The store against real database files.

mod cluster;
mod inbox;
mod journal;
mod memory;
mod memory_search;
mod processes;
mod request;
mod runs;
mod trouble;
mod upgrade;

//! The store against real database files.

mod inbox;
mod memory;
mod memory_search;
mod request;
mod runs;

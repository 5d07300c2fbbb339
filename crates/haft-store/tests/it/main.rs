//! The store against real database files.

mod memory;
mod memory_search;
mod runs;

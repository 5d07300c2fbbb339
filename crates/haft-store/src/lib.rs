//! Run index and memory on `SQLite`: which runs there are and how each ended, what agents remember.

pub mod sqlite;

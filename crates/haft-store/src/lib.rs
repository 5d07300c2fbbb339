//! Run index on `SQLite`: which runs there are, and how each ended.

pub mod sqlite;

//! The memory of agents, in `SQLite`.

mod sqlite;

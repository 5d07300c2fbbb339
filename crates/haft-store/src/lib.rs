//! haft's durable store: which runs there are, what agents remember, and what waits for a person.

mod approvals;
mod lane;
pub mod sqlite;

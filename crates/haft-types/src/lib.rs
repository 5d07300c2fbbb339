//! The terms that haft's crates share: what a tool is ([`spec`]), which call it is ([`call`]), what it is permitted
//! ([`permission`]), and what went wrong ([`error`]).
//!
//! Also the few means that all of them need in one form: bounded and visible text, the time of a record, a lock of a file, work
//! that blocks. It judges nothing and runs nothing. `haft` re-exports every module under its own name.

pub mod approval_id;
pub mod beneath;
pub mod call;
pub mod clock;
pub mod error;
pub mod file_lock;
pub mod future;
mod opaque;
pub mod permission;
pub mod plural;
pub mod run_folder;
pub mod spec;
pub mod text;

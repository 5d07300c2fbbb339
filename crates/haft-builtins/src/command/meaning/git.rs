//! Git's repositories, read by haft itself: what a change set does to branches, tags, the index and stashes.
//!
//! The reader runs no git and no library but an unpacker, and says what it does not understand.

mod cached;
mod commit;
mod copy;
mod entries;
mod files;
mod headers;
mod history;
mod id;
mod incoming;
mod internals;
mod object;
mod pack;
mod reflogs;
mod refs;
mod rename;
mod repository;
mod rewrite;
mod staged;
mod state;
mod stash;
mod store;
mod tree;
mod update;
mod worktrees;

pub(in crate::command) use files::stored;
pub(in crate::command) use incoming::{Incoming, IncomingFile, incoming};
pub(super) use repository::{find_repositories, read_repository};

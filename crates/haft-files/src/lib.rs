//! A workspace's files: opened below one folder whatever links say ([`workspace`]), changed with a log, shown before they are
//! applied, and undone ([`change`], [`preview`]).
//!
//! Also what names of files tell by themselves: patterns over paths ([`paths`]) and the names of files that hold secrets
//! ([`secret_names`]). It judges nothing: which file a call may open or change is decided above it. `haft` re-exports the modules
//! `workspace` and `change` under these names.

pub mod change;
mod file_hash;
pub mod git_index;
pub mod glob;
mod path_text;
pub mod paths;
pub mod preview;
pub mod secret_names;
pub mod texts;
pub mod workspace;

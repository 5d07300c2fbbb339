//! Changes that calls make in the workspace: recorded before they happen, so that the user can see and undo them.
//!
//! Every change that haft makes to a file of a workspace goes through a [`Changer`]. The changer of a call writes what it is about to
//! change to the run's [`ChangeLog`], and saves the files that would be lost. What another program changes after haft agreed is a
//! [`ForeignChange`]. [`net`] folds a list of changes into one change per file, and [`undo`] plans and applies the reverse.

mod apply;
mod changer;
pub mod collect;
mod foreign;
mod git_undo;
pub mod log;
pub mod net;
mod state;
pub mod undo;

#[cfg(test)]
mod tests;

pub use crate::file_hash::{FileHash, FileHashError};
pub use crate::path_text::PathText;
pub use changer::Changer;
pub use foreign::ForeignChange;
pub use log::{ChangeLog, ChangesMade};
pub use state::EntryState;

use serde::{Deserialize, Serialize};

/// One change that a call made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeEntry {
    /// The path below the root, without links.
    pub path: PathText,
    /// The path it was moved from, if it was moved. Everything below a folder moves with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathText>,
    /// The state at `path` before; `None` if nothing was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<EntryState>,
    /// The state at `path` afterwards; `None` if nothing is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<EntryState>,
}

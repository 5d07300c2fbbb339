//! What calls change in the workspace: recorded before it happens, so that it can be shown and undone.
//!
//! Every change to a file of a workspace goes through a [`Changer`]. The changer of a call writes to the run's [`ChangeLog`]
//! what it is about to change, and saves the files that would be lost. [`net`] folds a list of changes into one change for
//! each file, and [`undo`] plans and applies the reverse.

mod apply;
mod changer;
pub mod collect;
pub mod log;
pub mod net;
mod state;
mod text;
pub mod undo;

#[cfg(test)]
mod tests;

pub use changer::Changer;
pub use log::{ChangeLog, ChangesMade};
pub use state::State;
pub use text::PathText;

use serde::{Deserialize, Serialize};

/// One thing that a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeEntry {
    /// Where, below the root and without links.
    pub path: PathText,
    /// Where it was, if it was moved here. All below a folder moves with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathText>,
    /// What lay at `path` before; nothing where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<State>,
    /// What lies there afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<State>,
}

//! What calls change in the workspace: noted before it is done, so that it can be shown, and undone.
//!
//! A [`Changer`] is all by which the files of a workspace are changed. That of a call notes in the run's [`ChangeLog`]
//! what it is about to change, with the text that would be lost. [`net`](net::net) says what some changes came to, file by
//! file, and [`undo`] what takes them back.

mod changer;
pub mod log;
pub mod net;
mod state;
mod text;
pub mod undo;

#[cfg(test)]
mod tests;

pub use changer::Changer;
pub use log::ChangeLog;
pub use state::State;
pub use text::PathText;

use serde::{Deserialize, Serialize};

/// One thing that a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
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

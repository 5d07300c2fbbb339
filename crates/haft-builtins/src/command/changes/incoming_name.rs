//! `IncomingName`: a file that a repository gets or loses, as a request states it.

use haft::change::PathText;
use haft::permission::{PathClaim, Permission};
use serde::{Deserialize, Serialize};

use crate::command::changes::effects::ChangeEffects;

/// A file that a repository gets or loses, by one of its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct IncomingName {
    /// The changed path that brings it.
    pub(super) carrier: PathText,
    /// The path that a work tree would have.
    pub(super) path: PathText,
    /// Where it leads, if it is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) link: Option<String>,
    /// True if the repository loses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_removed: bool,
}

impl IncomingName {
    /// Returns the permission to change it.
    pub(super) fn permission(&self, effects: &ChangeEffects<'_>) -> Permission {
        let claim = PathClaim {
            path: self.path.0.to_string_lossy().into_owned(),
            target: self.link.clone(),
        };
        effects.by_claim(if self.is_removed {
            Permission::remove(claim)
        } else {
            Permission::write(claim)
        })
    }
}

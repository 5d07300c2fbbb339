//! `WorkspaceMismatch`: why a policy does not judge a tool's workspace.

use crate::Policy;
use haft_files::workspace::Workspace;

/// Why a policy does not judge a tool's workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceMismatch {
    /// The policy has no workspace.
    #[error("the tool works in {0:?}, but the policy has no workspace")]
    Nowhere(String),
    /// The policy has a different workspace.
    #[error("the tool works in {0:?}, but the policy judges paths in {1:?}")]
    Elsewhere(String, String),
    /// The policy has different hidden paths.
    #[error("the tool and the policy hide different paths of {0:?}")]
    Hidden(String),
}

impl Policy {
    /// Checks that this is the workspace that the policy judges.
    ///
    /// # Errors
    /// What differs, and how the host can make the two agree.
    pub fn judges(&self, workspace: &Workspace) -> Result<(), WorkspaceMismatch> {
        let root = workspace.root().to_string_lossy();
        match &self.places.workspace {
            None => Err(WorkspaceMismatch::Nowhere(root.into_owned())),
            Some(own) if *own != root => {
                Err(WorkspaceMismatch::Elsewhere(root.into_owned(), own.clone()))
            }
            Some(_) if self.hidden != *workspace.hidden() => {
                Err(WorkspaceMismatch::Hidden(root.into_owned()))
            }
            Some(_) => Ok(()),
        }
    }
}

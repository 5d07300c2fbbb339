//! `Profile`: the verdict where no rule matches.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The verdict where no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Safe tools run; everything else is denied, and no rule changes that.
    ReadOnly,
    /// Safe tools run; everything else needs approval.
    #[default]
    Workspace,
    /// Writes in the workspace, jailed commands and the host's own tools run; network access, servers' tools and critical effects need
    /// approval.
    Trusted,
}

impl Profile {
    /// Returns the name used in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::Trusted => "trusted",
        }
    }

    /// Returns the text that a ruling shows when the profile decided.
    pub(crate) fn as_rule(self) -> &'static str {
        match self {
            Self::ReadOnly => "profile read-only",
            Self::Workspace => "profile workspace",
            Self::Trusted => "profile trusted",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When the profile `workspace` asks for approval of a command that no rule names (`policy.commands`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandPolicy {
    /// After the command ran on a copy of the workspace, about its changes; before it runs where it cannot have a copy.
    #[default]
    Copy,
    /// Before it runs.
    Ask,
}

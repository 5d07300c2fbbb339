//! `PolicyContext`: the folders and tool classes that a policy knows before it judges.

use crate::classes::Classes;

/// What a policy knows by name: the folder that relative paths start at, the user's home folder, and the classes of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyContext {
    /// The workspace's root, absolute and cleaned.
    pub workspace: Option<String>,
    /// The user's home folder, absolute and cleaned.
    pub home: Option<String>,
    /// The classes that tools declare. They tell what a rule with a tool's name and a specifier, such as `run_command(npm test)`, covers.
    pub classes: Classes,
    /// Whether the files of the workspace count as untrusted content.
    pub distrusts_workspace: bool,
    /// Whether commands in the jail share the machine's network, so that their connections are not judged separately.
    pub commands_reach_out: bool,
}

impl PolicyContext {
    /// Whether rules mean the same here and there: they name the same paths, and their tools have the same classes.
    pub(crate) fn reads_rules_as(&self, other: &Self) -> bool {
        self.workspace == other.workspace
            && self.home == other.home
            && self.classes == other.classes
    }
}

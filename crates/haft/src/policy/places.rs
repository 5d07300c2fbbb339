//! `Places`: what a policy knows by name before it judges: folders, and the classes of tools.

use super::classes::Classes;

/// What a policy knows by name: the folder its relative paths start at, the user's own, and which tools are of which class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The workspace's root, absolute and cleaned.
    pub workspace: Option<String>,
    /// The user's home folder, absolute and cleaned.
    pub home: Option<String>,
    /// The classes that tools declare: what a rule with a tool's name and a specifier, such as `run_command(npm test)`, speaks of.
    pub classes: Classes,
}

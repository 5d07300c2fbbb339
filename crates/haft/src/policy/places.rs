//! `Places`: folders that a policy knows by name.

/// Places a policy knows by name: the folder its relative paths start at, and the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The workspace's root, absolute and cleaned.
    pub workspace: Option<String>,
    /// The user's home folder, absolute and cleaned.
    pub home: Option<String>,
}

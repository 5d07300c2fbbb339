//! `Meaning`: what part of a change set amounts to, as a person reads it: a commit, a lockfile's packages, a picture.

use serde::{Deserialize, Serialize};

use crate::approval::preview::FileChange;

/// What kind of change it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MeaningKind {
    /// A branch gets a new commit.
    Commit,
    /// A commit replaces the last one.
    Amend,
    /// A branch gets the commits of others.
    Merge,
    /// Commits are made anew on another base.
    Rebase,
    /// Commits are copied from elsewhere.
    CherryPick,
    /// A tag is made, moved or deleted.
    Tag,
    /// A branch is made, moved or deleted.
    Branch,
    /// Uncommitted changes are put aside or taken back.
    Stash,
    /// A branch, the index or files go back to an earlier state.
    Reset,
    /// Another branch or commit is checked out.
    Checkout,
    /// Files are put into git's index, or taken out of it.
    Staged,
    /// Packages of a lockfile change.
    Lockfile,
    /// Cells of a notebook change.
    Notebook,
    /// A picture changes.
    Image,
    /// An archive changes.
    Archive,
    /// A generated or minified file changes.
    Generated,
    /// Files that git ignores change.
    Ignored,
    /// Files that git keeps for itself.
    GitInternals,
    /// How the command ended that left the changes, if not well.
    Command,
}

/// What part of a change set amounts to. All texts are shown as they are: they come from files that a command wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    /// What kind of change it is.
    pub kind: MeaningKind,
    /// The whole in one line: "commit 'Fix discount' on main: 3 files, +12 −4".
    pub title: String,
    /// What a person should see before anything else, one sentence each: commits that become unreachable, packages from another
    /// registry, what could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Further facts, a line each: the rest of a commit's message, the packages of a lockfile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The files that change, as a diff: those of a commit, not those in which git stores it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// What it consists of: the commits of a rebase, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Meaning>,
    /// The picture before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<Pictures>,
    /// The changed paths that screens fold: what git keeps for itself, pictures. All other files stay visible beside what they mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
}

impl Meaning {
    /// Creates a meaning that consists of its title.
    pub fn new(kind: MeaningKind, title: impl Into<String>) -> Self {
        Self {
            kind,
            title: title.into(),
            warnings: Vec::new(),
            lines: Vec::new(),
            files: Vec::new(),
            parts: Vec::new(),
            pictures: None,
            covers: Vec::new(),
        }
    }
}

/// A picture before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pictures {
    /// The picture that is there now; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Picture>,
    /// The picture after the change; `None` if it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Picture>,
}

/// A picture, small enough to be shown beside a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The file's media type.
    pub media_type: String,
    /// The file's width, in pixels.
    pub width: u32,
    /// The file's height, in pixels.
    pub height: u32,
    /// The file's size, in bytes.
    pub bytes: u64,
    /// A smaller copy as PNG, in base64; `None` if it could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thumbnail: Option<String>,
}

//! `FileChange`: what a call would do to a file, shown before the decision; the approval is bound to the file as it was.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::change::PathText;
use haft_types::text::hex;

mod budget;
mod content;
mod lines;
mod texts;

#[cfg(test)]
mod tests;

pub use budget::{ChangeSide, Preview, SideOpener};
pub use content::{ContentPage, SideContent};
pub use texts::TextVisitor;

/// Maximum length, in bytes, of the text of files that a request shows.
pub const MAX_TEXT: usize = 1 << 20;
/// Maximum length, in bytes, of a side that is shown whole; of a longer one a request shows what differs.
pub const MAX_WHOLE: usize = 32 << 10;
/// Maximum number of files whose content a request shows.
pub const MAX_DETAILED: usize = 1_000;
/// Maximum number of files that a request names one by one.
pub const MAX_LISTED: usize = 2_000;

/// What happens to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is created.
    Create,
    /// Its text changes.
    Change,
    /// It is deleted.
    Delete,
    /// It is renamed.
    Move,
}

/// What of a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// Its content.
    #[default]
    Content,
    /// Its permissions, or those of a folder: each side is a line with them.
    Mode,
    /// The target of a link: each side is a line with it.
    Link,
    /// A file becomes a link: the new side is a line with the target.
    BecomesLink,
    /// A link becomes a file: the old side is a line with the target.
    WasLink,
    /// It is an empty folder.
    Folder,
}

impl Aspect {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_content(&self) -> bool {
        *self == Self::Content
    }
}

/// A file before and after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path, as the call names it.
    pub path: String,
    /// The path that its links lead to, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What happens to it.
    pub action: FileChangeKind,
    /// What of it changes. Two entries can have the same path.
    #[serde(default, skip_serializing_if = "Aspect::is_content")]
    pub aspect: Aspect,
    /// Its new path, if it is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its current text, if it is shown whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its text after the call, if it is shown whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The SHA-256 of all its bytes now, in hex; `None` if it does not exist or is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<String>,
    /// Whether it is binary, so that neither side is shown: it has NUL bytes, or is mostly not UTF-8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Whether not everything that changes is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clipped: bool,
    /// The changed lines with some around them, if the sides are too long to be shown whole. Then both sides are absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// Why nothing of the content is shown, as the end of a sentence, if it is neither binary nor cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<String>,
    /// Its current size, in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_bytes: Option<u64>,
    /// Its size after the call, in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u64>,
    /// The SHA-256 of all its bytes after the call, in hex, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_sha256: Option<String>,
    /// Whether bytes that are not UTF-8 are shown as `\xNN`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escaped: bool,
    /// The number of lines that are added, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// The number of lines that are removed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// The number of files in a folder that this entry stands for, if it is not one file. `path` is the folder, and `after_sha256` covers
    /// their paths, sizes and hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Where git stores the two sides, if it is a file of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredSides>,
}

/// The two sides of a file as objects of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSides {
    /// The repository's folder with its objects, below the workspace's root.
    pub repository: PathText,
    /// The name of the object before; `None` if there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The name of the object afterwards; `None` if it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Lines of a file that change together, with some lines around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The number of its first line before the change; the first line of a file is 1.
    pub before_line: u32,
    /// The number of its first line after the change.
    pub after_line: u32,
    /// Its lines before the change.
    pub before: String,
    /// Its lines after the change.
    pub after: String,
}

impl FileChange {
    /// Creates the change of a file from `before` (`None` if it does not exist) to `after` (`None` if it is deleted), with a budget of its
    /// own. For several files use a [`Preview`].
    pub fn new(path: impl Into<String>, before: Option<&[u8]>, after: Option<&[u8]>) -> Self {
        let mut preview = Preview::default();
        let change = Self::hashed(path, before, after);
        preview.add(change.clone(), before.into(), after.into());
        preview.into_changes().pop().unwrap_or(change)
    }

    /// Creates the change of a file without its content: action, hashes and sizes.
    pub fn hashed(path: impl Into<String>, before: Option<&[u8]>, after: Option<&[u8]>) -> Self {
        let digest = |bytes: &[u8]| hex(&Sha256::digest(bytes));
        Self {
            action: match (before, after) {
                (None, _) => FileChangeKind::Create,
                (Some(_), Some(_)) => FileChangeKind::Change,
                (Some(_), None) => FileChangeKind::Delete,
            },
            before_sha256: before.map(digest),
            after_sha256: after.map(digest),
            before_bytes: before.map(|bytes| bytes.len() as u64),
            after_bytes: after.map(|bytes| bytes.len() as u64),
            ..Self::unread(path)
        }
    }

    /// Creates the change of a file of which nothing is known yet.
    pub fn unread(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            target: None,
            action: FileChangeKind::Change,
            aspect: Aspect::Content,
            to: None,
            before: None,
            after: None,
            before_sha256: None,
            binary: false,
            clipped: false,
            hunks: Vec::new(),
            folded: None,
            before_bytes: None,
            after_bytes: None,
            after_sha256: None,
            escaped: false,
            added: None,
            removed: None,
            files: None,
            stored: None,
        }
    }

    /// Returns the name by which the rest of the file is found: its path, for a file of a commit after the name of its object and a
    /// colon, since the path may be that of other files too.
    pub fn whole_name(&self) -> String {
        let path = self.to.as_ref().unwrap_or(&self.path);
        let stored = self.stored.as_ref();
        let object = stored.and_then(|stored| stored.after.as_ref().or(stored.before.as_ref()));
        match object {
            Some(object) => format!("{object:.12}:{path}"),
            None => self.path.clone(),
        }
    }

    /// Returns whether one of these paths stands for this entry too. A changed mode is always shown by itself.
    pub fn is_among(&self, paths: &HashSet<&str>) -> bool {
        self.aspect != Aspect::Mode && paths.contains(&*self.path)
    }

    /// Sets the path that the file's links lead to.
    pub fn leading_to(mut self, target: Option<String>) -> Self {
        self.target = target;
        self
    }

    /// Marks the file as moved to another path.
    pub fn moved(mut self, to: impl Into<String>) -> Self {
        self.action = FileChangeKind::Move;
        self.to = Some(to.into());
        self
    }

    /// Shows nothing of the content, for a reason that ends a sentence.
    pub fn fold(&mut self, why: impl Into<String>) {
        (self.before, self.after) = (None, None);
        self.hunks.clear();
        (self.clipped, self.escaped) = (false, false);
        self.folded = Some(why.into());
    }

    /// Returns the numbers of lines that are added and removed, if both are known.
    pub fn lines(&self) -> Option<(u64, u64)> {
        self.added.zip(self.removed)
    }

    /// Returns what is shown of the content: each piece with the numbers of its first lines. A file that is shown whole is one piece.
    pub fn pieces(&self) -> Vec<Hunk> {
        if self.before.is_none() && self.after.is_none() {
            return self.hunks.clone();
        }
        vec![Hunk {
            before_line: 1,
            after_line: 1,
            before: self.before.clone().unwrap_or_default(),
            after: self.after.clone().unwrap_or_default(),
        }]
    }

    /// Returns the length of the content that it shows, in bytes.
    pub fn text_bytes(&self) -> usize {
        let sides = [&self.before, &self.after];
        let sides = sides.into_iter().flatten().map(String::len);
        let hunks = self
            .hunks
            .iter()
            .map(|hunk| hunk.before.len() + hunk.after.len());
        sides.chain(hunks).sum()
    }

    /// Whether both change the same file in the same way. How much of it is shown does not matter if hashes are known.
    pub fn is_same(&self, other: &Self) -> bool {
        let hashed = |change: &Self| {
            let known =
                |bytes: Option<u64>, hash: &Option<String>| bytes.is_some() == hash.is_some();
            let any = change.before_sha256.is_some() || change.after_sha256.is_some();
            any && known(change.before_bytes, &change.before_sha256)
                && known(change.after_bytes, &change.after_sha256)
        };
        if !hashed(self) || !hashed(other) {
            return self == other;
        }
        let identity = |change: &Self| {
            let Self {
                path,
                target,
                action,
                aspect,
                to,
                before_sha256,
                after_sha256,
                before_bytes,
                after_bytes,
                files,
                ..
            } = change.clone();
            let place = (path, target, action, aspect, to, files);
            (
                place,
                before_sha256,
                after_sha256,
                before_bytes,
                after_bytes,
            )
        };
        identity(self) == identity(other)
    }
}

//! `FileChange`: what a call would do to a file, shown before the decision; the approval is bound to the file as it was.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::text::hex;

/// Maximum length, in bytes, of the text that a preview holds of each side.
pub const MAX_SIDE: usize = 256 * 1024;

/// What happens to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is created.
    Create,
    /// Its text changes.
    Change,
    /// It is deleted.
    Delete,
    /// It is renamed.
    Move,
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
    pub action: Change,
    /// Its new path, if it is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its current text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its text after the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The hash of its current content; `None` if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<String>,
    /// Whether it is binary, so that neither side is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Whether a side was too long and is cut.
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
    /// The hash of its content after the call, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_sha256: Option<String>,
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
    /// Creates the change of a file from `before` (`None` if it does not exist) to `after` (`None` if it is deleted).
    pub fn new(path: impl Into<String>, before: Option<&[u8]>, after: Option<&[u8]>) -> Self {
        let action = match (before, after) {
            (None, _) => Change::Create,
            (Some(_), Some(_)) => Change::Change,
            (Some(_), None) => Change::Delete,
        };
        let mut change = Self {
            path: path.into(),
            target: None,
            action,
            to: None,
            before: None,
            after: None,
            before_sha256: before.map(|bytes| hex(&Sha256::digest(bytes))),
            binary: false,
            clipped: false,
            hunks: Vec::new(),
            folded: None,
            before_bytes: before.map(|bytes| bytes.len() as u64),
            after_bytes: after.map(|bytes| bytes.len() as u64),
            after_sha256: after.map(|bytes| hex(&Sha256::digest(bytes))),
        };
        change.before = before.and_then(|bytes| change.side(bytes));
        change.after = after.and_then(|bytes| change.side(bytes));
        if change.binary {
            (change.before, change.after) = (None, None);
        }
        change
    }

    /// Sets the path that the file's links lead to.
    pub fn leading_to(mut self, target: Option<String>) -> Self {
        self.target = target;
        self
    }

    /// Marks the file as moved to another path.
    pub fn moved(mut self, to: impl Into<String>) -> Self {
        self.action = Change::Move;
        self.to = Some(to.into());
        self
    }

    fn side(&mut self, bytes: &[u8]) -> Option<String> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.binary = true;
            return None;
        };
        let end = text.floor_char_boundary(MAX_SIDE);
        self.clipped |= end < text.len();
        text.get(..end).map(str::to_owned)
    }
}

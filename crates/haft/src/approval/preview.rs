//! `FileChange`: what a call would make of a file, shown before it is decided; the approval is bound to the file as it was.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::text::hex;

/// The longest text of one side that a preview holds, in bytes.
pub const MAX_SIDE: usize = 256 * 1024;

/// What becomes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is made.
    Create,
    /// Its text changes.
    Change,
    /// It goes.
    Delete,
    /// It gets another name.
    Move,
}

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file, as the call names it.
    pub path: String,
    /// Where its links lead, when that is another path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What becomes of it.
    pub action: Change,
    /// Its new name, where it is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its text now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its text then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The hash of all its bytes now; none where it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<String>,
    /// It is not text, so neither side is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// A side was too long and is cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clipped: bool,
}

impl FileChange {
    /// A change of a file from these bytes (none where it does not exist) to those (none where it goes).
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
        };
        change.before = before.and_then(|bytes| change.side(bytes));
        change.after = after.and_then(|bytes| change.side(bytes));
        if change.binary {
            (change.before, change.after) = (None, None);
        }
        change
    }

    /// The same change of the file that links lead to.
    pub fn leading_to(mut self, target: Option<String>) -> Self {
        self.target = target;
        self
    }

    /// The same file under another name.
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

//! The part of a command's result that lists its changes.

use haft::change::EntryState;
use haft::change::collect::ViewChange;
use haft::change::net::ChangeKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of merely added or modified files that a result names.
const MAX_NAMED: usize = 200;

/// A change of a command that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// `create`, `modify`, `delete`, `replace` or `chmod`.
    pub action: String,
    /// The size of the file afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl AppliedChange {
    pub(super) fn of(change: &ViewChange<'_>) -> Self {
        let bytes = match &change.after {
            Some(EntryState::File { bytes, .. }) => Some(*bytes),
            _ => None,
        };
        Self {
            path: change.path.to_string_lossy().into_owned(),
            action: change.action.as_str().to_owned(),
            bytes,
        }
    }

    /// Returns true if a list may count the change without naming it, because it deletes nothing.
    fn only_adds(&self) -> bool {
        [ChangeKind::Create, ChangeKind::Modify]
            .iter()
            .any(|action| action.as_str() == self.action)
    }
}

/// A change of a command that was not applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnappliedChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// The reason.
    pub why: String,
    /// The artifact with the command's version, if another program changed the file, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// What became of the times that a command left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TimesReport {
    /// Number of files and folders that got their time.
    pub(super) set: u64,
    /// Says of the others that they kept theirs, and why.
    pub(super) note: Option<String>,
}

impl TimesReport {
    /// Creates the report of times none of which is set, for this reason.
    pub(super) fn withheld(why: &str) -> Self {
        Self {
            set: 0,
            note: Some(format!(
                "the times of files that were only touched were not set: {why}"
            )),
        }
    }
}

/// Adds the changes to name to those that are named, and returns the number of other files that were added or modified. Deleted and
/// replaced files and mode changes are always named.
pub(super) fn add_named(
    named: &mut Vec<AppliedChange>,
    changes: impl Iterator<Item = AppliedChange>,
) -> u64 {
    let (mut adding, mut more) = (named.iter().filter(|one| one.only_adds()).count(), 0);
    for change in changes {
        adding += usize::from(change.only_adds());
        if change.only_adds() && adding > MAX_NAMED {
            more += 1;
        } else {
            named.push(change);
        }
    }
    more
}

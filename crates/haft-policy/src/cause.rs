//! `Cause`: what asks about a call, as data that approvers and grants compare.

use serde::{Deserialize, Serialize};

/// The kind of a [`Cause`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The profile, where no rule matches.
    Profile,
    /// An ask rule.
    Rule,
    /// A file whose name marks it as secret.
    Secret,
    /// A guard.
    Guard,
    /// A budget that is used up.
    Budget,
    /// The limit on the risk of a script's calls.
    RiskLimit,
    /// A kind that a later version of haft knows.
    #[serde(other)]
    Other,
}

/// Something that asks about a call. A call may have several causes: a rule asks about it, and so does a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its kind.
    pub kind: CauseKind,
    /// The rule as written, or the name of the profile, guard or setting.
    pub name: String,
    /// Whether its question depends on what the run has done, so that an earlier answer does not count now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_time: bool,
}

impl Cause {
    /// Creates a cause whose answer may hold for the same call later.
    pub fn new(kind: CauseKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            each_time: false,
        }
    }

    /// Marks it as one whose answer holds for one call only.
    #[must_use]
    pub fn each_time(mut self, each_time: bool) -> Self {
        self.each_time = each_time;
        self
    }

    /// Whether only a person may answer it: it stands over all rules, so no setting that approves calls by itself does.
    pub fn needs_person(&self) -> bool {
        matches!(
            self.kind,
            CauseKind::Guard | CauseKind::Budget | CauseKind::Other
        )
    }
}

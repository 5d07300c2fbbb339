//! `RunProperties`: the three properties of the [Rule of Two](crate::RuleOfTwoState).

use serde::{Deserialize, Serialize};

/// Which of the three a run holds, or a call adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunProperties {
    /// It has read what strangers may have written.
    pub untrusted: bool,
    /// It has seen private data: files, what a command can see, memories, answers of servers that reach nobody else.
    pub private: bool,
    /// It could have sent something out after it had seen private data.
    pub sends: bool,
}

impl RunProperties {
    /// None of them.
    pub const NONE: Self = Self {
        untrusted: false,
        private: false,
        sends: false,
    };

    /// Returns what either has.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            untrusted: self.untrusted || other.untrusted,
            private: self.private || other.private,
            sends: self.sends || other.sends,
        }
    }

    /// Whether it has all three.
    pub fn is_all(self) -> bool {
        self.untrusted && self.private && self.sends
    }

    /// Whether it has none.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Returns what it has, in the words of screens.
    pub fn words(self) -> Vec<&'static str> {
        let all = [
            (self.untrusted, "read untrusted content"),
            (self.private, "seen private data"),
            (self.sends, "sent"),
        ];
        let held = all.into_iter().filter(|(has, _)| *has);
        held.map(|(_, words)| words).collect()
    }
}

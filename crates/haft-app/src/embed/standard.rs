//! `Standard`: the bundles of standard tools that a program selects.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of bundles of standard tools; `|` combines them.
///
/// ```
/// use haft_app::Standard;
///
/// let wanted = Standard::FILES | Standard::COMMANDS;
/// assert!(wanted.contains(Standard::FILES) && !wanted.contains(Standard::WEB));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Standard(u16);

/// Each bundle with its words in settings.
const WORDS: [(Standard, &str, &[&str]); 9] = [
    (Standard::FILES, "FILES", &["files"]),
    (Standard::COMMANDS, "COMMANDS", &["commands"]),
    (Standard::WEB, "WEB", &["web"]),
    (Standard::MEMORY, "MEMORY", &["memory"]),
    (Standard::SKILLS, "SKILLS", &["skills"]),
    (Standard::DISCOVER, "DISCOVER", &["discover"]),
    (Standard::SCRIPTS, "SCRIPTS", &["chain"]),
    (Standard::TODO, "TODO", &["todo_write", "todo_read"]),
    (
        Standard::QUESTIONS,
        "QUESTIONS",
        &["ask_user", "propose_rule"],
    ),
];

impl Standard {
    /// No standard tools, only the program's own.
    pub const NONE: Self = Self(0);
    /// Files of the workspace: read, write, patch, find, view images.
    pub const FILES: Self = Self(1);
    /// Commands in the jail.
    pub const COMMANDS: Self = Self(1 << 1);
    /// Web pages, and web search if `web.search.provider` names a service.
    pub const WEB: Self = Self(1 << 2);
    /// Memory across runs.
    pub const MEMORY: Self = Self(1 << 3);
    /// Skills of the workspace and the user.
    pub const SKILLS: Self = Self(1 << 4);
    /// Search for tools.
    pub const DISCOVER: Self = Self(1 << 5);
    /// Scripts that call tools (`tool_chain`), if there is a `python3`.
    pub const SCRIPTS: Self = Self(1 << 6);
    /// The run's to-do list.
    pub const TODO: Self = Self(1 << 7);
    /// Questions to the user, and rules proposed to them (`ask_user`, `propose_rule`).
    pub const QUESTIONS: Self = Self(1 << 8);
    /// All bundles, as on the command line.
    pub const ALL: Self = Self((1 << 9) - 1);

    /// Returns whether all bundles of `other` are selected.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any bundle of `other` is selected.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the settings words of the bundles that are not selected. `read_artifact` comes with any bundle: their results may be large.
    pub(crate) fn unselected(self) -> Vec<&'static str> {
        let others = WORDS.iter().filter(|(one, _, _)| !self.contains(*one));
        let mut words: Vec<&str> = others
            .flat_map(|(_, _, words)| words.iter().copied())
            .collect();
        if self == Self::NONE {
            words.push("read_artifact");
        }
        words
    }
}

impl BitOr for Standard {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Standard {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Debug for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = WORDS.iter().filter(|(one, _, _)| self.contains(*one));
        f.debug_set()
            .entries(names.map(|(_, name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Standard;

    #[test]
    fn what_is_not_wanted_is_switched_off_by_its_word() {
        assert!(Standard::ALL.unselected().is_empty());
        assert!(Standard::NONE.unselected().contains(&"read_artifact"));
        let files = (Standard::FILES | Standard::COMMANDS).unselected();
        let expect = [
            "web",
            "memory",
            "skills",
            "discover",
            "chain",
            "todo_write",
            "todo_read",
            "ask_user",
            "propose_rule",
        ];
        assert_eq!(files, expect);
        assert_eq!(
            format!("{:?}", Standard::FILES | Standard::WEB),
            r#"{"FILES", "WEB"}"#
        );
    }
}

//! `CommandMeaning`: what one command does.

use crate::path_use::PathUse;

/// What one command does, as far as its words show. The file of its program in `programs/` states all of it in one place.
///
/// None of these programs connects to anything: a command that names an address is unknown, and [`uses`](crate::uses()) finds the address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a command has or has not"
)]
pub struct CommandMeaning {
    /// The paths that it uses. If it is unknown what else it does, these are at least the files that it shows.
    pub uses: Vec<PathUse>,
    /// Whether it needs no rule in a jail, because it only reads and prints: clause 4 of the shell rules. There its words may name
    /// anything; only their options must be harmless.
    pub only_reads: bool,
    /// The positions of the words whose files or folders it removes, counted from its name; `None` if it removes none.
    pub destroys: Option<Vec<usize>>,
    /// Whether it may do more than this says.
    pub unknown: bool,
    /// Whether it shows the files that it uses, or something about them, so that rules on reading cover them: clause 14.
    pub shows: bool,
    /// Whether it may also show files that no word names.
    pub shows_more: bool,
    /// Whether it creates links, by whose names the rest of its line may use other files.
    pub links: bool,
    /// Whether it is git, which obeys the repository's settings.
    pub git: bool,
    /// Whether it prints the shell's expansion of another command's output, which may be file names.
    pub globs_output: bool,
    /// Whether it prints only its own words, or facts about the system.
    pub prints_words: bool,
}

impl CommandMeaning {
    /// Creates the meaning of a command that uses these paths and does nothing else.
    pub(crate) fn of(uses: Vec<PathUse>) -> Self {
        Self {
            uses,
            ..Self::default()
        }
    }

    /// Creates the meaning of a command that shows these files and does nothing else.
    pub(crate) fn showing(uses: Vec<PathUse>) -> Self {
        Self {
            shows: true,
            ..Self::of(uses)
        }
    }

    /// Creates the meaning of a command of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            unknown: true,
            ..Self::default()
        }
    }

    /// Says that it may do more.
    pub(crate) fn or_more(self) -> Self {
        Self {
            unknown: true,
            ..self
        }
    }
}

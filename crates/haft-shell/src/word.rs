//! Words of a command: their text, and what of it is only known when the command runs.

use std::ops::{BitOr, BitOrAssign};

/// What of a word is only known when the command runs: a set of the expansions that the shell would make in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expansions(u8);

impl Expansions {
    /// Nothing: the text is the word.
    pub const NONE: Self = Self(0);
    /// The value of a variable, or of arithmetic.
    pub const VALUE: Self = Self(1);
    /// What a command prints: `$(…)`, backticks, `<(…)`.
    pub const OUTPUT: Self = Self(2);
    /// Names of files that a pattern matches.
    pub const GLOB: Self = Self(4);
    /// `{a,b}`.
    pub const BRACE: Self = Self(8);
    /// A home folder: `~`.
    pub const TILDE: Self = Self(16);
    /// The word may become several words, or none.
    pub const SPLIT: Self = Self(32);

    /// True where the shell expands nothing.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// True where both sets have an expansion in common.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Expansions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Expansions {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text with its quotes undone. What is only known at run time is as written; `$()` stands for a substitution.
    pub text: String,
    /// What of it is only known at run time.
    pub expansions: Expansions,
}

/// A word of a command: a [`Word`] of a line, or a text that is passed to a program as it is.
pub trait AsWord {
    /// The text, as in [`Word::text`].
    fn text(&self) -> &str;
    /// What of it is only known at run time.
    fn expansions(&self) -> Expansions;
    /// True where all of it is known.
    fn is_known(&self) -> bool {
        self.expansions().is_empty()
    }
}

impl AsWord for Word {
    fn text(&self) -> &str {
        &self.text
    }

    fn expansions(&self) -> Expansions {
        self.expansions
    }
}

impl AsWord for String {
    fn text(&self) -> &str {
        self
    }

    fn expansions(&self) -> Expansions {
        Expansions::NONE
    }
}

/// True for `NAME=value`, `NAME+=value` and `NAME[index]=value`.
pub(crate) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

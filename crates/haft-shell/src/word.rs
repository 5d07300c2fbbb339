//! The words of a command: their text, and which parts are known only when the command runs.

use std::ops::{BitOr, BitOrAssign};

/// The set of expansions that the shell makes in a word, whose results are known only when the command runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expansions(u8);

impl Expansions {
    /// No expansion: the text is the word.
    pub const NONE: Self = Self(0);
    /// The value of a variable or of arithmetic.
    pub const VALUE: Self = Self(1);
    /// The output of a command: `$(…)`, backticks, `<(…)`.
    pub const OUTPUT: Self = Self(2);
    /// The file names that a pattern matches.
    pub const GLOB: Self = Self(4);
    /// `{a,b}`.
    pub const BRACE: Self = Self(8);
    /// A home folder: `~`.
    pub const TILDE: Self = Self(16);
    /// The word may become several words or none.
    pub const SPLIT: Self = Self(32);
    /// The word is one expansion whose value is a whole number or nothing, so that it splits into no more than one word.
    pub const NUMBER: Self = Self(64);

    /// Returns true if the shell expands nothing.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Returns true if the word may become several words.
    pub fn may_split(self) -> bool {
        self.intersects(Self::SPLIT) && !self.intersects(Self::NUMBER)
    }

    /// Returns the set without these.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if the two sets share an expansion.
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

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text without its quotes. Expansions are as written; `$()` stands for a substitution.
    pub text: String,
    /// The expansions in the word.
    pub expansions: Expansions,
}

/// A word of a command: a [`Word`] of a line, or a text passed to a program as it is.
pub trait AsWord {
    /// Returns the text, as in [`Word::text`].
    fn text(&self) -> &str;
    /// Returns the expansions in the word.
    fn expansions(&self) -> Expansions;
    /// Returns true if the whole word is known before the command runs.
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

/// Returns true for `NAME=value`, `NAME+=value` and `NAME[index]=value`.
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

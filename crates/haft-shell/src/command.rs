//! `SimpleCommand`: one simple command of a line.

use crate::word::{AsWord, Word};

/// What an assignment sets a variable to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignedValue {
    /// This word.
    Word(Word),
    /// The path of a file or folder that `mktemp` has just made.
    Fresh,
    /// More than that: it adds to the value.
    Unknown,
}

/// A simple command: its variable assignments and its words. Commands in its substitutions are separate commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Names of the variables set before the command, or set by it if it has no words.
    pub assignments: Vec<String>,
    /// The values of these variables, in the same order, as far as the line states them.
    pub values: Vec<AssignedValue>,
    /// The words; the first names the program, function or builtin.
    pub words: Vec<Word>,
    /// Variables of the loops over listed words that it is in: each holds a word of such a loop, unless something else sets it.
    pub within: Vec<String>,
    /// The command as written, without redirections and with `$()` in place of each substitution.
    pub text: String,
}

impl SimpleCommand {
    /// Returns the words if all of them are known and no variable is set before them.
    pub fn argv(&self) -> Option<Vec<String>> {
        let known = self.assignments.is_empty()
            && !self.words.is_empty()
            && self.words.iter().all(AsWord::is_known);
        known.then(|| self.words.iter().map(|word| word.text.clone()).collect())
    }
}

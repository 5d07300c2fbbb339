//! One simple command of a line.

use crate::word::{AsWord, Word};

/// A simple command: variables set before it, and its words. What its substitutions run are commands of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Names of the variables that are set before it, or by it alone where it has no words.
    pub assignments: Vec<String>,
    /// Its words; the first names the program, function or builtin.
    pub words: Vec<Word>,
    /// The command as written, without redirections; `$()` stands for a substitution.
    pub text: String,
}

impl SimpleCommand {
    /// Returns its words where all of them are known and no variable is set before it.
    pub fn argv(&self) -> Option<Vec<String>> {
        let known = self.assignments.is_empty()
            && !self.words.is_empty()
            && self.words.iter().all(AsWord::is_known);
        known.then(|| self.words.iter().map(|word| word.text.clone()).collect())
    }
}

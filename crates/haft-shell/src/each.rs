//! `Loop`: a loop over words, by which a variable has one value after another.

use crate::word::Word;

/// A loop over words: `for NAME in WORDS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The variable.
    pub name: String,
    /// What it is set to, one after another.
    pub words: Vec<Word>,
}

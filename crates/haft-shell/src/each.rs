//! `Loop`: a loop over words.

use crate::word::Word;

/// A loop over words: `for NAME in WORDS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The loop variable.
    pub name: String,
    /// The words that the variable is set to, in order.
    pub words: Vec<Word>,
}

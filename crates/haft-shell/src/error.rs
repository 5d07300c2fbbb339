//! Why a line is not taken apart, and the limits of what is.

/// Longest command line that is taken apart, in characters: clause 16 of the shell rules.
pub const LONGEST_LINE: usize = 10_000;

/// Deepest nesting that is followed, of groups, substitutions and compound commands together: clause 16 of the shell rules.
pub(crate) const DEEPEST: usize = 16;

/// Why a line is not taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It is longer than [`LONGEST_LINE`].
    #[error("the command line is longer than 10,000 characters")]
    TooLong,
    /// It is nested deeper than is followed.
    #[error("the command line is nested deeper than 16")]
    TooDeep,
    /// It has more commands and targets than [`MOST_PARTS`](crate::MOST_PARTS).
    #[error("the command line has too many parts to be judged one by one")]
    TooMany,
    /// It uses what is not in the language that is read, or is no command line.
    #[error("the command line cannot be read: {0}")]
    Syntax(&'static str),
    /// The grammar of tree-sitter finds other commands in it.
    #[error("two readings of the command line differ")]
    Ambiguous,
}

/// True for a line that is longer than [`LONGEST_LINE`] characters.
pub fn is_too_long(line: &str) -> bool {
    line.len() > LONGEST_LINE && line.chars().count() > LONGEST_LINE
}

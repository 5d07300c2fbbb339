//! `ParseError`, and the limits on length and nesting.

/// Maximum length of a command line, in characters: clause 16 of the shell rules.
pub const LONGEST_LINE: usize = 10_000;

/// Maximum nesting of groups, substitutions and compound commands together: clause 16 of the shell rules.
pub(crate) const MAX_DEPTH: usize = 16;

/// The reason why a line was not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The line is longer than [`LONGEST_LINE`].
    #[error("the command line is longer than 10,000 characters")]
    TooLong,
    /// The line is nested too deeply.
    #[error("the command line is nested deeper than 16")]
    TooDeep,
    /// The line has more commands and targets than [`MOST_PARTS`](crate::MOST_PARTS).
    #[error("the command line has too many parts to be judged one by one")]
    TooMany,
    /// The line is not a command line, or uses syntax outside the supported subset.
    #[error("the command line cannot be read: {0}")]
    Syntax(&'static str),
    /// The tree-sitter grammar finds different commands in the line.
    #[error("two readings of the command line differ")]
    Ambiguous,
}

/// Returns true for a line longer than [`LONGEST_LINE`] characters.
pub fn is_too_long(line: &str) -> bool {
    line.len() > LONGEST_LINE && line.chars().count() > LONGEST_LINE
}

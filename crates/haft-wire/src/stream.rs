//! `Delta`: what a piece of a stream added.

/// What a piece of a stream added, for a screen. [`ReplyReader::finish`](crate::ReplyReader::finish) returns the reply itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A call starts: its position among the calls of the turn, and its name on the wire.
    Call {
        /// From 0.
        index: usize,
        /// The name.
        name: String,
    },
    /// More of a call's arguments.
    Arguments {
        /// Its position among the calls of the turn.
        index: usize,
        /// The piece.
        text: String,
    },
}

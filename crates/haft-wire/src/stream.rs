//! `Delta`: what a piece of a stream brought.

/// What a piece of a stream brought, for a screen. The reply itself is what [`Reader::finish`](crate::Reader::finish) gives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thoughts.
    Thinking(String),
    /// A call begins: its place among the calls of the turn, and its name on the wire.
    Call {
        /// From 0.
        index: usize,
        /// The name.
        name: String,
    },
    /// More of a call's arguments.
    Arguments {
        /// Its place among the calls of the turn.
        index: usize,
        /// The piece.
        text: String,
    },
}

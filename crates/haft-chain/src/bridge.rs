//! The bridge between a script and the host: frames, the messages made of them, and what the host answers.

pub mod frame;
pub mod message;
pub mod reply;

/// Longest frame: kind, flags, id and body together, one datagram.
pub const FRAME: usize = 64 << 10;
/// Longest body of a frame.
pub const BODY: usize = FRAME - 6;
/// Longest message of a script but `put`: a call with its arguments.
pub const MESSAGE: usize = 16 << 20;
/// Longest artifact that a script may put: the largest file that it can write.
pub const PUT: usize = 64 << 20;
/// Bytes that a script may send in all, besides what it prints.
pub const TOTAL: u64 = 256 << 20;
/// Bytes of answers that wait for a script that does not read them.
pub const OUTBOX: usize = 32 << 20;
/// Longest range that one `read` gives.
pub const RANGE: u64 = 4 << 20;
/// Deepest nesting of a script's value.
pub const DEPTH: usize = 128;

/// What is wrong with what a script sent. Whoever sends such a thing does not use the runtime: the chain ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// No frame begins like this.
    #[error("a frame of {0} bytes")]
    Size(usize),
    /// A kind that no script sends.
    #[error("a frame of kind {0:?}")]
    Kind(char),
    /// A flag that does not exist.
    #[error("a frame with flags {0:#x}")]
    Flags(u8),
    /// The frames of a message follow one another.
    #[error("a frame within another message")]
    Mixed,
    /// Too long a message, or too much in all.
    #[error("{what} over {limit} bytes")]
    TooLong {
        /// What was too long.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The id of a request that is not answered yet, or none.
    #[error("the id {0} again")]
    Id(u32),
    /// A message that is not made as its kind is.
    #[error("a malformed {0}")]
    Malformed(&'static str),
    /// The script asks and asks, and reads no answer.
    #[error("the script does not read its answers: more than {OUTBOX} bytes are waiting")]
    Unread,
    /// The script goes on calling after its budget is used up.
    #[error("{0} calls after the budget was used up")]
    Flood(u64),
}

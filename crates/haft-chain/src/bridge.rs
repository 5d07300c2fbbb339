//! The bridge between a script and the host: frames, the messages they form, and the host's answers.

pub mod frame;
pub mod message;
pub mod reply;

/// Maximum length of a frame, in bytes: kind, flags, id and body together, one datagram.
pub const FRAME: usize = 64 << 10;
/// Maximum length of a frame's body, in bytes.
pub const BODY: usize = FRAME - 6;
/// Maximum length of a script's message other than `put`, in bytes: a call with its arguments.
pub const MESSAGE: usize = 16 << 20;
/// Maximum size of an artifact that a script may put, in bytes: the largest file that it can write.
pub const PUT: usize = 64 << 20;
/// Maximum number of bytes that a script may send in total, not counting what it prints.
pub const TOTAL: u64 = 256 << 20;
/// Maximum number of bytes of answers queued for a script that does not read them.
pub const OUTBOX: usize = 32 << 20;
/// Maximum number of bytes that one `read` returns.
pub const RANGE: u64 = 4 << 20;
/// Maximum nesting depth of a script's value.
pub const DEPTH: usize = 128;

/// A protocol error in what a script sent. A script that causes one does not use the runtime, so the chain is ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// The frame has an invalid size.
    #[error("a frame of {0} bytes")]
    Size(usize),
    /// The frame has a kind that no script sends.
    #[error("a frame of kind {0:?}")]
    Kind(char),
    /// The frame has an undefined flag.
    #[error("a frame with flags {0:#x}")]
    Flags(u8),
    /// A frame of another message interrupts a message.
    #[error("a frame within another message")]
    Mixed,
    /// A message is too long, or there is too much in total.
    #[error("{what} over {limit} bytes")]
    TooLong {
        /// What was too long.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The id of a request is 0, or belongs to a request that is not answered yet.
    #[error("the id {0} again")]
    Id(u32),
    /// The message does not have the format of its kind.
    #[error("a malformed {0}")]
    Malformed(&'static str),
    /// The script keeps sending requests but reads no answers.
    #[error("the script does not read its answers: more than {OUTBOX} bytes are waiting")]
    Unread,
    /// The script keeps calling after its budget is used up.
    #[error("{0} calls after the budget was used up")]
    Flood(u64),
}

//! `WireError`: why a provider's answer cannot be read, or a request cannot be written.

/// An error in a request, a reply or a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The reply, or one event of it, exceeds the limit.
    #[error(
        "the reply is over the limit of {limit} bytes for {what}; raise the limit or ask for less"
    )]
    TooLarge {
        /// What is too large: `a reply`, `an event`, `the arguments of a call`.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A reply contains more calls than allowed.
    #[error("the reply holds more than {0} tool calls; the reply is refused whole")]
    TooManyCalls(usize),
    /// The data is not JSON of this dialect.
    #[error("{what} is not what {dialect} sends: {reason}")]
    Malformed {
        /// The name of the dialect.
        dialect: &'static str,
        /// What was being read.
        what: &'static str,
        /// The error, with the bounded beginning of what was read.
        reason: String,
    },
    /// The last event of a stream has a call otherwise than the stream showed it.
    #[error(
        "the provider's last event says otherwise about call {0} than the stream did; the reply is refused whole: send the request again"
    )]
    Contradiction(String),
    /// A piece of a call belongs to no call of the stream, or to more than one.
    #[error(
        "the stream has {what} for call {call}; the reply is refused whole: send the request again"
    )]
    UnassignedCall {
        /// The call's id, name or index, bounded.
        call: String,
        /// What the stream has for it.
        what: &'static str,
    },
    /// A stream ended before the provider marked the reply as complete.
    #[error(
        "the stream ended in the middle of a reply, after {0} bytes; nothing of it was run: send the request again"
    )]
    Cut(usize),
    /// The provider reports an error in its reply or stream.
    #[error("the provider reports {kind}: {message}")]
    Provider {
        /// The provider's word for it (`overloaded_error`, `server_error`, …).
        kind: String,
        /// The provider's message, bounded.
        message: String,
    },
    /// A request contains something that this dialect cannot express.
    #[error("{dialect} cannot express {what}")]
    Inexpressible {
        /// The name of the dialect.
        dialect: &'static str,
        /// What it cannot express.
        what: String,
    },
}

/// Maximum number of bytes that an error quotes of what was read.
const QUOTE: usize = 200;

/// Returns the beginning of a text, for an error.
pub(crate) fn quote(text: &str) -> String {
    if text.len() <= QUOTE {
        return text.to_owned();
    }
    let end = (0..=QUOTE).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", &text[..end.unwrap_or_default()])
}

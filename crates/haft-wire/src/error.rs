//! Why an answer of a provider cannot be read, or a request cannot be written.

/// What is wrong with a request, a reply or a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The reply, or one event of it, is over the limit.
    #[error(
        "the reply is over the limit of {limit} bytes for {what}; raise the limit or ask for less"
    )]
    TooLarge {
        /// What is too large: `a reply`, `an event`, `the arguments of a call`.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A reply holds more calls than are taken.
    #[error("the reply holds more than {0} tool calls; the reply is refused whole")]
    TooManyCalls(usize),
    /// It is not the JSON of this dialect.
    #[error("{what} is not what {dialect} sends: {reason}")]
    Malformed {
        /// The dialect, as its word.
        dialect: &'static str,
        /// What was being read.
        what: &'static str,
        /// What is wrong with it, with the bounded beginning of what was read.
        reason: String,
    },
    /// A stream ended before the provider said that the reply is whole.
    #[error(
        "the stream ended in the middle of a reply, after {0} bytes; nothing of it was run: send the request again"
    )]
    Cut(usize),
    /// The provider reports an error in its reply or stream.
    #[error("the provider reports {kind}: {message}")]
    Provider {
        /// Its word for it (`overloaded_error`, `server_error`, …).
        kind: String,
        /// Its message, bounded.
        message: String,
    },
    /// A request that this dialect has no words for.
    #[error("{dialect} cannot express {what}")]
    Inexpressible {
        /// The dialect, as its word.
        dialect: &'static str,
        /// What cannot be said in it.
        what: String,
    },
}

/// The most that an error quotes of what was read, in bytes.
const QUOTE: usize = 200;

/// The beginning of a text, for an error.
pub(crate) fn quote(text: &str) -> String {
    if text.len() <= QUOTE {
        return text.to_owned();
    }
    let end = (0..=QUOTE).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", &text[..end.unwrap_or_default()])
}

//! `StreamError`: an error while reading a stream, before it is known which limit applies.

use crate::error::WireError;
use crate::events::TooLong;

/// An error while reading a stream.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// An event exceeds the limit.
    Long,
    /// Anything else.
    Wire(WireError),
}

impl StreamError {
    /// Returns the error, for events of at most `limit` bytes.
    pub(crate) fn at(self, limit: usize) -> WireError {
        match self {
            Self::Long => WireError::TooLarge {
                what: "an event",
                limit,
            },
            Self::Wire(error) => error,
        }
    }
}

impl From<TooLong> for StreamError {
    fn from(TooLong: TooLong) -> Self {
        Self::Long
    }
}

impl From<WireError> for StreamError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

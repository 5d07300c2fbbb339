//! `Fault`: an error while reading a stream, before it is known which limit applies.

use crate::error::WireError;
use crate::events::TooLong;

/// An error while reading a stream.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An event exceeds the limit.
    Long,
    /// Anything else.
    Wire(WireError),
}

impl Fault {
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

impl From<TooLong> for Fault {
    fn from(TooLong: TooLong) -> Self {
        Self::Long
    }
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

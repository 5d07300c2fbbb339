//! `Fault`: what ends the reading of a stream, before it is known which limit it was.

use crate::error::WireError;
use crate::events::TooLong;

/// What ends the reading of a stream.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An event is over the limit.
    Long,
    /// Anything else.
    Wire(WireError),
}

impl Fault {
    /// The error, for events of at most so many bytes.
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

//! `Feed`: the events of one stream, within its limits, until one of them is an error.

use crate::error::WireError;
use crate::events::Events;
use crate::fault::Fault;
use crate::limits::Limits;

/// The events of one stream.
#[derive(Debug)]
pub(crate) struct Feed {
    events: Events,
    limits: Limits,
    /// Bytes that have come.
    bytes: usize,
    has_failed: bool,
}

impl Feed {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            events: Events::new(limits.event),
            limits,
            bytes: 0,
            has_failed: false,
        }
    }

    /// Takes a piece in and hands on the data of each event that it ends.
    ///
    /// # Errors
    /// A limit is passed, or `take` has an error; nothing more is read then.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        if self.has_failed {
            return Err(self.cut());
        }
        self.bytes = self.bytes.saturating_add(piece.len());
        let read = if self.bytes > self.limits.reply {
            Err(WireError::TooLarge {
                what: "a reply",
                limit: self.limits.reply,
            })
        } else {
            let read = self
                .events
                .each(piece, |data, _| take(data).map_err(Fault::from));
            read.map_err(|fault| fault.at(self.limits.event))
        };
        self.has_failed = read.is_err();
        read
    }

    /// Whether a limit was passed or an event was an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The error for a stream that ended too early.
    pub(crate) fn cut(&self) -> WireError {
        WireError::Cut(self.bytes)
    }
}

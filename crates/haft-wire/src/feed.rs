//! `EventFeed`: the events of one stream, within its limits, up to the first error.

use crate::error::WireError;
use crate::events::SseParser;
use crate::fault::StreamError;
use crate::limits::ReplyLimits;

/// The events of one stream.
#[derive(Debug)]
pub(crate) struct EventFeed {
    events: SseParser,
    limits: ReplyLimits,
    /// The number of bytes received.
    bytes: usize,
    has_failed: bool,
}

impl EventFeed {
    pub(crate) fn new(limits: ReplyLimits) -> Self {
        Self {
            events: SseParser::new(limits.event),
            limits,
            bytes: 0,
            has_failed: false,
        }
    }

    /// Takes a piece and passes on the data of each event that it completes.
    ///
    /// # Errors
    /// If a limit is exceeded, or `take` fails; nothing more is read then.
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
                .each(piece, |data, _| take(data).map_err(StreamError::from));
            read.map_err(|fault| fault.at(self.limits.event))
        };
        self.has_failed = read.is_err();
        read
    }

    /// Returns whether a limit was exceeded or an event failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the error for a stream that ended too early.
    pub(crate) fn cut(&self) -> WireError {
        WireError::Cut(self.bytes)
    }
}

//! `BodyPieces`: the body of a response, sent piece by piece.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::Sleep;

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// Normally.
    Whole,
    /// The connection is broken.
    Abort,
    /// Never: nothing more is sent until the client disconnects.
    Hang,
}

/// The error that breaks the connection on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the scenario breaks the connection here")]
pub(crate) struct AbortError;

impl From<Infallible> for AbortError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A body in pieces. Between two of them it is pending at least once, so that each is sent before the next one.
#[derive(Debug)]
pub(crate) struct BodyPieces {
    queue: VecDeque<Bytes>,
    pause: Duration,
    end: BodyEnd,
    rest: PieceWait,
}

/// What to wait for before the next piece.
#[derive(Debug)]
enum PieceWait {
    None,
    /// The last piece being sent.
    Flush,
    /// The pause given by the scenario.
    Pause(Pin<Box<Sleep>>),
}

impl BodyPieces {
    pub(crate) fn new(pieces: Vec<Bytes>, pause: Duration, end: BodyEnd) -> Self {
        Self {
            queue: pieces.into(),
            pause,
            end,
            rest: PieceWait::None,
        }
    }
}

impl Body for BodyPieces {
    type Data = Bytes;
    type Error = AbortError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AbortError>>> {
        match &mut self.rest {
            PieceWait::None => {}
            PieceWait::Flush => {
                self.rest = PieceWait::None;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            PieceWait::Pause(sleep) => match sleep.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => self.rest = PieceWait::None,
            },
        }
        if let Some(piece) = self.queue.pop_front() {
            let last = self.queue.is_empty();
            self.rest = if last || self.pause.is_zero() {
                PieceWait::Flush
            } else {
                PieceWait::Pause(Box::pin(tokio::time::sleep(self.pause)))
            };
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            BodyEnd::Whole => Poll::Ready(None),
            BodyEnd::Abort => Poll::Ready(Some(Err(AbortError))),
            // The connection ends the wait: when the client closes it, or the server stops.
            BodyEnd::Hang => Poll::Pending,
        }
    }
}

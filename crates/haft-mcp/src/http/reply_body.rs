//! `McpBody`: the body of a response: a whole answer, or an event stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of a response.
#[derive(Debug)]
pub struct McpBody(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl McpBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into())))
    }

    pub(crate) fn empty() -> Self {
        Self(Inner::Whole(None))
    }

    /// Creates a body of frames as they arrive. Dropping the body closes the channel, which shows that the client is gone.
    pub(crate) fn events(frames: mpsc::Receiver<Bytes>) -> Self {
        Self(Inner::Events(frames))
    }

    /// Returns the bytes of a whole answer.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut Bytes> {
        match &mut self.0 {
            Inner::Whole(bytes) => bytes.as_mut(),
            Inner::Events(_) => None,
        }
    }
}

impl Body for McpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(match &mut self.0 {
            Inner::Whole(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Inner::Events(frames) => {
                ready!(frames.poll_recv(cx)).map(|frame| Ok(Frame::data(frame)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(length.try_into().unwrap_or(u64::MAX))
            }
            Inner::Events(_) => SizeHint::default(),
        }
    }
}

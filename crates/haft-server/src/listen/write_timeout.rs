//! `WriteTimeoutStream`: a connection with a time limit on blocked writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection that fails when its client accepts no data for a while.
#[derive(Debug)]
pub(crate) struct WriteTimeoutStream<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write is blocked.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeoutStream<S> {
    /// Wraps a connection with a limit on how long a write may block.
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            timer: None,
        }
    }

    /// Returns the result of a write, or an error if it has been blocked for too long.
    fn check_write_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let why = "the client takes nothing that is sent";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_write_timeout(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check_write_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_write_timeout(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_write_timeout(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn w2_w4_a_client_that_takes_nothing_is_hung_up_on_and_a_slow_one_is_not() {
        let (ours, mut theirs) = duplex(16);
        let mut ours = WriteTimeoutStream::new(ours, Duration::from_secs(30));
        let writing = tokio::spawn(async move {
            let written = ours.write_all(&[0; 160]).await;
            (written, ours)
        });
        for _ in 0..9 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            theirs.read_exact(&mut [0; 16]).await.unwrap();
        }
        let (written, mut ours) = writing.await.unwrap();
        written.unwrap();
        let late = ours.write_all(&[0; 160]).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}

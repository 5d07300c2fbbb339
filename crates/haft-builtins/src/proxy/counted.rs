//! `Counted`: a connection that tells whether bytes still pass, so that a silent one is ended.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How many times bytes have passed, in either direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Moved(Arc<AtomicU64>);

impl Moved {
    fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends when nothing has passed for this time, or up to twice as long.
pub(super) async fn idle(moved: &Moved, limit: Duration) {
    let mut seen = moved.0.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(limit).await;
        let now = moved.0.load(Ordering::Relaxed);
        if now == seen {
            return;
        }
        seen = now;
    }
}

/// The command's end of a connection: whatever passes the proxy passes here.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    moved: Moved,
}

impl Counted {
    pub(super) fn new(stream: TcpStream, moved: Moved) -> Self {
        Self { stream, moved }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.moved.note();
        }
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.moved.note();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Moved, idle};

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_nothing_passes_for_the_whole_time() {
        let (moved, limit) = (Moved::default(), Duration::from_secs(120));
        let busy = async {
            for _ in 0..10 {
                tokio::time::sleep(limit / 2).await;
                moved.note();
            }
        };
        tokio::select! {
            () = idle(&moved, limit) => panic!("ended while bytes passed"),
            () = busy => {}
        }
        idle(&moved, limit).await;
    }
}

//! `CountedStream`: a connection that records whether bytes still pass, so that an idle one can be ended.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Counts how often bytes have passed in either direction, and pending decisions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic(Arc<TrafficCounts>);

#[derive(Debug, Default)]
struct TrafficCounts {
    passed: AtomicU64,
    held: AtomicU64,
}

impl Traffic {
    fn note(&self) {
        self.0.passed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a value during whose lifetime the connection does not count as idle.
    pub(super) fn hold(&self) -> HoldGuard<'_> {
        self.0.held.fetch_add(1, Ordering::Relaxed);
        HoldGuard(self)
    }

    fn is_held(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) > 0
    }
}

/// Marks a connection that waits for a decision.
pub(super) struct HoldGuard<'a>(&'a Traffic);

impl Drop for HoldGuard<'_> {
    fn drop(&mut self) {
        // The idle time starts again.
        self.0.note();
        self.0.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Completes when nothing has passed for this time, or for up to twice as long.
pub(crate) async fn idle(moved: &Traffic, limit: Duration) {
    let passed = || moved.0.passed.load(Ordering::Relaxed);
    let mut seen = passed();
    loop {
        tokio::time::sleep(limit).await;
        let now = passed();
        if now == seen && !moved.is_held() {
            return;
        }
        seen = now;
    }
}

/// The command's end of a connection. Everything that passes the proxy passes here.
#[derive(Debug)]
pub(crate) struct CountedStream {
    stream: TcpStream,
    moved: Traffic,
}

impl CountedStream {
    pub(crate) fn new(stream: TcpStream, moved: Traffic) -> Self {
        Self { stream, moved }
    }

    /// Ends the connection so that the program sees it reset, as by a host where nothing listens.
    pub(super) fn reset(self) {
        // Without it the connection only ends.
        let _ = sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }
}

impl AsyncRead for CountedStream {
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

impl AsyncWrite for CountedStream {
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

    use super::{Traffic, idle};

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_nothing_passes_for_the_whole_time() {
        let (moved, limit) = (Traffic::default(), Duration::from_secs(120));
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

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_for_a_decision_is_not_idle() {
        let (moved, limit) = (Traffic::default(), Duration::from_secs(120));
        let held = async {
            let _holding = moved.hold();
            tokio::time::sleep(limit * 10).await;
        };
        tokio::select! {
            () = idle(&moved, limit) => panic!("ended while a decision was awaited"),
            () = held => {}
        }
        idle(&moved, limit).await;
    }
}

//! `CountedStream`: a connection that records whether bytes still pass, so that an idle one can be ended.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use haft_http::stream::Stream;
use haft_sandbox::MAX_OUTLET_CONNECTIONS;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Counts how often bytes have passed in either direction, and pending decisions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic(Arc<TrafficCounts>);

#[derive(Debug, Default)]
struct TrafficCounts {
    passed: AtomicU64,
    /// When something passed last, in milliseconds since `BEGAN`.
    at: AtomicU64,
    held: AtomicU64,
    /// The host and port that the connection leads to, once it does.
    reached: OnceLock<String>,
}

impl Traffic {
    fn note(&self) {
        self.0.passed.fetch_add(1, Ordering::Relaxed);
        self.0.at.store(now(), Ordering::Relaxed);
    }

    /// Counts one that begins now.
    pub(crate) fn begin() -> Self {
        let begun = Self::default();
        begun.0.at.store(now(), Ordering::Relaxed);
        begun
    }

    /// Returns how long nothing has passed.
    pub(crate) fn quiet_for(&self) -> Duration {
        Duration::from_millis(now().saturating_sub(self.0.at.load(Ordering::Relaxed)))
    }

    /// Returns a value during whose lifetime the connection does not count as idle.
    pub(super) fn hold(&self) -> HoldGuard<'_> {
        self.0.held.fetch_add(1, Ordering::Relaxed);
        HoldGuard(self)
    }

    /// Notes that the connection leads to a host.
    pub(super) fn note_reached(&self, place: String) {
        // The next request of the same connection leads there, too.
        let _ = self.0.reached.set(place);
    }

    /// Returns the host and port that it leads to.
    pub(super) fn reached(&self) -> Option<&str> {
        self.0.reached.get().map(String::as_str)
    }

    fn is_held(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) > 0
    }
}

/// A moment before all traffic.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn now() -> u64 {
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX)
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

/// The connections of one command that are served now.
#[derive(Debug, Clone, Default)]
pub(super) struct ServedCount(Arc<AtomicUsize>);

impl ServedCount {
    /// Counts a connection as long as the value lives.
    pub(super) fn enter(&self) -> ServedGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        ServedGuard(self.clone())
    }

    /// Whether there can be no further connection.
    pub(super) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MAX_OUTLET_CONNECTIONS
    }
}

/// Counts one connection.
pub(super) struct ServedGuard(ServedCount);

impl Drop for ServedGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How often in the limit haft looks whether something has passed.
const LOOKS: u32 = 8;

/// Completes when a connection is to be ended: nothing has passed for this time, and it leads to no host, or its place `is_needed`.
pub(crate) async fn idle(moved: &Traffic, limit: Duration, is_needed: impl Fn() -> bool) {
    let passed = || moved.0.passed.load(Ordering::Relaxed);
    let (mut seen, mut quiet) = (passed(), 0_u32);
    loop {
        tokio::time::sleep(limit / LOOKS).await;
        let now = passed();
        if now != seen || moved.is_held() {
            (seen, quiet) = (now, 0);
            continue;
        }
        quiet = quiet.saturating_add(1);
        if quiet >= LOOKS && (moved.reached().is_none() || is_needed()) {
            return;
        }
    }
}

/// Has the system ask the host of a quiet connection whether it is still there, so that no device on the way forgets the connection and
/// one to a host that is gone ends.
pub(super) fn keep_alive(stream: &Stream) {
    let socket = match stream {
        Stream::Plain(socket) => socket,
        Stream::Secure(stream) => stream.get_ref().0,
    };
    // Without it, a quiet connection may be lost.
    let _ = sockopt::set_socket_keepalive(socket, true)
        .and_then(|()| sockopt::set_tcp_keepidle(socket, KEEP_ALIVE_IDLE))
        .and_then(|()| sockopt::set_tcp_keepintvl(socket, KEEP_ALIVE_INTERVAL));
}

/// When the system first asks the host of a quiet connection, and how often then. Devices that translate addresses forget after minutes.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

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

    use haft_sandbox::MAX_OUTLET_CONNECTIONS;

    use super::{ServedCount, Traffic, idle};

    const LIMIT: Duration = Duration::from_secs(120);

    fn reached() -> Traffic {
        let moved = Traffic::default();
        moved.note_reached("db.example.com:5432".to_owned());
        moved
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_nothing_passes_for_the_whole_time() {
        let moved = reached();
        let busy = async {
            for _ in 0..10 {
                tokio::time::sleep(LIMIT / 2).await;
                moved.note();
            }
        };
        tokio::select! {
            () = idle(&moved, LIMIT, || true) => panic!("ended while bytes passed"),
            () = busy => {}
        }
        idle(&moved, LIMIT, || true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_for_a_decision_is_not_idle() {
        let moved = Traffic::default();
        let held = async {
            let _holding = moved.hold();
            tokio::time::sleep(LIMIT * 10).await;
        };
        tokio::select! {
            () = idle(&moved, LIMIT, || true) => panic!("ended while a decision was awaited"),
            () = held => {}
        }
        idle(&moved, LIMIT, || true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_connection_to_a_host_lasts_until_its_place_is_needed() {
        let (moved, served) = (reached(), ServedCount::default());
        let mut guards: Vec<_> = (1..MAX_OUTLET_CONNECTIONS)
            .map(|_| served.enter())
            .collect();
        tokio::select! {
            () = idle(&moved, LIMIT, || served.is_full()) => panic!("ended with a place free"),
            () = tokio::time::sleep(LIMIT * 300) => {}
        }
        guards.push(served.enter());
        idle(&moved, LIMIT, || served.is_full()).await;
        guards.pop();
        assert!(!served.is_full());
        // One that leads nowhere yet is ended in any case.
        idle(&Traffic::default(), LIMIT, || served.is_full()).await;
    }
}

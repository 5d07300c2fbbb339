//! `Listener`: one socket with a limited number of connections, which drops slow clients and stops within a grace period.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::caller::Peer;
use crate::reach::ListenPlan;
use crate::same_user::SocketEnds;

mod connection_limiter;
mod write_timeout;

pub(crate) use connection_limiter::ConnectionSlot;

use connection_limiter::ConnectionLimiter;
use write_timeout::WriteTimeoutStream;

/// Maximum number of connections, if the limit of open files allows that many.
const MAX_CONNECTIONS: usize = 16_384;
/// Number of open files reserved for everything else.
const RESERVED_FILES: usize = 256;
/// Time limit for a client to send a request's head, for the first and every later request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a client to accept what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a request's head, and of an unsent response, in bytes per connection.
const BUFFER_BYTES: usize = 64 << 10;
/// Size of each of the kernel's two buffers of a connection, in bytes (it takes twice as much). By default it keeps megabytes for
/// a client that sends requests and reads no answers; this is enough for a stream to a distant client.
const SOCKET_BUFFER: u32 = 128 << 10;
/// Number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long connections may continue after the listener is told to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Delay before the next attempt when the system provides no more sockets.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A bound socket.
pub(crate) struct Listener {
    socket: TcpListener,
    /// Encrypts connections, if haft does that itself.
    tls: Option<TlsAcceptor>,
    /// The address it listens on.
    pub(crate) address: SocketAddr,
}

impl Listener {
    /// Binds the socket; port 0 picks a free one.
    pub(crate) fn bind(reach: &ListenPlan) -> std::io::Result<Self> {
        let socket = match (listen(reach.address), reach.instead) {
            (Err(_), Some(instead)) => listen(instead)?,
            (bound, _) => bound?,
        };
        Ok(Self {
            address: socket.local_addr()?,
            tls: reach.tls.clone(),
            socket,
        })
    }

    /// Serves until told to stop; then answers the requests in progress and closes all connections.
    pub(crate) async fn serve(self, routes: Router, mut stop: watch::Receiver<bool>) {
        let crowd = ConnectionLimiter::new(room());
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                () = wait_for_stop(&mut stop) => break,
            };
            // Finished connections are removed as new ones arrive.
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, from)) => {
                    let Ok(local) = stream.local_addr() else {
                        continue;
                    };
                    let served = ConnectionContext {
                        tls: self.tls.clone(),
                        routes: routes.clone(),
                        ends: SocketEnds {
                            remote: from,
                            local,
                        },
                        guest: Arc::new(crowd.enter()),
                        stop: stop.clone(),
                    };
                    connections.spawn(accept(stream, served));
                }
                Err(e) => {
                    tracing::warn!(error = %e, "accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        drop(self.socket);
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, all).await.is_err() {
            tracing::warn!("connections were cut off");
        }
    }
}

/// Listens on an address. Accepted connections inherit the sizes of the buffers.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // As `TcpListener::bind` does: a server that restarts finds its port.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns how many connections the system allows this process, with files left for its work.
fn room() -> usize {
    use rustix::process::{Resource, getrlimit};
    let files = getrlimit(Resource::Nofile).current;
    let files = files.map_or(MAX_CONNECTIONS, |files| {
        usize::try_from(files).unwrap_or(MAX_CONNECTIONS)
    });
    MAX_CONNECTIONS.min(files.saturating_sub(RESERVED_FILES).max(files / 2))
}

/// Waits until it is time to stop, or until the sender is dropped.
async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // The guard that this returns must not live across an await.
    let _ = stop.wait_for(|stop| *stop).await.is_ok();
}

/// What is needed to serve one connection.
struct ConnectionContext {
    tls: Option<TlsAcceptor>,
    routes: Router,
    ends: SocketEnds,
    guest: Arc<ConnectionSlot>,
    stop: watch::Receiver<bool>,
}

async fn accept(stream: TcpStream, served: ConnectionContext) {
    // Responses are written whole, so waiting for more data would only delay them.
    let _ = stream.set_nodelay(true);
    let guest = Arc::clone(&served.guest);
    tokio::select! {
        () = serve_stream(stream, served) => {}
        () = guest.wait_for_eviction() => tracing::debug!("a connection without a token made room"),
    }
}

/// Serves a connection: in plain text or, if haft encrypts itself, after the TLS handshake.
async fn serve_stream(stream: TcpStream, served: ConnectionContext) {
    let stream = WriteTimeoutStream::new(stream, WRITE_TIMEOUT);
    let Some(tls) = served.tls.clone() else {
        return connection(stream, served).await;
    };
    match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => connection(stream, served).await,
        Ok(Err(e)) => tracing::debug!(error = %e, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, served: ConnectionContext) {
    let ConnectionContext {
        routes,
        ends,
        guest,
        mut stop,
        ..
    } = served;
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(ends.remote.ip()));
        request.extensions_mut().insert(ends);
        request.extensions_mut().insert(Arc::clone(&guest));
        routes.clone().call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = wait_for_stop(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(e) = ended {
        tracing::debug!(error = %e, "a connection ended");
    }
}

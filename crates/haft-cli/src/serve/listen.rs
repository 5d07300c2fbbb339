//! The listener: one socket, a bounded number of connections, ended within a few seconds of being told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::serve::gate::Peer;

/// Connections at once; more wait to be accepted. The limit of open files is usually reached first.
const CONNECTIONS: usize = 16_384;
/// How long a client may take to send a request's head.
const HEAD: Duration = Duration::from_secs(10);
/// How long connections may still take after the listener was told to stop.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait before the next try when the system gives no more sockets.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Listener {
    /// Binds; port 0 takes a free one.
    pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
        })
    }

    /// Serves until told to stop; then answers what was asked and hangs up.
    pub(crate) async fn serve(self, routes: Router, mut stop: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
                break;
            };
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                () = told(&mut stop) => break,
            };
            // Ended connections are forgotten as others come.
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, from)) => {
                    let (routes, stop) = (routes.clone(), stop.clone());
                    connections.spawn(async move {
                        let peer = Peer(from.ip());
                        connection((stream, peer), routes, stop).await;
                        drop(permit);
                    });
                }
                Err(e) => {
                    tracing::warn!(error = %e, "accept a connection");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
        drop(self.socket);
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("connections were cut off");
        }
    }
}

/// Waits until it is time to stop; also when nobody is left to say so.
async fn told(stop: &mut watch::Receiver<bool>) {
    // The guard it gives must not live across an await.
    let _ = stop.wait_for(|stop| *stop).await.is_ok();
}

async fn connection(
    (stream, peer): (TcpStream, Peer),
    routes: Router,
    mut stop: watch::Receiver<bool>,
) {
    // Answers are written whole; waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        routes.clone().call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = told(&mut stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(e) = ended {
        tracing::debug!(error = %e, "a connection ended");
    }
}

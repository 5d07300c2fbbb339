//! `Network`: names and connections, the seam between the HTTP client and the machine's network.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use tokio::net::TcpStream;

/// A future behind the object-safe seam.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Looks names up and opens connections. The client asks for one look-up a request and connects to an address of that
/// answer alone, so what was checked is what is used.
pub trait Network: Send + Sync + fmt::Debug {
    /// All addresses of a name; none, or an error, where there is no such name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Opens a connection to exactly this address.
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// Knows where haft itself listens on this machine: the console and the HTTP API, by which requests are decided.
pub trait OwnListeners: Send + Sync + fmt::Debug {
    /// Whether a haft of this user listens at this address.
    fn listen_at(&self, address: SocketAddr) -> bool;
}

/// This machine's resolver and its network. No proxy is ever used.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Network for System {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let answers = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = answers.map(|answer| answer.ip()).collect();
            // One line a socket type, where the resolver is asked for any.
            addresses.dedup();
            Ok(addresses)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

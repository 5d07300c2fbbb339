//! `Network`: name resolution and connections, the interface between the HTTP client and the machine's network.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use tokio::net::TcpStream;

/// A boxed future, which keeps the traits object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves names and opens connections. The client makes one lookup per request and connects only to an address from that lookup,
/// so that it uses what it checked.
pub trait Network: Send + Sync + fmt::Debug {
    /// Returns all addresses of a name, or none or an error if the name does not exist.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Opens a connection to exactly this address.
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// Knows where haft itself listens on this machine: the console and the HTTP API, through which requests are decided.
pub trait OwnListeners: Send + Sync + fmt::Debug {
    /// Returns true if a haft process of this user listens at this address.
    fn listen_at(&self, address: SocketAddr) -> bool;
}

/// This machine's resolver and network. It never uses a proxy.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Network for System {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let answers = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = answers.map(|answer| answer.ip()).collect();
            // The resolver returns an entry for each socket type.
            addresses.dedup();
            Ok(addresses)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

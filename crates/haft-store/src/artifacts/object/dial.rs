//! `Dial`: opens the connections to a bucket's server when the store does not do so itself.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A bidirectional connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A future that opens a connection.
pub type Dialing<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Duplex>>> + Send + 'a>>;

/// Opens connections, for example through a proxy. The store encrypts what it sends over them itself.
pub trait Dial: Send + Sync + fmt::Debug {
    /// Connects to this host, written as in a URL, and port.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> Dialing<'a>;
}

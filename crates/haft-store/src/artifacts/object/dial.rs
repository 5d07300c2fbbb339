//! `Dial`: how connections to a bucket's server are opened, where that is not the store's own matter.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection that is being opened.
pub type Dialing<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Duplex>>> + Send + 'a>>;

/// Opens connections, through a proxy for example. Encryption is the store's own, over what was opened.
pub trait Dial: Send + Sync + fmt::Debug {
    /// A connection to this host, as a URL writes it, and port.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> Dialing<'a>;
}

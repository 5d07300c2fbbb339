//! `Dial`: opens connections, supplied by the user of a client: directly, through a proxy, or only to checked addresses.

use std::fmt;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A boxed future, which keeps the traits object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection, encrypted if it was dialed as such.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Connects to a host.
pub trait Dial: Send + Sync {
    /// Opens a connection to a host, as written in a URL, and a port; encrypted if `secure`.
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>>;
}

impl fmt::Debug for dyn Dial + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}

//! `Network`: name resolution and connections, the interface between a client and the machine's network.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::dial::BoxFuture;

/// Maximum number of addresses tried per name.
const MAX_ADDRESSES: usize = 4;

/// Resolves names and opens connections. A client makes one lookup per request and connects only to an address from that lookup,
/// so that it uses what it checked.
pub trait Network: Send + Sync + fmt::Debug {
    /// Returns all addresses of a name, or none or an error if the name does not exist.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Opens a connection to exactly this address.
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
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

/// Why no address accepted a connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// There is no address.
    #[error("its name has no address")]
    NoAddress,
    /// The last address that was tried refused.
    #[error("{source}")]
    Refused {
        /// The address.
        address: IpAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The last address that was tried did not answer in its share of the time.
    #[error("no answer in time")]
    Late {
        /// The address.
        address: IpAddr,
    },
}

/// Connects to the first of these addresses that accepts, and to no other; each of the first four has an equal share of `limit`.
///
/// # Errors
/// [`ConnectError`] says what the last address did.
pub async fn connect_first(
    network: &dyn Network,
    addresses: &[IpAddr],
    port: u16,
    limit: Duration,
) -> Result<TcpStream, ConnectError> {
    let addresses = &addresses[..addresses.len().min(MAX_ADDRESSES)];
    let share = limit / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut failed = ConnectError::NoAddress;
    for address in addresses {
        let address = address.to_canonical();
        let connecting = network.connect(SocketAddr::new(address, port));
        failed = match timeout(share, connecting).await {
            Ok(Ok(stream)) => {
                // A request is one small packet, so delaying it to collect more data gains nothing.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(source)) => ConnectError::Refused { address, source },
            Err(_) => ConnectError::Late { address },
        };
    }
    Err(failed)
}

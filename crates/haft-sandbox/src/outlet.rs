//! `Outlet`: the one address of a jail's own network that somebody outside answers.
//!
//! The jail's first process makes a listener in the jail's network and hands it to this process; the
//! command never has it. What is connected to it arrives here, whatever the command's variables say,
//! and there is no other way out. When the listener is gone the address refuses like any other.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Where a jail with an outlet reaches it. The network is the jail's own, so the port is always free; it
/// is the one that proxies are known by, and below those that a system hands out by itself.
pub const OUTLET_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128));

/// Connections of one command that are served at once; more wait in the kernel's short queue.
const MOST: usize = 64;
/// How long nothing is accepted after an error, which is this process's lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves one connection; dropped when the command has ended.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Answers the connections of one command.
pub trait Outlet: Send + Sync + fmt::Debug {
    /// Serves a connection that the command, or anything that it started, has opened. Up to 64 are served at
    /// once, each by a task that ends with the command.
    fn serve(&self, connection: TcpStream) -> Serving;
}

/// An outlet at work; ends with the value.
#[derive(Debug)]
pub(crate) struct Gate(JoinHandle<()>);

impl Gate {
    /// Accepts on the listener that came from inside.
    pub(crate) fn open(listener: OwnedFd, outlet: Arc<dyn Outlet>) -> io::Result<Self> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self(tokio::spawn(accept(listener, outlet))))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // With it go its connections.
        self.0.abort();
    }
}

async fn accept(listener: TcpListener, outlet: Arc<dyn Outlet>) {
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if served.len() < MOST => match accepted {
                Ok((connection, _)) => _ = served.spawn(outlet.serve(connection)),
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = served.join_next() => {}
        }
    }
}

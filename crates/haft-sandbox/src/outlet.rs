//! `Outlet`: answers the only address in a jail's network namespace that leads outside.
//!
//! The jail's first process creates a listener in the jail's network and hands it to this process; the
//! command never has it. Connections to it arrive here, whatever the command's variables say, and there
//! is no other way out. Once the listener is closed, the address refuses connections like any other.

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

/// The address at which a jail with an outlet reaches it. The network is the jail's own, so the port is always free; it
/// is a well-known proxy port, and below the range of ephemeral ports.
pub const OUTLET_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128));

/// Maximum number of connections of one command served at the same time; more wait in the kernel's short queue.
const MOST: usize = 64;
/// How long to stop accepting after an error, which means that this process lacks descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The future that serves one connection; dropped when the command has ended.
pub type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Answers the connections of one command.
pub trait Outlet: Send + Sync + fmt::Debug {
    /// Serves a connection opened by the command or a process that it started. Up to 64 are served at the same
    /// time, each by a task that ends with the command.
    fn serve(&self, connection: TcpStream) -> ServeFuture;
}

/// A running outlet; stops when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunningOutlet(JoinHandle<()>);

impl RunningOutlet {
    /// Accepts connections on the listener that came from inside.
    pub(crate) fn open(listener: OwnedFd, outlet: Arc<dyn Outlet>) -> io::Result<Self> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self(tokio::spawn(accept(listener, outlet))))
    }
}

impl Drop for RunningOutlet {
    fn drop(&mut self) {
        // Its connections end with it.
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

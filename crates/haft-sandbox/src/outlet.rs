//! `Outlet`: answers the only addresses in a jail's network namespace that lead outside.
//!
//! The jail's first process creates listeners in the jail's network and hands them to this process; the
//! command never has them. Connections to them arrive here, whatever the command's variables say, and there
//! is no other way out. Once the listeners are closed, the addresses refuse connections like any other.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::{SocketType, sockopt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::{JoinHandle, JoinSet};

/// The address at which a jail with an outlet reaches it. The network is the jail's own, so the port is always free; it
/// is a well-known proxy port, and below the range of ephemeral ports.
pub const OUTLET_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128));

/// The port of every address at which names are asked for, if the outlet takes connections to every address.
pub const NAMES_PORT: u16 = 53;

/// The jail's own address besides the loopback's, if the outlet takes connections to every address: the first of the range for tests
/// of networks (RFC 2544), which no network uses.
pub const JAIL_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Maximum number of ports at which an outlet takes connections to every address.
pub const MAX_OUTLET_PORTS: usize = 64;

/// Maximum number of connections of one command served at the same time; more wait in the kernel's short queue.
pub const MAX_OUTLET_CONNECTIONS: usize = 64;
/// How long to stop accepting after an error, which means that this process lacks descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum length of a question for a name over UDP that is read whole; a longer one is cut, and malformed then.
const MOST_QUESTION: usize = 4096;

/// The future that serves one connection; dropped when the command has ended.
pub type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Answers the connections of one command.
pub trait Outlet: Send + Sync + fmt::Debug {
    /// Serves a connection opened by the command or a process that it started. Up to 64 are served at the same
    /// time, each by a task that ends with the command. Its local address is the one that the program connected to:
    /// [`OUTLET_ADDRESS`], or any address with one of the [`ports`](Self::ports) or [`NAMES_PORT`].
    fn serve(&self, connection: TcpStream) -> ServeFuture;

    /// Returns the ports at which connections to every address arrive here, at most [`MAX_OUTLET_PORTS`]. The command cannot listen at
    /// them. Without ports only [`OUTLET_ADDRESS`] answers, and no name is found.
    fn ports(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Answers a DNS message that came over UDP, to whatever address; `None` = not at all.
    fn answer_name(&self, question: &[u8]) -> Option<Vec<u8>> {
        let _ = question;
        None
    }
}

/// A running outlet; stops when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunningOutlet(JoinHandle<()>);

impl RunningOutlet {
    /// Serves the sockets that came from inside; a jail that handed over no listener is an error.
    pub(crate) fn open(outlet: Arc<dyn Outlet>, sockets: Vec<OwnedFd>) -> io::Result<Self> {
        let (mut listeners, mut names) = (Vec::new(), Vec::new());
        for socket in sockets {
            if sockopt::socket_type(&socket)? == SocketType::DGRAM {
                let socket = std::net::UdpSocket::from(socket);
                socket.set_nonblocking(true)?;
                names.push(UdpSocket::from_std(socket)?);
            } else {
                let listener = std::net::TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                listeners.push(TcpListener::from_std(listener)?);
            }
        }
        if listeners.is_empty() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(Self(tokio::spawn(serve(listeners, names, outlet))))
    }
}

impl Drop for RunningOutlet {
    fn drop(&mut self) {
        // Its connections end with it.
        self.0.abort();
    }
}

async fn serve(listeners: Vec<TcpListener>, names: Vec<UdpSocket>, outlet: Arc<dyn Outlet>) {
    let mut answering = JoinSet::new();
    for socket in names {
        answering.spawn(answer(socket, Arc::clone(&outlet)));
    }
    let (mut served, mut first) = (JoinSet::new(), 0);
    loop {
        tokio::select! {
            accepted = poll_fn(|context| accept(&listeners, &mut first, context)), if served.len() < MAX_OUTLET_CONNECTIONS => match accepted {
                Ok(connection) => _ = served.spawn(outlet.serve(connection)),
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = served.join_next() => {}
        }
    }
}

/// Accepts a connection of any listener; the one after the last that had one comes first.
fn accept(
    listeners: &[TcpListener],
    first: &mut usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<TcpStream>> {
    let (before, after) = listeners.split_at(*first % listeners.len());
    for (nth, listener) in after.iter().chain(before).enumerate() {
        if let Poll::Ready(accepted) = listener.poll_accept(context) {
            *first = (*first + nth + 1) % listeners.len();
            return Poll::Ready(accepted.map(|(connection, _)| at_once(connection)));
        }
    }
    Poll::Pending
}

/// Has what is written sent at once. Otherwise the second of two small writes, as in every TLS handshake, waits for the program to
/// confirm the first, which it does after 40 ms.
fn at_once(connection: TcpStream) -> TcpStream {
    // Without it, it is only slower.
    let _ = connection.set_nodelay(true);
    connection
}

async fn answer(socket: UdpSocket, outlet: Arc<dyn Outlet>) {
    let mut question = [0; MOST_QUESTION];
    loop {
        match socket.recv_from(&mut question).await {
            Ok((length, from)) => {
                if let Some(answer) = outlet.answer_name(&question[..length]) {
                    // If this fails, the program has gone, or it asks again.
                    let _ = socket.send_to(&answer, from).await;
                }
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use tokio::net::TcpStream;
    use tokio::sync::mpsc;

    use super::{Outlet, RunningOutlet, ServeFuture};

    #[derive(Debug)]
    struct Reporting(mpsc::UnboundedSender<bool>);

    impl Outlet for Reporting {
        fn serve(&self, connection: TcpStream) -> ServeFuture {
            let _ = self.0.send(connection.nodelay().unwrap());
            Box::pin(async {})
        }
    }

    #[tokio::test]
    async fn an_accepted_connection_sends_at_once_what_is_written() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (report, mut reported) = mpsc::unbounded_channel();
        let outlet = RunningOutlet::open(Arc::new(Reporting(report)), vec![listener.into()]);
        let _running = outlet.unwrap();
        let _connected = TcpStream::connect(at).await.unwrap();
        assert_eq!(reported.recv().await, Some(true));
    }
}

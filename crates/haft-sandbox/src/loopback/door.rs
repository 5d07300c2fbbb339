//! `LoopbackDoor`: opens sockets in the network of a jail, by a process that has joined it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::sync::Mutex;

use crate::report::receive;

/// How long the process may take to join the network, or to open sockets.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection in a loopback may take: there is no network between.
const CONNECT: Duration = Duration::from_secs(10);
/// Sockets that are opened at once.
const AT_ONCE: u8 = 8;
/// The connections that wait for a listener in the kernel.
const BACKLOG: u32 = 128;

/// A request for sockets: their family and their number.
pub(crate) const REQUEST: usize = 2;
/// An answer: whether it succeeded, and an error number.
pub(crate) const ANSWER: usize = 5;
pub(crate) const V4: u8 = 4;
pub(crate) const V6: u8 = 6;

/// Sockets in the network of one jail. The process that opens them ends with this value; sockets that were opened stay usable.
#[derive(Debug)]
pub struct LoopbackDoor {
    child: Child,
    opened: Mutex<OpenedSockets>,
}

#[derive(Debug)]
struct OpenedSockets {
    link: UnixStream,
    v4: Vec<OwnedFd>,
    v6: Vec<OwnedFd>,
}

impl LoopbackDoor {
    /// Waits until the process has joined.
    pub(crate) async fn open(
        child: Child,
        link: std::os::unix::net::UnixStream,
    ) -> io::Result<Self> {
        link.set_nonblocking(true)?;
        let door = Self {
            child,
            opened: Mutex::new(OpenedSockets {
                link: UnixStream::from_std(link)?,
                v4: Vec::new(),
                v6: Vec::new(),
            }),
        };
        door.opened.lock().await.answer().await?;
        Ok(door)
    }

    /// Connects to an address of that loopback.
    ///
    /// # Errors
    /// Nothing listens there, or the jail has ended.
    pub async fn connect(&self, at: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.socket(at).await?;
        let connected = tokio::time::timeout(CONNECT, socket.connect(at)).await;
        connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Listens at an address of that loopback.
    ///
    /// # Errors
    /// Something listens there, or the jail has ended.
    pub async fn listen(&self, at: SocketAddr) -> io::Result<TcpListener> {
        let socket = self.socket(at).await?;
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        socket.listen(BACKLOG)
    }

    async fn socket(&self, at: SocketAddr) -> io::Result<TcpSocket> {
        let mut opened = self.opened.lock().await;
        let file = opened.take(at.is_ipv4()).await?;
        let socket = std::net::TcpStream::from(file);
        socket.set_nonblocking(true)?;
        // What passes between programs is sent at once, as it was written; connections that it accepts inherit this.
        let _ = socket.set_nodelay(true);
        Ok(TcpSocket::from_std_stream(socket))
    }
}

impl OpenedSockets {
    async fn take(&mut self, v4: bool) -> io::Result<OwnedFd> {
        let stock = if v4 { &mut self.v4 } else { &mut self.v6 };
        if let Some(file) = stock.pop() {
            return Ok(file);
        }
        let family = if v4 { V4 } else { V6 };
        self.link.write_all(&[family, AT_ONCE]).await?;
        let mut files = self.answer().await?;
        let first = files.pop().ok_or(io::ErrorKind::UnexpectedEof)?;
        let stock = if v4 { &mut self.v4 } else { &mut self.v6 };
        *stock = files;
        Ok(first)
    }

    async fn answer(&mut self) -> io::Result<Vec<OwnedFd>> {
        let (mut bytes, mut files) = ([0; ANSWER], Vec::new());
        let received = receive(&self.link, &mut bytes, &mut files);
        let received = tokio::time::timeout(TIMEOUT, received).await;
        received.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let [ok, errno @ ..] = bytes;
        if ok == 0 {
            return Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)));
        }
        Ok(files)
    }
}

impl Drop for LoopbackDoor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

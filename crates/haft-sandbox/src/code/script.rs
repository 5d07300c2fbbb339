//! One locked interpreter, for one script.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::apart::CpuPlacement;
use super::locks::WORKSPACE;
use super::pidfd::{gone, number};
use super::zygote::{Zygote, ZygoteChild, kill};
use crate::StartError;
use crate::held_places::scratch::ScratchFolder;
use crate::strength::Strength;
use crate::sys;
use crate::tree::ProcessTree;

/// How long dropping a folder on the host's own file system waits for its writer to exit, in seconds.
const LAST_WRITES: i64 = 1;

/// A locked interpreter that serves exactly one script; dropping it kills its whole process tree.
#[derive(Debug)]
pub struct Script {
    bridge: AsyncFd<OwnedFd>,
    pidfd: OwnedFd,
    watch: OnceLock<AsyncFd<OwnedFd>>,
    folder: OwnedFd,
    scratch: Option<ScratchFolder>,
    path: String,
    strength: Strength,
    engine: Arc<str>,
    keeper: ScriptOwner,
    apart: CpuPlacement,
}

/// The owner of a script's process.
#[derive(Debug)]
pub(super) enum ScriptOwner {
    /// The zygote that created it must not be dropped before it.
    Zygote(#[expect(dead_code, reason = "held for its end alone")] Arc<Zygote>),
    /// A jail of its own.
    Jail(Mutex<ProcessTree>),
}

impl Script {
    pub(super) fn new(
        newborn: ZygoteChild,
        keeper: ScriptOwner,
        strength: Strength,
        engine: Arc<str>,
    ) -> Result<Self, StartError> {
        let ZygoteChild {
            bridge,
            pidfd,
            pid,
            folder,
            scratch,
        } = newborn;
        let path = scratch.as_ref().map_or_else(
            || WORKSPACE.to_owned(),
            |scratch| scratch.0.display().to_string(),
        );
        let both = Interest::READABLE | Interest::WRITABLE;
        let bridge = sys::watch_for(bridge, both).map_err(|source| StartError::System {
            step: "watch the bridge",
            source,
        })?;
        Ok(Self {
            bridge,
            pidfd,
            watch: OnceLock::new(),
            folder,
            scratch,
            path,
            strength,
            engine,
            keeper,
            apart: CpuPlacement::new(pid),
        })
    }

    /// Receives the next datagram from the script. 0 = its end of the bridge is closed (or it sent an empty
    /// datagram, which no script does). One longer than `frame` is [`io::ErrorKind::InvalidData`]. Descriptors
    /// are never accepted. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a datagram longer than `frame`, else the error of the socket.
    pub async fn recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        self.apart.release(&self.pidfd);
        self.bridge
            .async_io(Interest::READABLE, |bridge| receive(bridge, frame))
            .await
    }

    /// Like [`recv`](Self::recv), without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing yet, else as for [`recv`](Self::recv).
    pub fn try_recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        let received = receive(self.bridge.get_ref(), frame);
        if received.is_ok() {
            self.apart.release(&self.pidfd);
        }
        received
    }

    /// Sends a datagram to the script, waiting until there is room for it.
    ///
    /// # Errors
    /// The error of the socket, such as [`io::ErrorKind::BrokenPipe`] after the script has ended.
    pub async fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.bridge
            .async_io(Interest::WRITABLE, |bridge| send(bridge, frame))
            .await
    }

    /// Like [`send`](Self::send), without waiting. The first message moves the process off this thread's CPU until the host receives
    /// or waits for its answer: the process need not wait for a thread that polls.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no room, else as for [`send`](Self::send).
    pub fn try_send(&self, frame: &[u8]) -> io::Result<()> {
        self.apart.begin(&self.pidfd);
        send(self.bridge.get_ref(), frame)
    }

    /// Returns the script's private folder. It can be read and written at any time, even after the script has
    /// ended, until this value is dropped.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns the path by which the script sees its folder.
    pub fn folder_path(&self) -> &str {
        &self.path
    }

    /// Returns how strongly it is confined.
    pub fn strength(&self) -> Strength {
        self.strength
    }

    /// Returns which interpreter it is and how it was created, e.g. `cpython 3.11.2 (zygote)`.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// Kills it with every thread; [`ended`](Self::ended) returns once it is gone.
    pub fn kill(&self) {
        match &self.keeper {
            ScriptOwner::Zygote(_) => kill(&self.pidfd),
            ScriptOwner::Jail(tree) => tree.lock().kill(),
        }
    }

    /// Waits until its whole process tree is gone.
    pub async fn ended(&self) {
        if self.watch.get().is_none() {
            let watch = self.pidfd.try_clone();
            let watch = watch.and_then(sys::watch);
            if let Ok(watch) = watch {
                let _ = self.watch.set(watch);
            }
        }
        match self.watch.get() {
            Some(watch) => drop(watch.readable().await),
            // No descriptor is available: poll without one, rarely.
            None => {
                while !gone(&self.pidfd, 0) {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            }
        }
    }

    /// Returns its process ID on the host; 0 if it is gone.
    pub fn pid(&self) -> u32 {
        number(&self.pidfd).map_or(0, |pid| pid.as_raw_nonzero().get().cast_unsigned())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.kill();
        if self.scratch.is_some() {
            // Otherwise it could write a file into a folder that is being removed.
            gone(&self.pidfd, LAST_WRITES);
        }
    }
}

fn receive(bridge: &OwnedFd, frame: &mut [u8]) -> io::Result<usize> {
    let room = frame.len();
    loop {
        let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        match rustix::net::recv(bridge, &mut *frame, flags) {
            Ok((_, length)) if length > room => return Err(io::ErrorKind::InvalidData.into()),
            Ok((_, length)) => return Ok(length),
            // It exited without reading everything: what it sent before can still be received.
            Err(rustix::io::Errno::CONNRESET | rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn send(bridge: &OwnedFd, frame: &[u8]) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::send(bridge, frame, flags)?;
    Ok(())
}

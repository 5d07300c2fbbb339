//! `StreamReader`: reads one stream of a command, a pipe or its terminal, into its log, as far as the log has room.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Receiver;

use crate::output::Log;
use crate::terminal::CommandTerminal;

/// The size to which the pipe grows after a full read, and the matching buffer: a quarter of a large pipe is read at once.
const BIG_PIPE: usize = 1 << 20;
const BIG_READ: usize = 256 << 10;
/// The initial buffer size, which most commands never fill.
const SMALL_READ: usize = 16 << 10;

/// Where a stream comes from.
#[derive(Debug)]
pub(crate) enum StreamSource {
    Pipe(Receiver),
    Terminal(Arc<AsyncFd<OwnedFd>>),
}

impl StreamSource {
    pub(crate) fn pipe(file: OwnedFd) -> io::Result<Self> {
        Receiver::from_owned_fd(file).map(Self::Pipe)
    }

    pub(crate) fn terminal(terminal: &CommandTerminal) -> Option<Self> {
        terminal.master().map(Self::Terminal)
    }

    async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.readable().await,
            Self::Terminal(master) => master.readable().await.map(drop),
        }
    }

    /// Reads once without waiting; `direct` does not ask the reactor first.
    fn read(&self, buffer: &mut [u8], direct: bool) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) if direct => Ok(rustix::io::read(pipe, buffer)?),
            Self::Pipe(pipe) => pipe.try_read(buffer),
            Self::Terminal(master) if direct => Ok(rustix::io::read(master.get_ref(), buffer)?),
            Self::Terminal(master) => master.try_io(Interest::READABLE, |master| {
                Ok(rustix::io::read(master, &mut *buffer)?)
            }),
        }
    }
}

/// Reads one stream into its log; pipe and buffer grow with the first full read.
#[derive(Debug)]
pub(crate) struct StreamReader<'a> {
    source: Option<StreamSource>,
    log: &'a Log,
    /// What the output is drawn on, if it is a terminal.
    terminal: Option<&'a CommandTerminal>,
    buffer: Vec<u8>,
}

impl<'a> StreamReader<'a> {
    pub(crate) fn new(source: Option<StreamSource>, log: &'a Log) -> Self {
        Self {
            source,
            log,
            terminal: None,
            buffer: Vec::new(),
        }
    }

    /// Draws what it reads on this terminal.
    pub(crate) fn on(mut self, terminal: Option<&'a CommandTerminal>) -> Self {
        self.terminal = terminal;
        self
    }

    pub(crate) fn open(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the log whose follower the command waits for.
    fn followed(&self) -> &'a Log {
        let screen = self.terminal.and_then(CommandTerminal::screen);
        screen.unwrap_or(self.log)
    }

    /// Reads what is available without waiting, up to the capacity of a pipe: at the end of a command that
    /// is everything it wrote, and then the end of the stream.
    pub(crate) fn take_ready(&mut self) {
        for _ in 0..=BIG_PIPE / SMALL_READ {
            if !self.followed().has_room() || !self.take(true) {
                return;
            }
        }
    }

    /// Returns whether it waits for the follower of its log.
    pub(crate) fn is_held(&self) -> bool {
        self.open() && !self.followed().has_room()
    }

    /// Reads once, as soon as there is room; loses nothing if the future is dropped while it waits.
    pub(crate) async fn step(&mut self) {
        let Some(source) = &self.source else { return };
        self.followed().room().await;
        if source.readable().await.is_err() {
            self.source = None;
            return;
        }
        self.take(false);
    }

    /// Reads once without waiting; returns whether more may be available at once. The reactor may not have
    /// seen the last bytes of a process that has exited yet: `direct` reads the stream itself.
    fn take(&mut self, direct: bool) -> bool {
        let Some(source) = &self.source else {
            return false;
        };
        if self.buffer.is_empty() {
            self.buffer = vec![0; SMALL_READ];
        }
        match source.read(&mut self.buffer, direct) {
            Ok(0) => self.source = None,
            Ok(count) => {
                match self.terminal {
                    Some(terminal) => terminal.take(&self.buffer[..count], self.log),
                    None => self.log.append(&self.buffer[..count]),
                }
                if count == SMALL_READ && self.buffer.len() == SMALL_READ {
                    self.buffer = vec![0; BIG_READ];
                    if let StreamSource::Pipe(pipe) = source {
                        // The kernel refuses this to users who have many such pipes already; it is only for speed.
                        let _ = rustix::pipe::fcntl_setpipe_size(pipe, BIG_PIPE);
                    }
                }
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // A terminal that no process holds any more returns an error.
            Err(_) => self.source = None,
        }
        false
    }
}

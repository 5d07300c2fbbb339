//! A zygote: one interpreter in a jail that creates locked children on request over a socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::time::{Instant, timeout};

use super::datagram::{self, pair};
use super::pidfd::number;
use super::stage::{InterpreterSetup, folders_in};
use crate::held_places::scratch::ScratchFolder;
use crate::jail::{SETUP, launch};
use crate::tree::ProcessTree;
use crate::{Config, StartError};

/// How long a child may take from the fork to its last lock; usually a few milliseconds.
const LOCKING: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a zygote's standard error included in the error when it fails.
const SAID: usize = 2048;

/// A child under its last lock, waiting for its script.
#[derive(Debug)]
pub(super) struct ZygoteChild {
    pub(super) bridge: OwnedFd,
    pub(super) pidfd: OwnedFd,
    /// Its process ID on the host, if known.
    pub(super) pid: Option<Pid>,
    /// Its folder, as this process reaches it.
    pub(super) folder: OwnedFd,
    /// Its folder if that is on the host's own file system; removed with this value.
    pub(super) scratch: Option<ScratchFolder>,
}

/// Whether a child runs the runtime's `warm()` before it is ready: that takes longer than it saves the script.
#[derive(Debug, Clone, Copy)]
pub(super) enum WarmUp {
    /// For the pool: a later script starts sooner.
    Warmed,
    /// For a script that is waiting.
    AtOnce,
}

/// A running zygote. Its children are killed with it.
#[derive(Debug)]
pub(super) struct Zygote {
    tree: Mutex<Option<ProcessTree>>,
    control: OwnedFd,
    errors: OwnedFd,
    /// Serialises requests; the number of the last one.
    turn: tokio::sync::Mutex<u64>,
    made: AtomicU64,
    born: Instant,
    /// The interpreter's name and version, e.g. `cpython 3.11.2`.
    pub(super) name: String,
    /// Whether numpy or pandas can be imported (or already are).
    pub(super) data: bool,
    /// Its files if it has no root of its own.
    files: Option<ScratchFolder>,
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::System { step, source }
}

impl Zygote {
    /// Starts a zygote and waits until it is ready to create children.
    pub(super) async fn start(
        config: &Config,
        stage: &InterpreterSetup<'_>,
    ) -> Result<Self, StartError> {
        let (plan, files) = stage.zygote()?;
        let (control, theirs) = pair().map_err(failed("make a socket"))?;
        let (errors, their_errors) = pipe()?;
        let tree = launch(config, &plan, theirs, their_errors).await?;
        let mut zygote = Self {
            tree: Mutex::new(Some(tree)),
            control,
            errors,
            turn: tokio::sync::Mutex::new(0),
            made: AtomicU64::new(0),
            born: Instant::now(),
            name: String::new(),
            data: false,
            files,
        };
        let mut bytes = [0; 2048];
        let first = timeout(SETUP, datagram::receive(&zygote.control, &mut bytes)).await;
        let (count, _) = first
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(failed("hear from the interpreter"))?;
        let said = String::from_utf8_lossy(&bytes[..count]);
        let words: Vec<_> = match said.strip_prefix('Z') {
            Some(said) => said.split(' ').collect(),
            None => return Err(zygote.gone(&said)),
        };
        zygote.name = format!(
            "{} {}",
            words.first().unwrap_or(&"python"),
            words.get(1).unwrap_or(&"?")
        );
        zygote.data = words.get(2) == Some(&"1");
        Ok(zygote)
    }

    /// Returns why it failed: its own last message, or what it wrote to its standard error.
    fn gone(&self, said: &str) -> StartError {
        let said = said.strip_prefix('E').unwrap_or(said);
        if !said.is_empty() {
            return StartError::Interpreter(said.to_owned());
        }
        let mut bytes = vec![0; 64 << 10];
        let count = rustix::io::read(&self.errors, &mut bytes).unwrap_or(0);
        let tail = &bytes[count.saturating_sub(SAID)..count];
        let lines = String::from_utf8_lossy(tail);
        let lines: Vec<_> = lines.lines().filter(|line| !line.is_empty()).collect();
        StartError::Interpreter(match lines.last() {
            Some(last) => format!("it ended: {last}"),
            None => "it ended without a word".into(),
        })
    }

    /// Returns how many children it created, and how long ago it was started.
    pub(super) fn age(&self) -> (u64, Duration) {
        (self.made.load(Ordering::Relaxed), self.born.elapsed())
    }

    /// Creates a child, locked and ready; warmed if no script waits for it yet.
    pub(super) async fn spawn(&self, warmth: WarmUp) -> Result<ZygoteChild, StartError> {
        let made = |files| ScratchFolder::make_in(&folders_in(files));
        let scratch = self.files.as_ref().map(made).transpose();
        let scratch = scratch.map_err(failed("make a private folder"))?;
        let (bridge, theirs) = pair().map_err(failed("make a socket"))?;
        let pidfd = timeout(LOCKING, self.ask(theirs, scratch.as_ref(), warmth)).await;
        let pidfd = match pidfd.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(answer) => answer?,
            // It exited while handling the request: its last output says why.
            Err(error) if has_ended(&error) => return Err(self.gone("")),
            Err(error) => return Err(failed("ask the zygote for a child")(error)),
        };
        self.made.fetch_add(1, Ordering::Relaxed);
        let folder = match timeout(LOCKING, locked(&bridge)).await {
            Ok(folder) => folder,
            Err(_) => Err(StartError::Interpreter(
                "its locks took too long".to_owned(),
            )),
        };
        match folder {
            Ok((folder, _)) => Ok(ZygoteChild {
                bridge,
                pid: number(&pidfd),
                pidfd,
                folder,
                scratch,
            }),
            Err(error) => {
                kill(&pidfd);
                Err(error)
            }
        }
    }

    /// Sends a request and receives its answer. A caller that is cancelled in between leaves an answer unread, which
    /// the next one recognises by its number.
    async fn ask(
        &self,
        theirs: OwnedFd,
        scratch: Option<&ScratchFolder>,
        warmth: WarmUp,
    ) -> io::Result<Result<OwnedFd, StartError>> {
        let mut turn = self.turn.lock().await;
        *turn += 1;
        let number = turn.to_ne_bytes();
        let mut request = number.to_vec();
        request.push(match warmth {
            WarmUp::Warmed => b'w',
            WarmUp::AtOnce => b'c',
        });
        if let Some(scratch) = scratch {
            request.extend(scratch.0.as_os_str().as_bytes());
        }
        datagram::send(&self.control, &request, theirs.as_fd())?;
        drop(theirs);
        let mut bytes = [0; 2048];
        loop {
            let (count, file) = datagram::receive(&self.control, &mut bytes).await?;
            let Some((answered, said)) = bytes[..count].split_first_chunk::<8>() else {
                return Ok(Err(self.gone("")));
            };
            if *answered != number {
                continue;
            }
            return Ok(match (said.first(), file) {
                (Some(b'P'), Some(file)) => Ok(file),
                _ => Err(self.gone(&String::from_utf8_lossy(said))),
            });
        }
    }

    /// Kills it with its children; returns when they are gone.
    pub(super) async fn end(&self) {
        let tree = self.take_tree();
        if let Some(mut tree) = tree {
            tree.kill();
            // Not by the tree's own watch, which belongs to the runtime that started it.
            let pid = i32::try_from(tree.pid()).ok().and_then(Pid::from_raw);
            if let Some(Ok(pidfd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
                let _ = datagram::readable(pidfd.as_fd()).await;
            }
            tree.finish();
        }
    }

    fn take_tree(&self) -> Option<ProcessTree> {
        self.tree.lock().take()
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let Some(mut tree) = self.take_tree() else {
            return;
        };
        tree.kill();
        // Reaped on a blocking thread, so that waiting for it delays no task.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || drop(tree));
        }
    }
}

fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

/// Creates a pipe that never makes its writer wait: what does not fit is lost.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), StartError> {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
        .map_err(io::Error::from)
        .map_err(failed("make a pipe"))
}

/// Kills a child and, because it is the first process of its namespace, everything it could have started.
pub(super) fn kill(pidfd: &OwnedFd) {
    let _ = rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL);
}

/// Reads a child's messages until it is ready: its folder first, then a word. Returns what follows the `R`.
pub(super) async fn locked(bridge: &OwnedFd) -> Result<(OwnedFd, String), StartError> {
    let mut folder = None;
    let mut bytes = [0; 2048];
    loop {
        let (count, file) = datagram::receive(bridge, &mut bytes)
            .await
            .map_err(failed("hear from the interpreter"))?;
        let said = String::from_utf8_lossy(&bytes[..count]);
        match (said.chars().next(), folder.take()) {
            (Some('F'), None) => folder = file,
            (Some('R'), Some(folder)) => return Ok((folder, said[1..].to_owned())),
            (Some('E'), _) => {
                let why = format!("lock a child: {}", &said[1..]);
                return Err(StartError::Interpreter(why));
            }
            _ => {
                let why = "it ended before its last lock".to_owned();
                return Err(StartError::Interpreter(why));
            }
        }
    }
}

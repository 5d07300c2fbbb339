//! Supervisors that wait for their plan: one started on demand, or one started ahead.
//!
//! Executing this program again and creating its namespaces takes longer than everything else that a jail does. So a sandbox
//! that has started two commands keeps one supervisor for the next: it has already done what is the same for every command with
//! its own network, and has built the part of the root that all commands have in common. What depends on the moment waits for the
//! plan. If the host's mounts have changed since they were copied, the supervisor is not used.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{MARKER, failed};
use crate::command::ProcessLimits;
use crate::spawn::ResolvedCommand;
use crate::{Config, StartError};

/// The argument that tells a supervisor to create its namespaces before it has its plan.
pub(super) const AHEAD: &str = "ahead";

/// A supervisor and this process's end of the socket over which it receives its plan.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) child: Child,
    pub(super) link: UnixStream,
}

impl Supervisor {
    /// Starts a supervisor that waits for its plan.
    pub(super) fn start(config: &Config, stdout: Stdio, stderr: Stdio) -> Result<Self, StartError> {
        Self::execute(config, &[MARKER.into()], stdout, stderr)
    }

    /// Starts this program in a role that its arguments name.
    pub(super) fn execute(
        config: &Config,
        argv: &[OsString],
        stdout: Stdio,
        stderr: Stdio,
    ) -> Result<Self, StartError> {
        Self::execute_program(&program(config)?, argv, stdout, stderr)
    }

    fn execute_program(
        program: &Path,
        argv: &[OsString],
        stdout: Stdio,
        stderr: Stdio,
    ) -> Result<Self, StartError> {
        let (link, theirs) = UnixStream::pair().map_err(failed("make a socket"))?;
        let start = ResolvedCommand {
            program,
            argv,
            env: &BTreeMap::new(),
            cwd: Path::new("/"),
        };
        let child = start
            .spawn(OwnedFd::from(theirs).into(), stdout, stderr)
            .map_err(failed("start the supervisor"))?;
        Ok(Self { child, link })
    }
}

fn program(config: &Config) -> Result<PathBuf, StartError> {
    Ok(match &config.supervisor {
        Some(program) => config.places.startable(program)?,
        None => PathBuf::from("/proc/self/exe"),
    })
}

/// A supervisor that has prepared a root, with the mounts as they were then.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) supervisor: Supervisor,
    /// The limits that files in the root tell.
    pub(super) limits: ProcessLimits,
    /// The list of this process's mounts, opened before. The kernel reports on it whether they have changed since.
    mounts: File,
}

impl Spare {
    fn start(program: &Path, part: &[u8], limits: ProcessLimits) -> Result<Self, StartError> {
        let mounts = File::open("/proc/self/mountinfo").map_err(failed("watch the mounts"))?;
        let argv = [MARKER.into(), AHEAD.into()];
        let supervisor =
            Supervisor::execute_program(program, &argv, Stdio::piped(), Stdio::piped())?;
        let mut spare = Self {
            supervisor,
            limits,
            mounts,
        };
        if let Err(error) = spare.supervisor.link.write_all(part) {
            end(&mut spare.supervisor);
            return Err(failed("send what to prepare")(error));
        }
        Ok(spare)
    }

    /// Returns whether a command would not see the mounts as they are.
    fn is_stale(&self) -> bool {
        let mut changed = [PollFd::new(&self.mounts, PollFlags::PRI)];
        poll(&mut changed, Some(&Timespec::default())) != Ok(0)
    }
}

/// The one supervisor that is kept ready for a command, its output piped to this process.
#[derive(Debug, Default)]
pub(crate) struct SpareSupervisor {
    waiting: Mutex<Option<Spare>>,
    commands: AtomicU32,
}

impl SpareSupervisor {
    /// Takes the supervisor that is ready, if there is one.
    pub(super) fn take(&self) -> Option<Spare> {
        let mut spare = self.waiting.lock().take()?;
        if matches!(spare.supervisor.child.try_wait(), Ok(None)) && !spare.is_stale() {
            return Some(spare);
        }
        end(&mut spare.supervisor);
        None
    }

    /// Starts the next spare after a command was started; not after the first one, which may be the only one.
    pub(super) fn refill(
        self: &Arc<Self>,
        config: &Config,
        limits: ProcessLimits,
        part: impl FnOnce() -> Vec<u8>,
    ) {
        let is_first = self.commands.fetch_add(1, Ordering::Relaxed) == 0;
        let Some(program) = (!is_first).then(|| program(config).ok()).flatten() else {
            return;
        };
        if self
            .waiting
            .try_lock()
            .is_none_or(|waiting| waiting.is_some())
        {
            return;
        }
        let (spare, part) = (Arc::clone(self), part());
        tokio::task::spawn_blocking(move || {
            let mut waiting = spare.waiting.lock();
            if waiting.is_none() {
                // Without a spare, the next command starts its own supervisor and reports the error.
                *waiting = Spare::start(&program, &part, limits).ok();
            }
        });
    }
}

impl Drop for SpareSupervisor {
    fn drop(&mut self) {
        if let Some(mut spare) = self.waiting.get_mut().take() {
            end(&mut spare.supervisor);
        }
    }
}

fn end(supervisor: &mut Supervisor) {
    let _ = supervisor.child.kill();
    let _ = supervisor.child.wait();
}

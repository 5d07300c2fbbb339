//! Supervisors that wait for their plan: one started on demand, or one started ahead.
//!
//! Executing this program again and creating its namespaces takes longer than everything else that a jail does. So a sandbox
//! that has started two commands keeps one supervisor for the next: it has already done what is the same for every command with
//! its own network. What depends on the moment waits for the plan: the control group, and the mounts, which are copied.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::{MARKER, failed};
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
        Self::execute(&program(config)?, &[MARKER.into()], stdout, stderr)
    }

    fn execute(
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

/// The one supervisor that is kept ready for a command, its output piped to this process.
#[derive(Debug, Default)]
pub(crate) struct SpareSupervisor {
    waiting: Mutex<Option<Supervisor>>,
    commands: AtomicU32,
}

impl SpareSupervisor {
    /// Takes the supervisor that is ready, if there is one.
    pub(super) fn take(&self) -> Option<Supervisor> {
        let mut supervisor = self.waiting.lock().take()?;
        let is_alive = matches!(supervisor.child.try_wait(), Ok(None));
        is_alive.then_some(supervisor)
    }

    /// Starts the next spare after a command was started; not after the first one, which may be the only one.
    pub(super) fn refill(self: &Arc<Self>, config: &Config) {
        let is_first = self.commands.fetch_add(1, Ordering::Relaxed) == 0;
        let Some(program) = (!is_first).then(|| program(config).ok()).flatten() else {
            return;
        };
        let spare = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let mut waiting = spare.waiting.lock();
            if waiting.is_none() {
                let argv = [MARKER.into(), AHEAD.into()];
                let made = Supervisor::execute(&program, &argv, Stdio::piped(), Stdio::piped());
                // Without a spare, the next command starts its own supervisor and reports the error.
                *waiting = made.ok();
            }
        });
    }
}

impl Drop for SpareSupervisor {
    fn drop(&mut self) {
        if let Some(mut supervisor) = self.waiting.get_mut().take() {
            let _ = supervisor.child.kill();
            let _ = supervisor.child.wait();
        }
    }
}

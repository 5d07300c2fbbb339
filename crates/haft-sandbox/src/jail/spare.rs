//! Supervisors that wait for their plan: one started on demand, or one started ahead.
//!
//! Executing this program again and creating its namespaces takes longer than everything else that a jail does. So a sandbox
//! that has started two commands keeps one supervisor for the next: it has joined a control group, and has already done what is the same
//! for every command with its own network. It has forked the jail's first process, which has built the part of the root that all commands
//! have in common. What depends on the moment waits for the plan. If the host's mounts have changed since they were copied, the
//! supervisor is not used.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::plan::SupervisorPlan;
use super::{MARKER, failed};
use crate::command::ProcessLimits;
use crate::memory::cgroup::{ControlGroup, ControlGroups};
use crate::report::JailReport;
use crate::spawn::ResolvedCommand;
use crate::{Config, StartError};

/// The argument that tells a supervisor to create its namespaces before it has its plan.
pub(super) const AHEAD: &str = "ahead";
/// How long a supervisor that is not needed may take to exit before it is killed.
const TO_EXIT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

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

/// A supervisor whose jail waits for its plan, with the mounts as they were then.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) supervisor: Supervisor,
    /// The limits that files in the root tell.
    pub(super) limits: ProcessLimits,
    /// What it has joined, with the limit on memory.
    pub(super) group: Option<ControlGroup>,
    /// The list of this process's mounts, opened before. The kernel reports on it whether they have changed since.
    mounts: File,
}

/// What a supervisor is started with before there is a command.
#[derive(Debug)]
pub(super) struct SparePlan {
    pub(super) part: SupervisorPlan,
    pub(super) limits: ProcessLimits,
    /// Where it gets a control group with this limit of bytes; `None` if its memory is limited otherwise.
    pub(super) groups: Option<(ControlGroups, u64)>,
}

impl Spare {
    fn start(program: &Path, mut plan: SparePlan) -> Result<Self, StartError> {
        let mounts = File::open("/proc/self/mountinfo").map_err(failed("watch the mounts"))?;
        let group = plan.groups.map(|(groups, bytes)| groups.take(bytes));
        let group = group.transpose().map_err(failed("limit its memory"))?;
        if let Some(group) = &group {
            plan.part.group = group.entrance();
        }
        let argv = [MARKER.into(), AHEAD.into()];
        let supervisor =
            Supervisor::execute_program(program, &argv, Stdio::piped(), Stdio::piped())?;
        let mut spare = Self {
            supervisor,
            limits: plan.limits,
            group,
            mounts,
        };
        if let Err(error) = spare.supervisor.link.write_all(&plan.part.encode()) {
            spare.end();
            return Err(failed("send what to prepare")(error));
        }
        Ok(spare)
    }

    /// Returns whether its jail waits for a plan already; `None` if it never will.
    pub(super) fn is_prepared(&self) -> Option<bool> {
        let mut first = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(&self.supervisor.link, &mut first, flags) {
            Ok((_, 1..)) if JailReport::Prepared.encode().starts_with(&first) => Some(true),
            Err(Errno::AGAIN) => Some(false),
            _ => None,
        }
    }

    /// Returns whether a command would not see the mounts as they are.
    fn is_stale(&self) -> bool {
        let mut changed = [PollFd::new(&self.mounts, PollFlags::PRI)];
        poll(&mut changed, Some(&Timespec::default())) != Ok(0)
    }

    /// Makes sure that it can take a command whose memory a control group limits to so many bytes, or that is in no group.
    fn suits(&mut self, grouped: Option<u64>) -> bool {
        match (&mut self.group, grouped) {
            (Some(group), Some(bytes)) => group.limit_to(bytes).is_ok(),
            (None, None) => true,
            _ => false,
        }
    }

    /// Ends it. Its processes exit by themselves when the link is closed; nothing waits for them for long.
    fn end(&mut self) {
        let Supervisor { child, link } = &mut self.supervisor;
        let _ = link.shutdown(Shutdown::Both);
        if let Ok(exit) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
            let mut exited = [PollFd::new(&exit, PollFlags::IN)];
            let _ = poll(&mut exited, Some(&TO_EXIT));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The one supervisor that is kept ready for a command, its output piped to this process.
#[derive(Debug, Default)]
pub(crate) struct SpareSupervisor {
    waiting: Mutex<Option<Spare>>,
    commands: AtomicU32,
}

impl SpareSupervisor {
    /// Takes the supervisor that is ready, if there is one, for a command that is in a control group with a limit of so many bytes, or in
    /// none.
    pub(super) fn take(&self, grouped: Option<u64>) -> Option<Spare> {
        let mut spare = self.waiting.lock().take()?;
        let is_alive = matches!(spare.supervisor.child.try_wait(), Ok(None));
        let will_do = is_alive && spare.is_prepared().is_some() && !spare.is_stale();
        if will_do && spare.suits(grouped) {
            return Some(spare);
        }
        tokio::task::spawn_blocking(move || spare.end());
        None
    }

    /// Starts the next spare after a command was started; not after the first one, which may be the only one.
    pub(super) fn refill(self: &Arc<Self>, config: &Config, plan: impl FnOnce() -> SparePlan) {
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
        let (spare, plan) = (Arc::clone(self), plan());
        tokio::task::spawn_blocking(move || {
            let mut waiting = spare.waiting.lock();
            if waiting.is_none() {
                // Without a spare, the next command starts its own supervisor and reports the error.
                *waiting = Spare::start(&program, plan).ok();
            }
        });
    }
}

impl Drop for SpareSupervisor {
    fn drop(&mut self) {
        if let Some(mut spare) = self.waiting.get_mut().take() {
            spare.end();
        }
    }
}

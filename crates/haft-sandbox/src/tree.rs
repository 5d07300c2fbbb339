//! A process and everything it started: watched, killed as a whole, reaped.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::unix::AsyncFd;

use crate::guard_event::GuardEvent;
use crate::held_places::HeldPlaces;
use crate::left_behind::LeftBehind;
use crate::memory::cgroup::ControlGroup;
use crate::report::JailReport;
use crate::sys;

/// A process tree, identified by its first process.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    child: Child,
    pidfd: AsyncFd<OwnedFd>,
    kind: TreeKind,
    reaped: bool,
}

#[derive(Debug)]
enum TreeKind {
    /// Members are recognised by process group, by parents, and by a mark in their environment.
    Passthrough { cookie: OsString },
    /// The supervisor kills its jail when the link is closed, and reports over it how the command exited.
    Jail {
        link: UnixStream,
        /// Goes when nothing of the jail is alive any more.
        held: HeldPlaces,
        /// Limits its memory.
        group: Option<ControlGroup>,
        /// The report that was read before the tree was watched, if it tells of the end.
        told: Option<Box<JailReport>>,
    },
}

/// How a tree ended.
#[derive(Debug, Default)]
pub(crate) struct TreeEnd {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Whether it used more memory than allowed.
    pub(crate) over_memory: bool,
    /// What happened to guarded paths.
    pub(crate) guard_events: Vec<GuardEvent>,
    pub(crate) left: LeftBehind,
    /// The group to be put away.
    pub(crate) group: Option<ControlGroup>,
}

impl ProcessTree {
    /// The variable that identifies a process even after it left its group and its parent.
    pub(crate) const COOKIE: &str = "HAFT_TASK";

    /// Returns a mark that no other command has.
    pub(crate) fn cookie(id: u64) -> OsString {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), id);
        format!("{}-{id}-{random:016x}", std::process::id()).into()
    }

    pub(crate) fn passthrough(child: Child, cookie: OsString) -> io::Result<Self> {
        Self::new(child, TreeKind::Passthrough { cookie })
    }

    pub(crate) fn jail(child: Child, link: UnixStream) -> io::Result<Self> {
        Self::new(
            child,
            TreeKind::Jail {
                link,
                held: HeldPlaces::default(),
                group: None,
                told: None,
            },
        )
    }

    /// Keeps what is held outside a jail until the jail is gone.
    pub(crate) fn hold(&mut self, places: HeldPlaces) {
        if let TreeKind::Jail { held, .. } = &mut self.kind {
            *held = places;
        }
    }

    /// Keeps the group of a jail, if it is in one, until the jail is gone.
    pub(crate) fn bound_by(&mut self, bound: Option<ControlGroup>) {
        if let TreeKind::Jail { group, .. } = &mut self.kind {
            *group = bound;
        }
    }

    /// Returns whether its memory is limited by a group.
    pub(crate) fn is_grouped(&self) -> bool {
        matches!(&self.kind, TreeKind::Jail { group: Some(_), .. })
    }

    /// Keeps a report of the jail that tells of its end.
    pub(crate) fn reported(&mut self, report: Option<JailReport>) {
        if let TreeKind::Jail { told, .. } = &mut self.kind {
            *told = report.map(Box::new);
        }
    }

    /// Waits until the first process has exited, and returns whether that was because a signal killed it or, in a jail, the first process
    /// inside: a supervisor that fails exits with another code than 0.
    pub(crate) async fn was_killed(&mut self) -> bool {
        self.ended().await;
        let exit = self.child.try_wait().ok().flatten();
        self.reaped = exit.is_some();
        exit.is_some_and(|status| status.success() || status.signal().is_some())
    }

    fn new(mut child: Child, kind: TreeKind) -> io::Result<Self> {
        let watch = |child: &Child| {
            let pidfd = pidfd_open(pid(child), PidfdFlags::NONBLOCK)?;
            sys::watch(pidfd)
        };
        match watch(&child) {
            Ok(pidfd) => Ok(Self {
                child,
                pidfd,
                kind,
                reaped: false,
            }),
            Err(error) => {
                // It is not reaped yet, so the ID is still its own.
                let _ = kill_process_group(pid(&child), Signal::KILL);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM to the command and its process group.
    pub(crate) fn terminate(&self) {
        let first = pid(&self.child);
        let command = match &self.kind {
            TreeKind::Passthrough { .. } => Some(first),
            // The supervisor started the first process inside, and that one the command.
            TreeKind::Jail { .. } => only_child(first).and_then(only_child),
        };
        if let Some(command) = command.filter(|_| !self.reaped) {
            let _ = kill_process_group(command, Signal::TERM);
        }
    }

    /// Kills everything; [`ended`](Self::ended) returns once it is gone.
    pub(crate) fn kill(&mut self) {
        if self.reaped {
            return;
        }
        match &self.kind {
            TreeKind::Passthrough { cookie } => {
                let _ = kill_process_group(pid(&self.child), Signal::KILL);
                sweep(cookie);
            }
            TreeKind::Jail { link, .. } => {
                let _ = link.shutdown(std::net::Shutdown::Write);
            }
        }
    }

    /// Returns whether its control group ran out of memory: the kernel then kills one process, not all.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        match &self.kind {
            TreeKind::Jail { group, .. } => group.as_ref().is_some_and(ControlGroup::was_full),
            TreeKind::Passthrough { .. } => false,
        }
    }

    /// Waits until the first process has exited; it is not reaped yet.
    pub(crate) async fn ended(&self) {
        // Without a reactor nothing can be awaited; the runtime is shutting down.
        if self.pidfd.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Kills what is left, reaps the first process, and returns how the command exited.
    pub(crate) fn finish(&mut self) -> TreeEnd {
        if matches!(self.kind, TreeKind::Passthrough { .. }) {
            // Before it is reaped: until then the group's ID cannot belong to another group.
            let _ = kill_process_group(pid(&self.child), Signal::KILL);
        }
        let status = self.child.wait();
        self.reaped = true;
        match &mut self.kind {
            TreeKind::Passthrough { .. } => {
                let status = status.unwrap_or_default();
                TreeEnd {
                    code: status.code(),
                    signal: status.signal(),
                    ..TreeEnd::default()
                }
            }
            TreeKind::Jail {
                link,
                held,
                group,
                told,
            } => {
                // Before the exit is reported, so that the caller finds no placeholder.
                drop(std::mem::take(held));
                let mut end = read_end(link, told.take().map(|told| *told));
                end.group = group.take();
                let full = end.group.as_ref().is_some_and(ControlGroup::was_full);
                end.over_memory |= full && end.code != Some(0);
                end
            }
        }
    }
}

impl ProcessTree {
    /// Kills processes that left a passthrough command's group; a jail has none.
    pub(crate) fn sweep(&self) {
        if let TreeKind::Passthrough { cookie } = &self.kind {
            sweep(cookie);
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // Only if the runtime shuts down under a running command: whatever happens, no process is left.
        self.kill();
        let _ = kill_process_group(pid(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Returns the only remaining child of a process.
fn only_child(parent: Pid) -> Option<Pid> {
    let number = parent.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
    let children = children.ok()?;
    Pid::from_raw(children.split_ascii_whitespace().next()?.parse().ok()?)
}

/// Returns how the command exited, once the supervisor is gone; without a report from inside it was killed. `told` is what was read before.
fn read_end(link: &mut UnixStream, told: Option<JailReport>) -> TreeEnd {
    let mut bytes = Vec::new();
    let mut part = [0; 256];
    while let Ok(count @ 1..) = link.read(&mut part) {
        bytes.extend_from_slice(&part[..count]);
    }
    let mut end = TreeEnd::default();
    let mut rest = bytes.as_slice();
    let mut next = || {
        let (report, length) = JailReport::decode(rest)?;
        rest = &rest[length..];
        Some(report)
    };
    for report in told.into_iter().chain(std::iter::from_fn(&mut next)) {
        match report {
            JailReport::Ended { code, signal } => (end.code, end.signal) = (code, signal),
            JailReport::TooMuch { .. } => end.over_memory = true,
            JailReport::Guard(event) => end.guard_events.push(event),
            JailReport::LeftFiles(paths) => end.left.home = paths,
            JailReport::LeftRunning(names) => {
                let names = names.iter().map(|name| name.to_string_lossy().into_owned());
                end.left.processes = names.collect();
            }
            _ => {}
        }
    }
    if end.code.is_none() && end.signal.is_none() {
        end.signal = Some(libc::SIGKILL);
    }
    end
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Kills every process that carries the mark, and repeats until a pass finds none (a fork can slip past one
/// pass), at most eight times.
fn sweep(cookie: &OsString) {
    let mut mark = ProcessTree::COOKIE.as_bytes().to_vec();
    mark.push(b'=');
    mark.extend(cookie.as_encoded_bytes());
    for _ in 0..8 {
        if !sweep_once(&mark) {
            return;
        }
    }
}

fn sweep_once(mark: &[u8]) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    let mut found = false;
    let mut environ = Vec::new();
    for entry in entries.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(process) = number.and_then(Pid::from_raw) else {
            continue;
        };
        let Ok(watch) = pidfd_open(process, PidfdFlags::empty()) else {
            continue;
        };
        environ.clear();
        let file = std::fs::File::open(entry.path().join("environ"));
        let Ok(_) = file.and_then(|file| file.take(1 << 20).read_to_end(&mut environ)) else {
            continue;
        };
        if environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark)
        {
            let _ = rustix::process::pidfd_send_signal(&watch, Signal::KILL);
            found = true;
        }
    }
    found
}

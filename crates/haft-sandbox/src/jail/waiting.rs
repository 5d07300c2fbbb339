//! Waits for the first process of a jail, and reaps the orphans it leaves.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, wait, waitpid,
};

use super::watch::GuardWatch;
use crate::memory::watch::MemoryWatch;
use crate::sys::ChildSignals;

/// Maximum number of children reaped before the host's link and the memory are checked again.
const AT_ONCE: usize = 1_000;

/// The first process of a jail, a child of this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InitProcess {
    pub(crate) child: Pid,
    /// Whether orphans become children of this process, as they do without a pid namespace.
    pub(crate) adopts: bool,
}

impl InitProcess {
    /// Waits until it has exited; kills it when the host asks for it or when its tree uses too much memory, and then returns
    /// how much. Whatever happens, the tree is killed.
    pub(crate) fn wait(
        self,
        link: &UnixStream,
        watch: Option<MemoryWatch>,
        guards: Option<&mut GuardWatch<'_>>,
    ) -> io::Result<Option<u64>> {
        let exceeded = pidfd_open(self.child, PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(|process| {
                let exceeded = self.until_ended(&process, link, watch, guards);
                // Has no effect if it has already exited.
                let _ = pidfd_send_signal(&process, Signal::KILL);
                let mut ended = [PollFd::new(&process, PollFlags::IN)];
                while let Err(Errno::INTR) = poll(&mut ended, None) {}
                exceeded
            });
        if self.adopts {
            end_orphans();
        }
        exceeded
    }

    /// Returns when it has exited, when the host's link is readable (after the plan that can only mean that the host closed
    /// it), when its tree uses too much memory, or when a guard cannot hold it.
    fn until_ended(
        self,
        process: &OwnedFd,
        link: &UnixStream,
        mut watch: Option<MemoryWatch>,
        mut guards: Option<&mut GuardWatch<'_>>,
    ) -> io::Result<Option<u64>> {
        let orphans = self.adopts.then(ChildSignals::open).transpose()?;
        let next_look = |watch: &MemoryWatch| Instant::now() + watch.pause();
        let mut due = watch.as_ref().map(next_look);
        loop {
            let mut more = false;
            if let Some(orphans) = &orphans {
                orphans.clear();
                more = reap_children();
            }
            let mut fds = vec![
                PollFd::new(process, PollFlags::IN),
                PollFd::new(link, PollFlags::IN | PollFlags::RDHUP),
            ];
            let signals = orphans.as_ref().map(ChildSignals::file);
            fds.extend(signals.map(|file| PollFd::new(file, PollFlags::IN)));
            fds.extend(guards.iter().flat_map(|guards| guards.files()));
            let guards_due = guards.as_ref().and_then(|guards| guards.due());
            let next = due.into_iter().chain(guards_due).min();
            let left = next.map(|due| due.saturating_duration_since(Instant::now()));
            let left = if more { Some(Duration::ZERO) } else { left };
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut fds, left.as_ref()) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            if fds.iter().take(2).any(|fd| !fd.revents().is_empty()) {
                return Ok(None);
            }
            let mounts = fds.iter().any(|fd| fd.revents().contains(PollFlags::PRI));
            drop(fds);
            if guards.as_mut().is_some_and(|guards| guards.look(mounts)) {
                return Ok(None);
            }
            // A steady stream of exiting orphans must not delay the next check.
            let looks = due.is_some_and(|due| due <= Instant::now());
            let exceeded = watch
                .as_mut()
                .filter(|_| looks)
                .and_then(MemoryWatch::exceeded);
            if exceeded.is_some() {
                return Ok(exceeded);
            }
            if looks {
                due = watch.as_ref().map(next_look);
            }
        }
    }
}

/// Reaps children that have exited: until then each counts against the user's limit of processes. How they
/// exited does not matter, not even for the first process: its pidfd tells that it is gone. Returns whether there
/// may be more.
fn reap_children() -> bool {
    (0..AT_ONCE).all(|_| matches!(wait(WaitOptions::NOHANG), Ok(Some(_))))
}

/// Kills, one by one until none is left, the processes that the command started and that this process has adopted.
fn end_orphans() {
    let me = std::process::id();
    for _ in 0..10_000 {
        let children = std::fs::read_to_string(format!("/proc/self/task/{me}/children"));
        let children = children.unwrap_or_default();
        let mut any = false;
        for child in children
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
        {
            if let Some(child) = Pid::from_raw(child) {
                any = true;
                let _ = rustix::process::kill_process(child, Signal::KILL);
                let _ = waitpid(Some(child), WaitOptions::empty());
            }
        }
        if !any {
            return;
        }
    }
}

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

use super::sys::ChildSignals;
use super::watch::GuardWatch;
use crate::memory::watch::Watch;

/// Most children that are reaped before the host's link and the memory are looked at again.
const AT_ONCE: usize = 1_000;

/// The first process of a jail, a child of this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct First {
    pub(crate) child: Pid,
    /// Without a pid namespace whoever loses its parent becomes a child of this process.
    pub(crate) adopts: bool,
}

impl First {
    /// Waits until it is gone, ending it when the host says so or when its tree has too much memory: then
    /// how much. Whatever happens, the tree is ended.
    pub(crate) fn wait(
        self,
        link: &UnixStream,
        watch: Option<Watch>,
        guards: Option<&mut GuardWatch<'_>>,
    ) -> io::Result<Option<u64>> {
        let exceeded = pidfd_open(self.child, PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(|process| {
                let exceeded = self.until_ended(&process, link, watch, guards);
                // Nothing happens where it is gone already.
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

    /// Returns when it is gone, when the host says something (after the plan that can only be the end of
    /// the link), when its tree has too much memory, or when a guard cannot hold it.
    fn until_ended(
        self,
        process: &OwnedFd,
        link: &UnixStream,
        mut watch: Option<Watch>,
        mut guards: Option<&mut GuardWatch<'_>>,
    ) -> io::Result<Option<u64>> {
        let orphans = self.adopts.then(ChildSignals::open).transpose()?;
        let next_look = |watch: &Watch| Instant::now() + watch.pause();
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
            // Orphans that end all the time do not put the next look off.
            let looks = due.is_some_and(|due| due <= Instant::now());
            let exceeded = watch.as_mut().filter(|_| looks).and_then(Watch::exceeded);
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
/// exited does not matter, of the first process neither: its pidfd tells that it is gone. Whether there may be
/// more.
fn reap_children() -> bool {
    (0..AT_ONCE).all(|_| matches!(wait(WaitOptions::NOHANG), Ok(Some(_))))
}

/// Whatever the command started is left to this process, its adopter: ended one by one until none is left.
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

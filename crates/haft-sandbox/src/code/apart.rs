//! Keeps a script's process off this thread's CPU while it starts.
//!
//! A local socket wakes its reader on the CPU of its writer. A host that polls for an answer occupies that CPU, and the script
//! waits for it although another one is idle.

use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::pidfd::gone;

/// Controls where a script's process may run.
#[derive(Debug)]
pub(super) struct CpuPlacement {
    /// `None` if unknown.
    pid: Option<Pid>,
    phase: Mutex<PlacementPhase>,
}

#[derive(Debug)]
enum PlacementPhase {
    /// The process has not received any of its script yet.
    New,
    /// The process is starting, on all of these CPUs except one.
    Begins(CpuSet),
    /// The process runs on any CPU.
    Free,
}

impl CpuPlacement {
    pub(super) fn new(pid: Option<Pid>) -> Self {
        let phase = Mutex::new(PlacementPhase::New);
        Self { pid, phase }
    }

    /// Keeps the process off this thread's CPU, before the first message to it.
    pub(super) fn begin(&self, pidfd: &OwnedFd) {
        let mut phase = self.phase.lock();
        if !matches!(*phase, PlacementPhase::New) {
            return;
        }
        *phase = PlacementPhase::Free;
        // The ID of a process that is gone may belong to another one.
        if gone(pidfd, 0) {
            return;
        }
        let Some(Ok(all)) = self.pid.map(|pid| sched_getaffinity(Some(pid))) else {
            return;
        };
        let mut others = all;
        others.unset(sched_getcpu());
        if others.count() > 0 && sched_setaffinity(self.pid, &others).is_ok() {
            *phase = PlacementPhase::Begins(all);
        }
    }

    /// Lets the process and the threads that it has created run on all its CPUs again.
    pub(super) fn release(&self, pidfd: &OwnedFd) {
        let mut phase = self.phase.lock();
        if let (PlacementPhase::Begins(all), Some(pid)) = (&*phase, self.pid) {
            let threads = (!gone(pidfd, 0)).then(|| threads(pid));
            for thread in threads.into_iter().flatten() {
                let _ = sched_setaffinity(Some(thread), all);
            }
            *phase = PlacementPhase::Free;
        }
    }
}

fn threads(pid: Pid) -> impl Iterator<Item = Pid> {
    let list = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let numbers = list.into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw)
}

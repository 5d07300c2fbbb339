//! Code shared by the supervisor, the process inside and its children: findings from outside, what ties them, how they die together.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::plan::SupervisorPlan;
use super::users::UserMapping;
use crate::report::{SetupFailure, step};
use crate::sys::leave;

/// What the supervisor found outside the jail.
#[derive(Debug, Clone, Copy)]
pub(super) struct SupervisorFindings {
    pub(super) users: UserMapping,
    /// Whether the memory of a tree can be watched.
    pub(super) watched: bool,
    /// Whether the tree is in its control group.
    pub(super) grouped: bool,
}

/// Makes this process die with the supervisor, even if that has just exited: `tie` is a socket whose other end only the supervisor has.
pub(super) fn die_with(tie: impl AsFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match recv(tie, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Err(rustix::io::Errno::AGAIN) => Ok(()),
        _ => leave(125),
    }
}

/// Returns the environment as pairs.
pub(super) fn environment(plan: &SupervisorPlan) -> BTreeMap<OsString, OsString> {
    plan.env
        .iter()
        .filter_map(|pair| {
            let bytes = pair.as_bytes();
            let at = bytes.iter().position(|byte| *byte == b'=')?;
            Some((
                OsStr::from_bytes(&bytes[..at]).into(),
                OsStr::from_bytes(&bytes[at + 1..]).into(),
            ))
        })
        .collect()
}

/// Opens the present `/proc` as a handle.
pub(crate) fn open_proc() -> Result<OwnedFd, SetupFailure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty());
    proc.map_err(io::Error::from).map_err(step("open /proc"))
}

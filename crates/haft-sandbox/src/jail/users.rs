//! User namespaces: the users that exist in one, and becoming the user `nobody` if this process is the machine's root.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Gid, Mode, OFlags, Uid, openat};
use rustix::process::{WaitOptions, getgid, getuid, waitpid};
use rustix::thread::{
    CapabilitySets, UnshareFlags, capabilities, set_capabilities, set_keep_capabilities,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::report::{SetupFailure, step};
use crate::sys::{self, leave};

/// The ID of the user and group that own nothing.
const NOBODY: u32 = 65534;
/// The ID that the machine's root has in a command: the first one of ordinary users. Programs that refuse to run as root (`initdb`,
/// browsers), or do more as root (`tar`), behave as for any user; root has no more rights there than one.
const ORDINARY: u32 = 1000;

/// Returns the ID by which a command sees this user or group as its own.
pub(super) fn shown_to_command(id: u32) -> u32 {
    if id == 0 { ORDINARY } else { id }
}

/// The users that exist in a user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserMapping {
    /// Only this process's own user and group.
    Own,
    /// The same, for a command: the machine's root is an ordinary user there.
    Command,
    /// Root and nobody: scripts then need not run as the machine's root.
    RootAndNobody,
}

impl UserMapping {
    /// Returns the users wanted in the namespaces of interpreters.
    pub(super) fn of_interpreters() -> Self {
        if getuid().is_root() {
            Self::RootAndNobody
        } else {
            Self::Own
        }
    }
}

/// Enters a new user namespace in which these users have the same IDs as outside, except root in a command; returns which of them exist. To map
/// more than its own user, it needs rights that root in a container may not have.
pub(super) fn enter(proc: &OwnedFd, wanted: UserMapping) -> Result<UserMapping, SetupFailure> {
    let own = itself(proc).map_err(step("open /proc"))?;
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    if wanted == UserMapping::RootAndNobody {
        if enter_mapped(&own, gid).map_err(step("user namespace"))? {
            return Ok(wanted);
        }
    } else {
        sys::unshare(UnshareFlags::NEWUSER).map_err(step("user namespace"))?;
    }
    let set = |name: &str, text: &str| put(&own, name, text).map_err(step(format!("write {name}")));
    set("setgroups", "deny")?;
    let shown = |id| match wanted {
        UserMapping::Command => shown_to_command(id),
        UserMapping::Own | UserMapping::RootAndNobody => id,
    };
    set("uid_map", &format!("{} {uid} 1", shown(uid)))?;
    set("gid_map", &format!("{} {gid} 1", shown(gid)))?;
    Ok(UserMapping::Own)
}

/// Enters one whose users a helper process maps, which stays outside; returns whether the helper had the right to.
fn enter_mapped(own: &OwnedFd, gid: u32) -> io::Result<bool> {
    let (mut entered, mut enter) = io::pipe()?;
    let Some(helper) = sys::fork()? else {
        drop(enter);
        let mapped = entered.read_exact(&mut [0]).and_then(|()| {
            put(own, "uid_map", &format!("0 0 1\n{NOBODY} {NOBODY} 1"))?;
            put(
                own,
                "gid_map",
                &format!("{gid} {gid} 1\n{NOBODY} {NOBODY} 1"),
            )
        });
        leave(i32::from(mapped.is_err()))
    };
    drop(entered);
    let done = sys::unshare(UnshareFlags::NEWUSER).and_then(|()| enter.write_all(b"x"));
    drop(enter);
    let status = waitpid(Some(helper), WaitOptions::empty())?;
    done?;
    Ok(status.is_some_and(|(_, status)| status.exit_status() == Some(0)))
}

/// Opens this process's folder of `/proc`: another process that has the handle still finds this one there.
fn itself(proc: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(proc, "self", flags, Mode::empty())?)
}

fn put(process: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(process, name, flags, Mode::empty())?;
    rustix::io::write(file.as_fd(), text.as_bytes())?;
    Ok(())
}

/// Becomes nobody and keeps every capability of the namespace.
pub(super) fn become_nobody() -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_keep_capabilities(true)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let sets = capabilities(None)?;
    let effective = sets.permitted;
    set_capabilities(None, CapabilitySets { effective, ..sets })?;
    Ok(())
}

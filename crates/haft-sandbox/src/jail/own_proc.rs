//! The `/proc` of a jail: that of its own processes, covered for commands; and the limit on their number, which is set through it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

use super::plan::{ProgramRole, SupervisorPlan};
use super::proc_covers::{MadeUpFiles, closed_file};
use super::users::UserMapping;
use crate::strength::Strength;
use crate::sys;

/// Its place in a root that is the current folder.
const HERE: &str = "proc";
/// The kernel uses process IDs below this one only once, at the start, and never again.
const RESERVED: u64 = 300;

/// Mounts a `/proc` with only the processes of this process's namespace and, for a command, made-up files, which it returns; at the level
/// without it, there are only those. The root is the current folder, and `empty` an empty folder in it.
pub(super) fn mount(
    plan: &SupervisorPlan,
    users: UserMapping,
    empty: &Path,
) -> io::Result<Option<MadeUpFiles>> {
    fs::create_dir_all(HERE)?;
    if plan.strength() != Strength::Full {
        return Ok(None);
    }
    if plan.role == ProgramRole::Command {
        return covered(empty).map(Some);
    }
    // A script's own process sets its limit of threads through it before it loses sight of `/proc`. But a process that
    // is the machine's root could change every setting of the kernel.
    let nobody = users == UserMapping::RootAndNobody || !rustix::process::getuid().is_root();
    let writable = plan.role == ProgramRole::Fresh || plan.role == ProgramRole::Zygote && nobody;
    let proc = if writable {
        processes(ProcContents::Settings, MountAttrFlags::empty())
    } else {
        processes(ProcContents::Processes, MountAttrFlags::MOUNT_ATTR_RDONLY)
    };
    put(&proc?).map(|()| None)
}

fn put(proc: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(proc, "", CWD, HERE, flags)?)
}

/// Mounts one in which everything but the processes is covered.
fn covered(empty: &Path) -> io::Result<MadeUpFiles> {
    let at = Path::new(HERE);
    let made_up = MadeUpFiles::open(at)?;
    let closed = closed_file()?;
    put(&processes(
        ProcContents::Settings,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )?)?;
    made_up.cover(at, empty, closed)?;
    fs::remove_file(closed)?;
    Ok(made_up)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcContents {
    Processes,
    /// The kernel's information about itself and the machine, too.
    Settings,
}

/// Creates a `/proc` that is not mounted yet.
fn processes(shows: ProcContents, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let proc = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    if shows == ProcContents::Processes {
        fsconfig_set_string(proc.as_fd(), "subset", "pid")?;
    }
    fsconfig_create(proc.as_fd())?;
    let inert = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(fsmount(proc.as_fd(), flags, attributes | inert)?)
}

/// Limits this pid namespace to `pids` processes; returns false if the kernel has no such setting per
/// namespace: there the same file sets the limit of the whole machine, and root would change that.
pub(super) fn count(pids: u64) -> io::Result<bool> {
    if pids == u64::MAX || !sys::pid_max_is_of_a_namespace() {
        return Ok(false);
    }
    let most = pids.saturating_add(RESERVED).to_string();
    let set = |name: &str, value: &str| -> io::Result<()> {
        // The settings belong to the writing process's namespace, whichever `/proc` is used. In a container,
        // the present one may be read-only.
        let path = Path::new("sys/kernel").join(name);
        fs::write(Path::new("/proc").join(&path), value).or_else(|_| {
            let proc = processes(ProcContents::Settings, MountAttrFlags::empty())?;
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let file = openat(&proc, &path, flags, Mode::empty())?;
            rustix::io::write(&file, value.as_bytes())?;
            Ok(())
        })
    };
    let counted = set("pid_max", &most).is_ok();
    if counted {
        set("ns_last_pid", &RESERVED.to_string())?;
    }
    Ok(counted)
}

//! Covers what `/proc` says of the machine: with the made-up files that the root has there, else with nothing.
//!
//! A `/proc` of processes alone (`subset=pid`) has no names for made-up files, and no file system can be put together with one: a
//! union would open other processes' files with the rights of whoever mounted it. So the whole one is mounted, and each name in it
//! that is not a process gets a cover. What is not known is covered, too.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::mount::mount_bind;
use rustix::process::getuid;

use crate::sys::mount_setattr;

/// What is shown of the kernel's own: its version, what it has been built with and has loaded; and the objects of the jail's IPC namespace.
/// Nothing of its state: not even keys and locks, which it shows across namespaces to the same user.
const SHOWN: &[&[u8]] = &[
    b"config.gz",
    b"consoles",
    b"crypto",
    b"devices",
    b"dma",
    b"execdomains",
    b"filesystems",
    b"misc",
    b"sysvipc",
    b"version",
];
/// The rights of everybody but the owner.
const OTHERS: u32 = 0o077;
const INERT: u64 = libc::MOUNT_ATTR_RDONLY
    | libc::MOUNT_ATTR_NOSUID
    | libc::MOUNT_ATTR_NODEV
    | libc::MOUNT_ATTR_NOEXEC;

/// Opens the folder below which the made-up files are, before a `/proc` is mounted on it.
pub(super) fn made_up(at: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, at, flags, Mode::empty())?)
}

/// Covers what the `/proc` mounted at `at` shows besides processes: with what is made up, else with an empty folder or a file that no
/// process may open.
pub(super) fn cover(at: &Path, made_up: &OwnedFd, empty: &Path, closed: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let list = openat(CWD, at, flags, Mode::empty())?;
    // Reached through the old root: the new one has a `/proc` on it.
    let made_up_at = PathBuf::from(format!("/proc/self/fd/{}", made_up.as_raw_fd()));
    for entry in Dir::read_from(&list)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_shown(name, entry.file_type()) || is_closed(&list, name)? {
            continue;
        }
        let file = OsStr::from_bytes(name.to_bytes());
        let target = at.join(file);
        let is_made_up = statat(made_up, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        match entry.file_type() {
            _ if is_made_up => mount_bind(made_up_at.join(file), &target)?,
            FileType::Directory => mount_bind(empty, &target)?,
            _ => mount_bind(closed, &target)?,
        }
    }
    let all = openat(CWD, at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    mount_setattr(all.as_fd(), INERT, true)
}

/// Processes, and the links to the reader's own (`self`, `mounts`, `net`).
fn is_shown(name: &CStr, kind: FileType) -> bool {
    let name = name.to_bytes();
    name.iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        || kind == FileType::Symlink
        || SHOWN.contains(&name)
}

/// Returns whether only another user may open it: no process inside can become that user, or has a capability in place of it.
fn is_closed(list: &OwnedFd, name: &CStr) -> io::Result<bool> {
    let stat = statat(list, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let others = stat.st_mode & OTHERS;
    Ok(others == 0 && stat.st_uid != getuid().as_raw())
}

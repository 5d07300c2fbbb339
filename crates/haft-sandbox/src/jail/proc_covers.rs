//! Covers what `/proc` says of the machine: with the made-up files that the root has there, else with nothing.
//!
//! A `/proc` of processes alone (`subset=pid`) has no names for made-up files, and no file system can be put together with one: a
//! union would open other processes' files with the rights of whoever mounted it. So the whole one is mounted, and each name in it
//! that is not a process gets a cover. What is not known is covered, too.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
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
const CLOSED_FILE: &str = ".closed-file";
const NO_ACCESS: u32 = 0o000;
/// Where it is mounted in a jail.
pub(super) const PROC: &str = "/proc";
const INERT: u64 = libc::MOUNT_ATTR_RDONLY
    | libc::MOUNT_ATTR_NOSUID
    | libc::MOUNT_ATTR_NODEV
    | libc::MOUNT_ATTR_NOEXEC;

/// The made-up files in a root, on which a `/proc` is mounted.
#[derive(Debug)]
pub(super) struct MadeUpFiles(OwnedFd);

impl MadeUpFiles {
    /// Opens the folder below which they are, before a `/proc` is mounted on it.
    pub(super) fn open(at: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, at, flags, Mode::empty())?))
    }

    /// Writes a file again, which shows in the cover that is mounted of it; `target` is its path in the jail. The covers themselves are read-only.
    pub(super) fn rewrite(&self, target: &Path, bytes: &[u8]) -> io::Result<()> {
        let below = target.strip_prefix(PROC);
        let below = below.map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0, below, flags, Mode::empty())?;
        fs::File::from(file).write_all(bytes)
    }

    /// Covers what the `/proc` mounted at `at` shows besides processes: with what is made up, else with an empty folder or a file that no
    /// process may open.
    pub(super) fn cover(&self, at: &Path, empty: &Path, closed: &Path) -> io::Result<()> {
        let Self(made_up) = self;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let list = openat(CWD, at, flags, Mode::empty())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let names = Dir::new(openat(made_up, ".", flags, Mode::empty())?)?;
        let names = names.map(|entry| Ok(entry?.file_name().to_owned()));
        let names = names.collect::<io::Result<HashSet<CString>>>()?;
        // Reached through the old root: the new one has a `/proc` on it.
        let made_up_at = PathBuf::from(format!("/proc/self/fd/{}", made_up.as_raw_fd()));
        for entry in Dir::read_from(&list)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_made_up = names.contains(name);
            if is_shown(name, entry.file_type()) || !is_made_up && is_closed(&list, name)? {
                continue;
            }
            let file = OsStr::from_bytes(name.to_bytes());
            let target = at.join(file);
            match entry.file_type() {
                _ if is_made_up => mount_bind(made_up_at.join(file), &target)?,
                FileType::Directory => mount_bind(empty, &target)?,
                _ => mount_bind(closed, &target)?,
            }
        }
        let all = openat(CWD, at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        mount_setattr(all.as_fd(), INERT, true)
    }
}

/// Creates a file in the current folder that nothing can read: no capability is left when a command or a script runs.
pub(super) fn closed_file() -> io::Result<&'static Path> {
    let closed = Path::new(CLOSED_FILE);
    let mut options = fs::File::options();
    options.write(true).create_new(true).mode(NO_ACCESS);
    options.open(closed)?;
    Ok(closed)
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

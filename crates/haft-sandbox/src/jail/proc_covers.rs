//! Covers what `/proc` says of the machine: with the made-up files that the root has there, else with nothing.
//!
//! A `/proc` of processes alone (`subset=pid`) has no names for made-up files, and no file system can be put together with one: a
//! union would open other processes' files with the rights of whoever mounted it. So the whole one is mounted, and each name in it
//! that is not a process gets a cover. What is not known is covered, too.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, mount_bind, move_mount, open_tree};

use super::root::{EMPTY_FOLDER, INERT, READ_ONLY};
use crate::sys::mount_setattr;

/// What is shown of the kernel's own: the file systems and the version that it has, and the objects of the jail's IPC namespace.
const SHOWN: &[&[u8]] = &[b"filesystems", b"version", b"sysvipc"];
const NO_PROGRAMS: u64 = libc::MOUNT_ATTR_NOEXEC;

/// Opens the folder below which the made-up files are, before a `/proc` is mounted on it.
pub(super) fn made_up(at: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, at, flags, Mode::empty())?)
}

/// Covers what the `/proc` mounted at `at` shows besides processes; `closed` is a file that nobody may open.
pub(super) fn cover(at: &Path, made_up: &OwnedFd, closed: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let list = openat(CWD, at, flags, Mode::empty())?;
    for entry in Dir::read_from(&list)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_shown(name, entry.file_type()) {
            continue;
        }
        let target =
            at.join(std::str::from_utf8(name.to_bytes()).map_err(|_| io::ErrorKind::InvalidData)?);
        if !cover_with_made_up(made_up, name, &target)? {
            let nothing = match entry.file_type() {
                FileType::Directory => Path::new(EMPTY_FOLDER),
                _ => closed,
            };
            mount_bind(nothing, &target)?;
        }
    }
    let all = openat(CWD, at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    mount_setattr(all.as_fd(), READ_ONLY | INERT | NO_PROGRAMS, true)
}

/// Processes, and the links to the reader's own (`self`, `mounts`, `net`).
fn is_shown(name: &CStr, kind: FileType) -> bool {
    let name = name.to_bytes();
    name.iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        || kind == FileType::Symlink
        || SHOWN.contains(&name)
}

/// Puts the made-up file or folder of this name there; returns false if there is none.
fn cover_with_made_up(made_up: &OwnedFd, name: &CStr, target: &Path) -> io::Result<bool> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = match open_tree(made_up, name, flags) {
        Ok(tree) => tree,
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    move_mount(
        &tree,
        "",
        CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )?;
    Ok(true)
}

//! `HiddenPaths`: what a program outside of any jail must not find, however it is led there: what tools may change.
//!
//! A program that prints a login is led to files by its words, its variables, its settings, links, and files that other files name. No
//! list of these is whole. So an empty folder lies over what tools may change, in a mount namespace of the program's own.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, write};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::sys::unshare;

/// Paths over which something empty lies for one program; made before the process is, which may not allocate memory.
#[derive(Debug)]
pub(crate) struct HiddenPaths {
    folders: Vec<CString>,
    files: Vec<CString>,
    /// This user, as the only one of a user namespace (`user_namespaces(7)`).
    user: Vec<u8>,
    group: Vec<u8>,
}

impl HiddenPaths {
    /// Takes what is there of these canonical paths. One below another is not there any more once that is hidden.
    pub(crate) fn new(paths: &[PathBuf]) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let mut hidden: Vec<&Path> = Vec::new();
        let mut paths: Vec<&PathBuf> = paths.iter().collect();
        paths.sort();
        for path in paths {
            if hidden.iter().any(|above| path.starts_with(above)) {
                continue;
            }
            hidden.push(path);
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => folders.push(text(path)?),
                Ok(_) => files.push(text(path)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let itself = |id: u32| format!("{id} {id} 1").into_bytes();
        Ok(Self {
            folders,
            files,
            user: itself(geteuid().as_raw()),
            group: itself(getegid().as_raw()),
        })
    }

    /// Hides them from this process and what it starts. Between fork and exec: makes system calls alone, and allocates nothing.
    pub(crate) fn hide(&self) -> io::Result<()> {
        if unshare(UnshareFlags::NEWNS).is_err() {
            unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
            fill(c"/proc/self/setgroups", b"deny")?;
            fill(c"/proc/self/uid_map", &self.user)?;
            fill(c"/proc/self/gid_map", &self.group)?;
        }
        let alone = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change(c"/", alone)?;
        let flags =
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        for folder in &self.folders {
            mount(c"tmpfs", folder, c"tmpfs", flags, c"size=4k,mode=755")?;
        }
        for file in &self.files {
            mount_bind(c"/dev/null", file)?;
        }
        Ok(())
    }
}

fn fill(file: &CStr, text: &[u8]) -> io::Result<()> {
    let file = openat(CWD, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match write(&file, text)? {
        written if written == text.len() => Ok(()),
        _ => Err(Errno::IO.into()),
    }
}

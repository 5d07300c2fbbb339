//! Opens a path so that no link leads it elsewhere: by `openat2`, and where the system has none by a walk that does the same.
//!
//! There is none before Linux 5.6, in gVisor, under old container filters, and in haft's own jail, whose filter cannot look at its
//! arguments. Everything in haft that must not be misled by a path opens it here (clippy rejects another `openat2`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

mod walk;

#[cfg(test)]
mod tests;

/// Opens what is at a path below a folder. Neither the path nor a link leads out of it: a symbolic link anywhere in the path is an error,
/// except as the last name with `PATH | NOFOLLOW`, which opens the link itself.
///
/// # Errors
/// Those of `openat2(2)`: `LOOP` for a link, `XDEV` for an absolute path or one that leads above the folder, `NOENT` for an empty path.
pub fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    Lookup::of(path, flags, BENEATH.union(NO_LINKS)).open(folder.as_fd())
}

/// As [`open_beneath`], and refuses what another mount shows below the folder. What is opened there is closed again, so flags that change
/// something do not belong here.
///
/// # Errors
/// As for [`open_beneath`], and `XDEV` for another mount; `NOSYS` if the system has no `openat2` and does not number its mounts.
pub fn open_beneath_on_mount(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let resolve = BENEATH.union(NO_LINKS).union(ResolveFlags::NO_XDEV);
    Lookup::of(path, flags, resolve).open(folder.as_fd())
}

/// Opens what is at a path below a folder, and follows links as long as they stay below it.
///
/// # Errors
/// As for [`open_beneath`], except that `LOOP` means too many links, and `XDEV` a link that leads out, too.
pub fn open_beneath_with_links(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let resolve = BENEATH.union(ResolveFlags::NO_MAGICLINKS);
    Lookup::of(path, flags, resolve).open(folder.as_fd())
}

/// Opens a path of this machine, absolute or from the current folder, if there is no symbolic link in it.
///
/// # Errors
/// Those of `openat2(2)`: `LOOP` for a link.
pub fn open_without_links(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    Lookup::of(path, flags, NO_LINKS).open(CWD)
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH;
const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// What is asked of `openat2`.
#[derive(Debug, Clone, Copy)]
struct Lookup<'a> {
    path: &'a Path,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
}

impl<'a> Lookup<'a> {
    fn of(path: &'a Path, flags: OFlags, resolve: ResolveFlags) -> Self {
        Self {
            path,
            flags: flags | OFlags::CLOEXEC,
            mode: Mode::empty(),
            resolve,
        }
    }

    fn open(&self, folder: BorrowedFd<'_>) -> Result<OwnedFd> {
        if !has_openat2() {
            return walk::open(folder, self);
        }
        match self.ask(folder) {
            // A filter that this process has installed since.
            Err(Errno::NOSYS) => {
                OPENAT2.store(ABSENT, Ordering::Relaxed);
                walk::open(folder, self)
            }
            opened => opened,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place")]
    fn ask(&self, folder: BorrowedFd<'_>) -> Result<OwnedFd> {
        rustix::fs::openat2(folder, self.path, self.flags, self.mode, self.resolve)
    }
}

/// Whether the system has `openat2`. No lock, because a process that was just forked asks, too.
static OPENAT2: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const PRESENT: u8 = 1;
const ABSENT: u8 = 2;

fn has_openat2() -> bool {
    match OPENAT2.load(Ordering::Relaxed) {
        UNKNOWN => {
            // The kernel refuses an empty path before it looks at any file. Filters say `NOSYS`, or `PERM` as if they meant this path.
            let nowhere = Lookup::of(Path::new(""), OFlags::PATH, ResolveFlags::empty());
            let found = nowhere.ask(CWD).is_err_and(|errno| errno == Errno::NOENT);
            OPENAT2.store(if found { PRESENT } else { ABSENT }, Ordering::Relaxed);
            found
        }
        known => known == PRESENT,
    }
}

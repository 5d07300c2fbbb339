//! `openat2` in small steps: each opens one name in a folder that is held open, and follows no link.
//!
//! So the folder that the walk is in was an entry of the one before, down from the folder where it started, whatever is renamed
//! meanwhile. `..` is never asked of the system, which would say where a folder lies now: the walk starts again without the last name.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, openat, readlinkat,
    statx,
};
use rustix::io::{Errno, Result};

use super::Lookup;

/// As many links as the kernel follows for one path (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Length of a path from which on the kernel refuses it (`PATH_MAX`), in bytes.
const PATH_MAX: usize = 4096;
/// Number of folders that one walk enters at most. The kernel has no such limit, and needs none: it does not start again at `..`.
const MAX_STEPS: usize = 16_384;

/// The flags by which a folder is entered.
const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// The flags that `openat2` allows beside `PATH`; `openat` ignores all others.
const WITH_PATH: OFlags = FOLDER;

/// Opens what `openat2` would open.
pub(super) fn open(folder: BorrowedFd<'_>, lookup: &Lookup<'_>) -> Result<OwnedFd> {
    let path = lookup.path.as_os_str();
    check(lookup)?;
    let root;
    let mut start = folder;
    if path.as_bytes().starts_with(b"/") {
        if lookup.resolve.contains(ResolveFlags::BENEATH) {
            return Err(Errno::XDEV);
        }
        root = openat(CWD, "/", FOLDER, Mode::empty())?;
        start = root.as_fd();
    }
    let mut walk = BeneathWalk::new(start, lookup)?;
    let mut rest = PathNames::of(path);
    loop {
        let name = rest.names.pop_front();
        // Only slashes: the root itself.
        let name = name.as_deref().unwrap_or(OsStr::new("."));
        let last = rest.names.is_empty();
        let step = if last {
            walk.last(name, rest.slash)?
        } else {
            walk.enter(name)?
        };
        match step {
            Step::Opened(file) => return Ok(file),
            Step::Entered => {}
            Step::Link(target) => rest.follow(&target, last)?,
        }
    }
}

/// Refuses what the kernel refuses before it looks at any file.
fn check(lookup: &Lookup<'_>) -> Result<()> {
    let (flags, bytes) = (lookup.flags, lookup.path.as_os_str().as_bytes());
    let unnamed = flags.contains(OFlags::TMPFILE);
    let creates = unnamed || flags.contains(OFlags::CREATE);
    let wrong = (flags.contains(OFlags::PATH) && !WITH_PATH.contains(flags))
        || (unnamed && !flags.intersects(OFlags::WRONLY | OFlags::RDWR))
        || !(creates || lookup.mode.is_empty());
    if wrong || bytes.contains(&0) {
        Err(Errno::INVAL)
    } else if bytes.is_empty() {
        Err(Errno::NOENT)
    } else if bytes.len() >= PATH_MAX {
        Err(Errno::NAMETOOLONG)
    } else {
        Ok(())
    }
}

/// The names that are still to be looked up.
struct PathNames {
    names: VecDeque<OsString>,
    /// Whether a slash follows the last one, which then must be a folder.
    slash: bool,
}

impl PathNames {
    fn of(path: &OsStr) -> Self {
        let bytes = path.as_bytes();
        let names = bytes.split(|byte| *byte == b'/');
        let names = names.filter(|name| !name.is_empty());
        Self {
            names: names
                .map(|name| OsStr::from_bytes(name).to_owned())
                .collect(),
            slash: bytes.ends_with(b"/"),
        }
    }

    /// Puts a link's target in the link's place.
    fn follow(&mut self, target: &OsStr, last: bool) -> Result<()> {
        if target.as_bytes().starts_with(b"/") {
            return Err(Errno::XDEV);
        }
        let mut target = Self::of(target);
        self.slash |= last && target.slash;
        target.names.append(&mut self.names);
        self.names = target.names;
        Ok(())
    }
}

enum Step {
    Opened(OwnedFd),
    Entered,
    Link(OsString),
}

/// A walk, and the folder that it is in.
struct BeneathWalk<'a> {
    lookup: &'a Lookup<'a>,
    start: BorrowedFd<'a>,
    /// The current folder, if it is not the one at the start.
    at: Option<OwnedFd>,
    /// The names that lead from the start to it, none of them a link.
    entered: Vec<OsString>,
    /// The mount that must not be left.
    mount: Option<u64>,
    links: usize,
    steps: usize,
}

impl<'a> BeneathWalk<'a> {
    fn new(start: BorrowedFd<'a>, lookup: &'a Lookup<'a>) -> Result<Self> {
        let one_mount = lookup.resolve.contains(ResolveFlags::NO_XDEV);
        Ok(Self {
            lookup,
            start,
            at: None,
            entered: Vec::new(),
            mount: one_mount.then(|| mount_of(start)).transpose()?,
            links: 0,
            steps: 0,
        })
    }

    fn folder(&self) -> BorrowedFd<'_> {
        self.at.as_ref().map_or(self.start, AsFd::as_fd)
    }

    fn is_beneath(&self) -> bool {
        self.lookup.resolve.contains(ResolveFlags::BENEATH)
    }

    /// Enters a folder that is not the last name.
    fn enter(&mut self, name: &OsStr) -> Result<Step> {
        match name.as_bytes() {
            b".." if self.is_beneath() => self.leave()?,
            b"." | b".." => self.step(name)?,
            _ => match self.step(name) {
                Ok(()) => self.entered.push(name.to_owned()),
                Err(Errno::NOTDIR) => return self.link(name, Errno::NOTDIR),
                Err(errno) => return Err(errno),
            },
        }
        Ok(Step::Entered)
    }

    /// Opens a folder in the current one, which then is the current one.
    fn step(&mut self, name: &OsStr) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Errno::LOOP);
        }
        let entered = openat(self.folder(), name, FOLDER, Mode::empty())?;
        self.check_mount(entered.as_fd())?;
        self.at = Some(entered);
        Ok(())
    }

    /// Returns to the folder above, by the names that led to this one.
    fn leave(&mut self) -> Result<()> {
        // Asks for the right to search the folder that is left, as the kernel does.
        self.step(OsStr::new("."))?;
        self.entered.pop().ok_or(Errno::XDEV)?;
        self.at = None;
        for name in std::mem::take(&mut self.entered) {
            self.step(&name).map_err(|errno| match errno {
                // It was a folder: as the kernel says of a rename that it met.
                Errno::NOTDIR | Errno::NOENT => Errno::AGAIN,
                other => other,
            })?;
            self.entered.push(name);
        }
        Ok(())
    }

    /// Opens the last name as the caller wants it.
    fn last(&mut self, name: &OsStr, slash: bool) -> Result<Step> {
        let Lookup { flags, mode, .. } = *self.lookup;
        if name.as_bytes() == b".." {
            self.enter(name)?;
            return self.last(OsStr::new("."), slash);
        }
        let slash = slash && name.as_bytes() != b".";
        if slash && flags.contains(OFlags::CREATE) {
            // Before that the kernel asks for the right to search the folder.
            self.step(OsStr::new("."))?;
            return Err(Errno::ISDIR);
        }
        let folder = if slash {
            OFlags::DIRECTORY
        } else {
            OFlags::empty()
        };
        let opened = openat(self.folder(), name, flags | folder | OFlags::NOFOLLOW, mode);
        // Whether a link that is the last name would be followed, or refused where none may be.
        let through = slash || !flags.contains(OFlags::NOFOLLOW);
        match opened {
            Ok(file) if through && flags.contains(OFlags::PATH) && is_link(file.as_fd())? => {
                self.link(name, Errno::AGAIN)
            }
            Ok(file) => {
                self.check_mount(file.as_fd())?;
                Ok(Step::Opened(file))
            }
            Err(errno @ (Errno::LOOP | Errno::NOTDIR)) if through => self.link(name, errno),
            Err(errno) => Err(errno),
        }
    }

    /// Returns where a link leads, if links are followed; the error `otherwise` if the name is no link.
    fn link(&mut self, name: &OsStr, otherwise: Errno) -> Result<Step> {
        let Ok(target) = readlinkat(self.folder(), name, Vec::new()) else {
            return Err(otherwise);
        };
        self.links += 1;
        if self.links > MAX_LINKS || self.lookup.resolve.contains(ResolveFlags::NO_SYMLINKS) {
            return Err(Errno::LOOP);
        }
        Ok(Step::Link(OsString::from_vec(target.into_bytes())))
    }

    fn check_mount(&self, entered: BorrowedFd<'_>) -> Result<()> {
        match self.mount {
            Some(mount) if mount_of(entered)? != mount => Err(Errno::XDEV),
            _ => Ok(()),
        }
    }
}

fn is_link(file: BorrowedFd<'_>) -> Result<bool> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Symlink)
}

/// Returns the number of the mount that a file was opened on (since Linux 5.8).
fn mount_of(file: BorrowedFd<'_>) -> Result<u64> {
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
    if known {
        Ok(stat.stx_mnt_id)
    } else {
        Err(Errno::NOSYS)
    }
}

//! `Upper`: the upper folder of an overlay, read through its descriptor, and the marks that overlayfs leaves in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::change::collect::{CollectError, ViewCreation};
use crate::workspace::open_within;

/// The mark of a deleted entry, if it is not a 0:0 device.
const WHITEOUT: &str = "user.overlay.whiteout";
/// The mark of a folder that hides the lower folder's content.
const OPAQUE: &str = "user.overlay.opaque";
/// The mark of a folder that takes its content from another one.
const REDIRECT: &str = "user.overlay.redirect";

/// The mark of an entry copied up from below. Its value names the original only if a privileged user mounts.
const ORIGIN: &str = "user.overlay.origin";

/// The upper folder of an overlay.
#[derive(Debug, Clone)]
pub(super) struct Upper {
    pub(super) root: Arc<OwnedFd>,
}

/// Creates an error on a path, for the user.
pub(super) fn failed(verb: &'static str, path: &Path, errno: Errno) -> CollectError {
    let path = path.to_owned();
    match errno {
        Errno::XDEV => CollectError::Mount { path },
        other => CollectError::Io {
            verb,
            path,
            source: other.into(),
        },
    }
}

impl Upper {
    /// Opens the upper folder of an overlay.
    ///
    /// # Errors
    /// It is not a folder, or is a link.
    pub(super) fn open(path: &Path) -> Result<Self, CollectError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty());
        Ok(Self {
            root: Arc::new(root.map_err(|e| failed("open", path, e))?),
        })
    }

    /// Opens the folder at a path in it, for listing.
    ///
    /// # Errors
    /// It cannot be read, or is a mount point.
    pub(super) fn folder(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        open_within(self.root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Returns the folder that contains an entry, and the entry's name there.
    fn holder<'a>(&self, path: &'a Path) -> rustix::io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((open_within(self.root.as_fd(), parent, flags)?, name))
    }

    /// Sets the mode of a file or folder. It is not a link, and nothing else writes here any more.
    pub(super) fn set_mode(&self, path: &Path, mode: u32) -> rustix::io::Result<()> {
        let (folder, name) = self.holder(path)?;
        rustix::fs::chmodat(&folder, name, Mode::from_raw_mode(mode), AtFlags::empty())
    }

    /// Opens the regular file at a path in it.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn file(&self, path: &Path) -> rustix::io::Result<File> {
        open_file(self.root.as_fd(), path)
    }
}

/// Entries of an upper folder that are temporarily readable by their owner, whatever modes the command set.
#[derive(Debug)]
pub(super) struct ModeGuard<'a> {
    upper: &'a Upper,
    /// The modes to restore, parents before their content.
    modes: Vec<(PathBuf, u32)>,
}

impl<'a> ModeGuard<'a> {
    pub(super) fn new(upper: &'a Upper) -> Self {
        let modes = Vec::new();
        Self { upper, modes }
    }

    /// Lets the owner read a file or list a folder. If this fails, reading fails too and reports the error.
    pub(super) fn unlock(&mut self, path: &Path, stat: &Stat) {
        let needed = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => 0o500,
            FileType::RegularFile => 0o400,
            _ => return,
        };
        let mode = stat.st_mode & 0o7777;
        if mode & needed != needed && self.upper.set_mode(path, mode | needed).is_ok() {
            self.modes.push((path.to_owned(), mode));
        }
    }

    /// Unlocks all folders above a path.
    pub(super) fn unlock_parents(&mut self, path: &Path) -> rustix::io::Result<()> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.pop();
        for folder in above.into_iter().rev() {
            let (parent, name) = self.upper.holder(folder)?;
            if let Some(stat) = stat_in(parent.as_fd(), name)? {
                self.unlock(folder, &stat);
            }
        }
        Ok(())
    }
}

impl Drop for ModeGuard<'_> {
    fn drop(&mut self) {
        for (path, mode) in self.modes.iter().rev() {
            // The user owns what remains unlocked.
            let _ = self.upper.set_mode(path, *mode);
        }
    }
}

/// Opens a regular file beneath a folder. Does not block if a pipe took its place.
pub(super) fn open_file(folder: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    open_within(folder, path, flags).map(File::from)
}

/// Returns the stat of a name in a folder; `None` if nothing is there.
pub(super) fn stat_in(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Returns when an entry of a folder was created; `None` if the file system does not know.
pub(super) fn created_at(
    folder: BorrowedFd<'_>,
    name: &OsStr,
) -> rustix::io::Result<Option<ViewCreation>> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = rustix::fs::statx(folder, name, flags, StatxFlags::BTIME)?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    Ok(known.then(|| ViewCreation {
        seconds: stat.stx_btime.tv_sec,
        nanoseconds: stat.stx_btime.tv_nsec.into(),
    }))
}

/// Returns the text of a link in a folder.
pub(super) fn link_in(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<PathBuf> {
    let text = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(OsString::from_vec(text.into_bytes()).into())
}

/// Returns the names in a folder; `None` if there are more than `most`.
pub(super) fn names(
    folder: BorrowedFd<'_>,
    most: usize,
) -> rustix::io::Result<Option<Vec<OsString>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == most {
            return Ok(None);
        }
        names.push(OsStr::from_bytes(name).to_owned());
    }
    Ok(Some(names))
}

/// Whether a folder hides the lower folder's content.
pub(super) fn is_opaque(folder: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    Ok(mark(folder, OPAQUE)? == Some(b'y'))
}

/// Whether a folder takes its content from another one.
pub(super) fn is_redirect(folder: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    Ok(mark(folder, REDIRECT)?.is_some())
}

/// Whether a file or folder was copied up, here or where it was moved from; unknown for a file with several names below.
pub(super) fn is_copied_up(fd: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    Ok(mark(fd, ORIGIN)?.is_some())
}

/// Whether an empty file marks a deleted entry.
pub(super) fn is_whiteout_file(file: &File) -> rustix::io::Result<bool> {
    Ok(mark(file.as_fd(), WHITEOUT)?.is_some())
}

/// Whether this is the device that marks a deleted entry.
pub(super) fn is_whiteout_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Whether a file has a size but no blocks and is marked as one whose content was not copied up.
pub(super) fn may_be_metacopy(file: &File, stat: &Stat) -> rustix::io::Result<bool> {
    let hollow = stat.st_size > 0 && stat.st_blocks == 0;
    Ok(hollow && mark(file.as_fd(), "user.overlay.metacopy")?.is_some())
}

/// Returns the first byte of an attribute (zero for an empty one); `None` if there is no such attribute.
fn mark(fd: BorrowedFd<'_>, name: &str) -> rustix::io::Result<Option<u8>> {
    let mut value = [0_u8; 4096];
    match rustix::fs::fgetxattr(fd, name, &mut value[..]) {
        Ok(_) => Ok(value.first().copied()),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(e) => Err(e),
    }
}

//! A skill's folder, opened so that no path and no link leads out of it.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};

use haft_types::beneath::{open_beneath_with_links, open_without_links};
use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::error::SkillError;

/// The names of a skill's file, in search order.
pub(super) const FILES: [&str; 2] = ["SKILL.md", "skill.md"];

/// The overlay's name.
pub(super) const OVERLAY: &str = "skill.yaml";

/// Maximum number of bytes read from a `SKILL.md` for its front matter, and from a `skill.yaml`.
pub(super) const MAX_HEAD: u64 = 64 * 1024;

/// Maximum number of bytes read from a resource at once.
const MAX_SLICE: u64 = 1024 * 1024;

#[derive(Debug)]
pub(super) struct FolderHandle {
    fd: OwnedFd,
}

/// Bytes of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSlice {
    /// The bytes; fewer than requested at the end of the file, and never more than 1 MiB.
    pub bytes: Vec<u8>,
    /// The size of the whole file.
    pub total: u64,
}

/// The beginning of a file.
#[derive(Debug)]
pub(super) struct FileHead {
    pub(super) bytes: Vec<u8>,
    /// Whether this is the whole file.
    pub(super) whole: bool,
}

impl FolderHandle {
    /// Opens a folder by its path without links.
    pub(super) fn open(dir: &Path) -> Result<Self, SkillError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        // If a link replaced any folder on the path, it is no longer this skill.
        match open_without_links(dir, flags) {
            Ok(fd) => Ok(Self { fd }),
            Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR) => {
                Err(SkillError::Changed(dir.to_string_lossy().into_owned()))
            }
            Err(e) => Err(SkillError::from_errno("open", dir, e)),
        }
    }

    pub(super) fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_beneath_with_links(&self.fd, path, flags)
    }

    /// Returns the kind and state of what a path leads to; follows links as long as they stay inside.
    pub(super) fn look(&self, path: &Path) -> Result<(FileType, Stat), Errno> {
        let fd = self.beneath(path, OFlags::PATH)?;
        let stat = rustix::fs::statat(&fd, "", AtFlags::EMPTY_PATH)?;
        Ok((FileType::from_raw_mode(stat.st_mode), stat))
    }

    /// Opens a regular file; does not block on a pipe.
    fn file(&self, path: &Path) -> Result<(File, Stat), SkillError> {
        let to_error = |verb, e| SkillError::from_errno(verb, path, e);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = self.beneath(path, flags).map_err(|e| match e {
            // A socket.
            Errno::NXIO => not_a_file(path, FileType::Socket),
            e => to_error("open", e),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| to_error("look at", e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((File::from(fd), stat)),
            kind => Err(not_a_file(path, kind)),
        }
    }

    /// Reads the first bytes of a file.
    pub(super) fn read_beginning(&self, path: &Path, most: u64) -> Result<FileHead, SkillError> {
        let (mut file, _) = self.file(path)?;
        let mut bytes = Vec::new();
        let read = file.by_ref().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|source| failed("read", path, source))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let whole = bytes.len() <= most;
        bytes.truncate(most);
        Ok(FileHead { bytes, whole })
    }

    /// Reads a file if it is no larger than `most` bytes.
    pub(super) fn whole(&self, path: &Path, most: u64) -> Result<Vec<u8>, SkillError> {
        let read = self.read_beginning(path, most)?;
        if read.whole {
            Ok(read.bytes)
        } else {
            Err(SkillError::TooLarge {
                path: path.to_string_lossy().into_owned(),
                limit: most,
            })
        }
    }

    /// Reads some bytes of a file.
    pub(super) fn slice(&self, path: &str, range: Range<u64>) -> Result<ResourceSlice, SkillError> {
        let given = Path::new(path);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if path.is_empty() || path.contains('\0') {
            return Err(SkillError::Malformed(path.to_owned()));
        }
        if !given.components().all(plain) {
            return Err(SkillError::Outside(path.to_owned()));
        }
        let (file, stat) = self.file(given)?;
        let total = u64::try_from(stat.st_size).unwrap_or(0);
        let end = range.end.min(total);
        let length = end.saturating_sub(range.start).min(MAX_SLICE);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let mut filled = 0;
        while filled < bytes.len() {
            let at = range.start + filled as u64;
            match file.read_at(&mut bytes[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(failed("read", given, source)),
            }
        }
        bytes.truncate(filled);
        Ok(ResourceSlice { bytes, total })
    }
}

fn failed(verb: &'static str, path: &Path, source: std::io::Error) -> SkillError {
    SkillError::Io {
        verb,
        path: path.to_string_lossy().into_owned(),
        source,
    }
}

fn not_a_file(path: &Path, kind: FileType) -> SkillError {
    SkillError::NotAFile {
        path: path.to_string_lossy().into_owned(),
        kind: word(kind),
    }
}

/// Describes a kind of entry in words.
pub(super) fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a link",
        FileType::RegularFile => "a file",
        FileType::Unknown => "something unknown",
    }
}

/// Returns bytes as text, with invalid UTF-8 and NULs as `U+FFFD`.
pub(super) fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        text
    }
}

//! Opening regular files for reading: never a pipe, a device or the target of a swapped-in link (path rule 6).

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, Stat};

use crate::workspace::place::kind_and_bytes;
use crate::workspace::{
    EntryKind, ResolvedPath, Workspace, WorkspaceError, display_path, open_below,
};

/// Identifies one state of a file: any write, replacement or rename changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
    /// The number of its names (hard links).
    pub(crate) links: u64,
}

impl FileStamp {
    /// Returns the numbers of the device and of the file there, which no two files share.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns when its content or its metadata last changed, in nanoseconds since 1970.
    pub fn changed_at(&self) -> i128 {
        let (seconds, nanoseconds) = self.changed;
        i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
    }

    /// Creates the stamp of a file whose metadata was read.
    #[expect(
        clippy::allow_attributes,
        reason = "which conversions are needless differs by architecture"
    )]
    #[allow(
        clippy::useless_conversion,
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "the fields' widths differ by architecture"
    )]
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            links: stat.st_nlink as u64,
        }
    }

    /// Whether a file is still in this state. The change time of a file with several names also changes when another name is removed.
    pub(crate) fn is_still(&self, now: &Self) -> bool {
        self == now || (self.links > 1 && self.is_same_content(now))
    }

    /// Whether it is the same file and was not written to since.
    pub(crate) fn is_same_content(&self, now: &Self) -> bool {
        let content = |stamp: &Self| (stamp.device, stamp.inode, stamp.bytes, stamp.modified);
        content(self) == content(now)
    }

    /// Returns the number of the file's names.
    pub(crate) fn links(&self) -> u64 {
        self.links
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A regular file opened for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file, at its beginning.
    pub file: File,
    /// Its state when it was opened.
    pub stamp: FileStamp,
}

impl OpenFile {
    /// Opens the regular file at a path below a folder; `real` is its path in the workspace.
    pub(super) fn open(
        folder: impl AsFd,
        path: &Path,
        real: &Path,
    ) -> Result<Self, WorkspaceError> {
        // NONBLOCK: opening a pipe that took the file's place must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = open_below(folder, path, flags)
            .map_err(|e| WorkspaceError::from_errno("open", real, e))?;
        let stat =
            rustix::fs::fstat(&fd).map_err(|e| WorkspaceError::from_errno("look at", real, e))?;
        match EntryKind::of(rustix::fs::FileType::from_raw_mode(stat.st_mode)) {
            EntryKind::File => Ok(Self {
                file: File::from(fd),
                stamp: FileStamp::of(&stat),
            }),
            kind => Err(WorkspaceError::NotAFile {
                path: display_path(real),
                kind,
            }),
        }
    }
}

impl Workspace {
    /// Opens the regular file at a place.
    ///
    /// # Errors
    /// [`WorkspaceError::NotAFile`] if it is not a regular file, [`WorkspaceError::Changed`] if the path now leads
    /// elsewhere, [`WorkspaceError::Io`] if it cannot be opened.
    pub fn read(&self, place: &ResolvedPath) -> Result<OpenFile, WorkspaceError> {
        if place.kind().is_none() {
            return Err(place.not_found());
        }
        place.need(EntryKind::File)?;
        self.open_file(place.real())
    }

    /// Opens the regular file at a real path, as found by a walk below the root; a link anywhere on the path is an
    /// error, so a misled walk never reads outside. One call to open it and one `fstat`.
    ///
    /// # Errors
    /// [`WorkspaceError::NotAFile`] if it is not a regular file, [`WorkspaceError::Io`] if it cannot be opened.
    pub fn open_file(&self, real: &Path) -> Result<OpenFile, WorkspaceError> {
        let (folder, path) = self.base_of(real);
        OpenFile::open(folder, path, real)
    }

    /// Returns the current state of a place without opening it; `None` if nothing is there.
    ///
    /// # Errors
    /// [`WorkspaceError::Io`] if it cannot be inspected.
    pub fn stamp(&self, place: &ResolvedPath) -> Result<Option<FileStamp>, WorkspaceError> {
        match self.stat(place.real()) {
            Ok(stat) => Ok(Some(FileStamp::of(&stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(e) => Err(WorkspaceError::from_errno("look at", place.real(), e)),
        }
    }

    /// Reports the kind and size of what is at each of many real paths. Sort the paths: each folder is then opened once for all
    /// of its entries. Skips paths that are missing or lead through a link.
    pub fn look_each<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a PathBuf>,
        mut found: impl FnMut(&'a Path, EntryKind, u64),
    ) {
        let mut stat = self.stat_near();
        for path in paths {
            if let Some(stat) = stat(path) {
                let (kind, bytes) = kind_and_bytes(&stat);
                found(path, kind, bytes);
            }
        }
    }

    /// Returns what looks up one path after the other, each like [`look_each`](Self::look_each): `None` if it is missing or behind a link.
    pub(crate) fn stat_near<'a>(&self) -> impl FnMut(&'a Path) -> Option<Stat> {
        let mut open: Option<(&Path, OwnedFd)> = None;
        move |path| {
            let (folder, name) = (path.parent()?, path.file_name()?);
            if self.is_repository(path) {
                return self.stat(path).ok();
            }
            if open.as_ref().is_none_or(|(at, _)| *at != folder) {
                let fd = self.open_beneath(folder, OFlags::PATH | OFlags::DIRECTORY);
                open = fd.ok().map(|fd| (folder, fd));
            }
            let (_, fd) = open.as_ref()?;
            // The folder is open: only the last name is looked up, without following a link.
            rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()
        }
    }

    /// Returns the kind and size of what is at a real path; `None` if it is missing or behind a link.
    pub fn look(&self, real: &Path) -> Option<(EntryKind, u64)> {
        let stat = self.stat(real).ok()?;
        Some(kind_and_bytes(&stat))
    }
}

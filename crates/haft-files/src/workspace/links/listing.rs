//! `FolderLinks`: the links and folders in one folder, and whether it has changed since they were listed.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::workspace::has_repository_shape;
use haft_types::clock;

/// How long after its last change a folder's times tell further changes, in seconds: coarse clocks give two changes the same time.
const SETTLED_AFTER: i128 = 3;
/// The number of nanoseconds in a second.
const NANOSECONDS: i128 = 1_000_000_000;

/// Files whose text names a repository elsewhere (gitrepository-layout(5)).
const POINTERS: [&str; 2] = [".git", "commondir"];

/// Names that make a folder a repository.
const REPOSITORY: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// What a folder contributes to the links of its workspace.
#[derive(Debug, Default)]
pub(super) struct FolderLinks {
    path: PathBuf,
    /// Its identity and times; `None` if it may have changed without showing that.
    stamp: Option<FolderStamp>,
    /// The names of the folders in it, sorted.
    pub(super) folders: Vec<OsString>,
    /// Name and text of each link, sorted.
    pub(super) links: Vec<(OsString, PathBuf)>,
    pub(super) entries: usize,
    /// The names of the files in it by which git finds a repository elsewhere, sorted.
    pub(super) pointers: Vec<OsString>,
    /// Whether git treats it as a repository.
    pub(super) is_repository: bool,
    /// Whether its links work although they cannot be listed.
    pub(super) unlisted: bool,
    /// Whether its path, or one of a link in it, is longer than the kernel takes. Shorter paths lead there over links.
    pub(super) too_long: bool,
}

impl FolderLinks {
    /// Lists a folder, or slightly more than `most` of its entries; `None` if it is gone.
    pub(super) fn of(path: PathBuf, most: usize) -> Option<Self> {
        let now = clock::now() / NANOSECONDS;
        let stamp = path
            .symlink_metadata()
            .ok()
            .map(|meta| FolderStamp::of(&meta));
        let found = match list(&path, most) {
            Ok(found) => found,
            Err(error) if is_gone(&error) => return None,
            Err(error) => Self {
                unlisted: can_be_entered(&path),
                too_long: is_too_long(&error),
                ..Self::default()
            },
        };
        Some(Self {
            stamp: stamp.filter(|stamp| stamp.is_settled(now)),
            path,
            ..found
        })
    }

    /// Whether listing it again would show the same.
    pub(super) fn is_current(&self) -> bool {
        let Some(stamp) = &self.stamp else {
            return false;
        };
        let meta = self.path.symlink_metadata();
        meta.is_ok_and(|meta| FolderStamp::of(&meta) == *stamp)
    }

    /// Whether both contribute the same links.
    pub(super) fn has_same_links(&self, other: &Self) -> bool {
        self.links == other.links
            && self.pointers == other.pointers
            && self.is_repository == other.is_repository
            && self.unlisted == other.unlisted
            && self.too_long == other.too_long
    }

    /// Whether it contributes nothing.
    pub(super) fn has_no_links(&self) -> bool {
        self.links.is_empty()
            && self.pointers.is_empty()
            && !self.is_repository
            && !self.unlisted
            && !self.too_long
    }
}

/// The identity of a folder, and when its entries last changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderStamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl FolderStamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// Whether a change at this time or later would show in it.
    fn is_settled(&self, now: i128) -> bool {
        i128::from(self.changed.0) + SETTLED_AFTER < now
    }
}

fn list(path: &Path, most: usize) -> io::Result<FolderLinks> {
    let mut found = FolderLinks::default();
    let mut of_git = Vec::new();
    for entry in fs::read_dir(path)?.take(most.saturating_add(1)) {
        let entry = entry?;
        found.entries += 1;
        of_git.extend(REPOSITORY.iter().find(|name| entry.file_name() == **name));
        let kind = entry.file_type()?;
        if kind.is_dir() && !holds_git_objects(&entry.path()) {
            found.folders.push(entry.file_name());
        } else if kind.is_symlink() {
            match fs::read_link(entry.path()) {
                Ok(text) => found.links.push((entry.file_name(), text)),
                Err(error) => found.too_long |= is_too_long(&error),
            }
        } else if kind.is_file() && POINTERS.iter().any(|name| entry.file_name() == *name) {
            found.pointers.push(entry.file_name());
        }
    }
    found.is_repository = has_repository_shape(|name| of_git.contains(&name));
    found.pointers.sort_unstable();
    found.folders.sort_unstable();
    found.links.sort_unstable();
    Ok(found)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn is_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidFilename
}

fn can_be_entered(folder: &Path) -> bool {
    folder.join(".").symlink_metadata().is_ok()
}

/// Whether it is a folder of git's objects, which are numerous and hold no links.
fn holds_git_objects(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().as_bytes();
    let of_objects = name == b"pack" || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit));
    let parent = folder.parent();
    of_objects
        && parent.is_some_and(|parent| parent.ends_with("objects"))
        && folder.iter().any(|part| part == ".git")
}

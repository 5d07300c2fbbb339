//! A walk through the workspace in steps: finds names, and watches the folders it visits.

use std::path::{Path, PathBuf};

use haft_types::beneath::open_beneath;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};
use rustix::io::Errno;

use super::events::FileEvents;
use crate::jail::guards::{MOST_ENTRIES, is_content_of_git};

/// Maximum number of folders waiting to be visited; if a tree grows faster than that, it is searched later.
const MOST_WAITING: usize = 100_000;

/// A walk: the folders that it still has to visit, and how many entries it may still examine.
#[derive(Debug)]
pub(super) struct FolderWalk {
    waiting: Vec<PathBuf>,
    /// The number of entries that may still be examined.
    left: usize,
    /// Whether every folder so far was listed, and watched if requested.
    complete: bool,
}

/// What a walk visits and looks for.
pub(super) struct WalkScope<'a> {
    pub(super) workspace: &'a rustix::fd::OwnedFd,
    /// Watches each folder before it is listed.
    pub(super) events: Option<&'a mut FileEvents>,
    /// Returns whether a folder is skipped.
    pub(super) skips: &'a dyn Fn(&Path) -> bool,
    /// Returns whether a path is wanted.
    pub(super) wants: &'a dyn Fn(&Path) -> bool,
}

impl FolderWalk {
    pub(super) fn new() -> Self {
        Self {
            waiting: vec![PathBuf::new()],
            left: MOST_ENTRIES,
            complete: true,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether the walk visited everything.
    pub(super) fn is_complete(&self) -> bool {
        self.complete && self.is_done()
    }

    /// Adds a new folder to visit.
    pub(super) fn add(&mut self, folder: PathBuf) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push(folder);
        } else {
            self.complete = false;
        }
    }

    /// Examines about `entries` entries; returns the wanted ones.
    pub(super) fn step(&mut self, through: &mut WalkScope<'_>, entries: usize) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let until = self.left.saturating_sub(entries);
        while self.left > until
            && let Some(folder) = self.waiting.pop()
        {
            self.left -= 1;
            self.folder(&folder, through, &mut found);
        }
        if self.left == 0 && !self.waiting.is_empty() {
            self.waiting.clear();
            self.complete = false;
        }
        found
    }

    fn folder(&mut self, folder: &Path, through: &mut WalkScope<'_>, found: &mut Vec<PathBuf>) {
        if let Some(events) = &mut through.events {
            self.complete &= events.watch(folder);
        }
        let entries = match list(through.workspace, folder) {
            Ok(entries) => entries,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return,
            Err(_) => {
                self.complete = false;
                return;
            }
        };
        for entry in entries {
            let Ok((name, kind)) = entry else {
                self.complete = false;
                return;
            };
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                self.complete = false;
                return;
            }
            let at = folder.join(name);
            if (through.wants)(&at) {
                found.push(at);
            } else if kind == FileType::Directory
                && !is_content_of_git(&at)
                && !(through.skips)(&at)
            {
                self.add(at);
            }
        }
    }
}

type NameAndType = (std::ffi::OsString, FileType);

/// Lists a folder below the workspace; no symbolic links on the way.
fn list(
    workspace: &rustix::fd::OwnedFd,
    folder: &Path,
) -> Result<impl Iterator<Item = Result<NameAndType, Errno>> + use<>, Errno> {
    use std::os::unix::ffi::OsStrExt;

    let here = Path::new(".");
    let path = if folder == Path::new("") {
        here
    } else {
        folder
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let file = open_beneath(workspace, path, flags)?;
    let entries = Dir::read_from(&file)?;
    Ok(entries.filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return Some(Err(errno)),
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return None;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = statat(&file, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        let name = std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned();
        Some(Ok((name, kind)))
    }))
}

//! Deletions by another program in the workspace while a command changed its view.
//!
//! overlayfs marks a file that it copies into the upper folder. If a marked file has no lower file, either another program deleted that
//! file, or the command moved it there: then its old place hides a file and has no marked one. So if there are fewer such places
//! than marked files, some were deleted. A folder from the lower layer cannot be moved on a view: a marked folder without a lower one
//! was deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use crate::change::collect::upper::{failed, is_copied_up};
use crate::change::collect::walk::{OverlayEntry, UpperWalk};
use crate::change::collect::{CollectError, ViewChange, ViewCreation};
use crate::change::{EntryState, FileHash};
use crate::workspace::{EntryKind, FileStamp};

const GONE: &str = "it was deleted while the command ran";

/// What was copied up, as evidence for deletions.
#[derive(Default)]
pub(super) struct DeletionEvidence {
    /// Whether changes may already be applied, so a missing file proves nothing.
    ignored: bool,
    /// Whether something may have been deleted in the current folder.
    possible: bool,
    /// Marked folders without a lower one.
    folders: BTreeSet<PathBuf>,
    /// Marked files without a lower one, by inode.
    files: BTreeMap<u64, MarkedFile>,
    /// Inodes of marked files with another name that has a lower file.
    in_place: HashSet<u64>,
    /// Files that the command put in place of others.
    replaced: HashSet<PathBuf>,
    /// Number of deleted entries that are not in the lower folder either.
    deleted: usize,
}

impl DeletionEvidence {
    pub(super) fn new(ignored: bool) -> Self {
        Self {
            ignored,
            ..Self::default()
        }
    }
}

/// A marked file without a lower one.
#[derive(Default)]
struct MarkedFile {
    paths: Vec<PathBuf>,
    /// Whether nothing was deleted at its place.
    moved: bool,
}

impl UpperWalk<'_> {
    /// Records whether something in a folder may have been deleted.
    pub(super) fn enter(
        &mut self,
        path: &Path,
        folder: &OwnedFd,
        lower: Option<&OwnedFd>,
        opaque: bool,
    ) -> Result<(), CollectError> {
        let to_error = |e| failed("look at", path, e);
        let possible = if self.vanished.ignored || opaque {
            false
        } else if let Some(lower) = lower {
            ViewCreation::modified(&rustix::fs::fstat(lower).map_err(to_error)?) > self.since
        } else {
            is_copied_up(folder.as_fd()).map_err(to_error)?
        };
        if possible && lower.is_none() {
            self.vanished.folders.insert(path.to_owned());
        }
        self.vanished.possible = possible;
        Ok(())
    }

    /// Adds the deletion that a whiteout stands for.
    pub(super) fn whiteout(&mut self, below: Option<OverlayEntry<'_>>) -> Result<(), CollectError> {
        if let Some(below) = below {
            return self.delete(&below);
        }
        self.vanished.deleted += 1;
        Ok(())
    }

    /// Records whether a file was copied up.
    pub(super) fn record_copy_up(
        &mut self,
        entry: &OverlayEntry<'_>,
        file: &File,
        below: Option<&OverlayEntry<'_>>,
    ) -> Result<(), CollectError> {
        if self.vanished.ignored {
            return Ok(());
        }
        let marked = is_copied_up(file.as_fd()).map_err(entry.failed("read"))?;
        let inode = FileStamp::of(&entry.stat).inode;
        let in_place = below.is_some_and(|below| below.kind() == EntryKind::File);
        let vanished = &mut self.vanished;
        match (marked, in_place) {
            (true, true) => _ = vanished.in_place.insert(inode),
            (false, true) => _ = vanished.replaced.insert(entry.path.clone()),
            (true, false) => {
                let file = vanished.files.entry(inode).or_default();
                file.moved |= below.is_some() || !vanished.possible;
                file.paths.push(entry.path.clone());
            }
            (false, false) => {}
        }
        Ok(())
    }

    /// Marks the changes of deleted files and folders as conflicts.
    pub(super) fn find_vanished(&mut self) {
        for path in self.vanished_files() {
            if let Some(at) = self.found.position(&path) {
                self.found.set_conflict(at, GONE);
            }
        }
        if self.vanished.folders.is_empty() {
            return;
        }
        // A new entry in a deleted folder recreates the folder.
        let mut used = HashSet::new();
        for at in (0..self.found.len()).rev() {
            let path = self.found.path(at);
            if self.vanished.folders.contains(path) && !used.contains(path) {
                self.found.set_conflict(at, GONE);
            } else if self.found.conflict(at).is_none()
                && let Some(folder) = path.parent()
            {
                used.insert(folder.to_owned());
            }
        }
    }

    /// Returns the files that were certainly deleted.
    fn vanished_files(&self) -> Vec<PathBuf> {
        let all = self.vanished.files.iter();
        let all = all.filter(|(inode, _)| !self.vanished.in_place.contains(inode));
        let mut marked: Vec<&MarkedFile> = all.map(|(_, marked)| marked).collect();
        if marked.iter().all(|marked| marked.moved) {
            return Vec::new();
        }
        let (mut known, unknown) = self.sources();
        marked.retain(|marked| {
            let hash = marked.paths.first().and_then(|path| self.hash_at(path));
            let source = hash.and_then(|hash| known.iter().position(|known| *known == hash));
            source.map(|at| known.swap_remove(at)).is_none()
        });
        let moved = marked.iter().filter(|marked| marked.moved).count();
        if known.len() + unknown > moved {
            return Vec::new();
        }
        let deleted = marked.into_iter().filter(|marked| !marked.moved);
        deleted.flat_map(|marked| marked.paths.clone()).collect()
    }

    /// Returns the places that marked files may come from: the hashes of the files hidden there, and the number of the others.
    fn sources(&self) -> (Vec<FileHash>, usize) {
        let (mut known, mut unknown) = (Vec::new(), 0);
        let is_missing =
            |change: &ViewChange<'_>| !matches!(change.after, Some(EntryState::File { .. }));
        for change in self.found.iter() {
            let Some(EntryState::File { sha256, .. }) = &change.before else {
                continue;
            };
            if !is_missing(&change) && !self.vanished.replaced.contains(change.path) {
                continue;
            }
            match sha256 {
                Some(sha256) => known.push(*sha256),
                None => unknown += 1,
            }
        }
        // A file replaced by one with the same content is not a change.
        let same = self.vanished.replaced.iter();
        let same = same
            .filter(|path| self.found.position(path).is_none())
            .count();
        let hidden = self.dropped.len() + self.stay.len() + self.vanished.deleted;
        (known, unknown + same + hidden)
    }

    fn hash_at(&self, path: &Path) -> Option<FileHash> {
        match self.found.get(self.found.position(path)?)?.after {
            Some(EntryState::File { sha256, .. }) => sha256,
            _ => None,
        }
    }
}

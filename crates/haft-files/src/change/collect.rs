//! A command's changes on a copy-on-write view of the workspace: read from the upper folder of its overlay, and applied.

mod apply;
mod git_states;
mod list;
mod packed;
mod preview;
mod upper;
mod walk;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Stat;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::change::net::ChangeKind;
use crate::change::{EntryState, PathText};
use crate::preview::FileChange;
use crate::workspace::{EntryKind, FileStamp, Workspace, WorkspaceError};
use haft_types::text::hex;

pub use git_states::GitStates;
pub use list::ChangeList;
pub use walk::{MAX_TOUCHED, TouchedEntries};

use self::upper::Upper;
use self::walk::UpperWalk;

/// Maximum number of entries in the upper folder, including those of folders deleted with their content.
pub const MAX_ENTRIES: usize = 200_000;

/// One change of a command on a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewChange<'a> {
    /// The path below the root, without links.
    pub path: &'a Path,
    /// The kind of the change.
    pub action: ChangeKind,
    /// The state in the workspace; `None` for something new.
    pub before: Option<EntryState>,
    /// The state that the command left; `None` for something it deleted.
    pub after: Option<EntryState>,
    /// The reason if the change must not be applied: another program changed the same file.
    pub conflict: Option<&'static str>,
    stamps: Stamps,
}

/// An entry that is never applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedEntry {
    /// The path below the root.
    pub path: PathBuf,
    /// The reason, as a clause about the entry: "it is a socket".
    pub why: &'static str,
}

/// The time when a view was created, by the clock of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ViewCreation {
    /// Seconds since 1970.
    seconds: i64,
    /// Nanoseconds of the second.
    nanoseconds: i64,
}

impl ViewCreation {
    /// Returns the change time of a folder: a view's own folder, right after its creation.
    ///
    /// # Errors
    /// The folder cannot be inspected.
    pub fn of(folder: &Path) -> io::Result<Self> {
        Ok(Self::changed(&rustix::fs::lstat(folder)?))
    }

    fn changed(stat: &Stat) -> Self {
        let (seconds, nanoseconds) = FileStamp::of(stat).changed;
        Self {
            seconds,
            nanoseconds,
        }
    }

    fn modified(stat: &Stat) -> Self {
        let (seconds, nanoseconds) = FileStamp::of(stat).modified;
        Self {
            seconds,
            nanoseconds,
        }
    }
}

/// Opens a changed file in the workspace and as a command left it, without collecting the other changes: `None` for a side that is no
/// file.
///
/// # Errors
/// A side cannot be read.
pub fn open_sides(
    workspace: &Workspace,
    upper: &Path,
    path: &Path,
) -> io::Result<[Option<File>; 2]> {
    let upper = Upper::open(upper).map_err(io::Error::other)?;
    let absent = |errno| {
        matches!(
            errno,
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO
        )
    };
    let after = match upper.file(path) {
        Ok(file) if !file.metadata()?.is_file() || upper::is_whiteout_file(&file)? => None,
        Ok(file) => Some(file),
        Err(errno) if absent(errno) => None,
        Err(errno) => return Err(errno.into()),
    };
    let before = match workspace.look(path) {
        Some((EntryKind::File, _)) => {
            let open = workspace.open_file(path);
            Some(open.map_err(io::Error::other)?.file)
        }
        _ => None,
    };
    Ok([before, after])
}

/// The reason why the changes of a command cannot be collected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// There are too many changes.
    #[error(
        "the command changed more than 200,000 files and folders: change fewer at a time, or set `sandbox.changes = \"direct\"`"
    )]
    TooMany,
    /// Another file system lies below the root.
    #[error(
        "{} is a mount point: unmount it, or set `sandbox.changes = \"direct\"`",
        path.display()
    )]
    Mount {
        /// The mount point.
        path: PathBuf,
    },
    /// The overlay was mounted with other options, so the upper folder is incomplete.
    #[error("the view does not hold all of {}: it was mounted with redirects or metadata copies", path.display())]
    Incomplete {
        /// The file or folder.
        path: PathBuf,
    },
    /// Reading failed.
    #[error("{verb} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        verb: &'static str,
        /// The path it failed on.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// All changes of a command on a view.
#[derive(Debug)]
pub struct CollectedChanges {
    /// The changes that can be applied. Whatever knows more about them can share them.
    pub changes: Arc<ChangeList>,
    /// The entries that are never applied.
    pub dropped: Vec<DroppedEntry>,
    only_touched: TouchedEntries,
    /// What changed files of repositories recorded when they were shown.
    git: GitStates,
    upper: Upper,
    /// Whether something may have been applied.
    touched: AtomicBool,
}

/// The states of a file when its content was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stamps {
    /// In the workspace; `None` for folders.
    lower: Option<FileStamp>,
    /// In the upper folder; only for files.
    upper: Option<FileStamp>,
}

impl CollectedChanges {
    /// Reads what a command changed. The command must have ended, and nothing may write to `upper` any more. `since` is a time before
    /// the command began: a file that another program changed differently in the workspace after it is a conflict.
    ///
    /// # Errors
    /// A folder cannot be read, contains a mount point or has more than [`MAX_ENTRIES`] changes.
    pub fn collect(
        workspace: &Workspace,
        upper: &Path,
        since: ViewCreation,
    ) -> Result<Self, CollectError> {
        Self::walk(workspace, upper, since, None)
    }

    /// Reads the changes of a view that was collected before: some of them may already be applied. Deletions by another
    /// program cannot be distinguished from those. `known` is what [`git_states`](Self::git_states) returned then.
    ///
    /// # Errors
    /// The same as for [`collect`](Self::collect).
    pub fn collect_again(
        workspace: &Workspace,
        upper: &Path,
        since: ViewCreation,
        known: &GitStates,
    ) -> Result<Self, CollectError> {
        Self::walk(workspace, upper, since, Some(known))
    }

    fn walk(
        workspace: &Workspace,
        upper: &Path,
        since: ViewCreation,
        known: Option<&GitStates>,
    ) -> Result<Self, CollectError> {
        let upper = Upper::open(upper)?;
        let mut walk = UpperWalk::new(workspace, &upper, since, known);
        walk.run()?;
        let touched = walk.take_touched();
        let (changes, mut dropped) = walk.finish();
        dropped.sort_by(|a, b| a.path.cmp(&b.path));
        let git = match known {
            Some(known) => known.clone(),
            None => GitStates::read(workspace, changes.iter()),
        };
        Ok(Self {
            git,
            only_touched: touched.beside(&changes),
            changes: Arc::new(changes),
            dropped,
            upper,
            touched: AtomicBool::new(false),
        })
    }

    /// Returns what changed files of repositories recorded when they were collected first.
    pub fn git_states(&self) -> &GitStates {
        &self.git
    }

    /// Returns the SHA-256 over the selected changes, in hex: an approval is bound to it. It covers paths, actions and both states; a
    /// file that is too large to hash counts by its identity and times.
    pub fn sha256(&self, select: &dyn Fn(&Path) -> bool) -> String {
        let mut hasher = Sha256::new();
        for change in self.changes.iter().filter(|change| select(change.path)) {
            let Stamps { lower, upper } = &change.stamps;
            let unhashed = |state: &Option<EntryState>| {
                matches!(
                    state,
                    Some(EntryState::File { sha256: None, .. } | EntryState::Other)
                )
            };
            let before = lower.as_ref().filter(|_| unhashed(&change.before));
            let after = upper.as_ref().filter(|_| unhashed(&change.after));
            let identity = |stamp: &FileStamp| (stamp.device, stamp.inode, stamp.modified);
            let path = PathText(change.path.to_owned());
            let states = (&change.before, &change.after);
            let line = (
                path,
                change.action,
                states,
                before.map(identity),
                after.map(identity),
            );
            // Plain data: this cannot fail.
            let line = serde_json::to_vec(&line).unwrap_or_default();
            hasher.update((line.len() as u64).to_le_bytes());
            hasher.update(line);
        }
        hex(&hasher.finalize())
    }

    /// Returns the text before and after of the selected files and links, for the diff that the user decides on, within
    /// the budget of one request. If there are too many to name, those for which `first` is true are named before
    /// others, and those for which `last` is true after all others.
    pub fn preview(
        &self,
        workspace: &Workspace,
        select: &dyn Fn(&Path) -> bool,
        first: &dyn Fn(&Path) -> bool,
        last: &dyn Fn(&Path) -> bool,
    ) -> Vec<FileChange> {
        let each = self.changes.paths().enumerate();
        let selected = each.filter(|(_, path)| select(path)).map(|(at, _)| at);
        let is_last = |at: &usize| last(self.changes.path(*at));
        let (rest, others): (Vec<usize>, Vec<usize>) = selected.partition(is_last);
        let ordered = others.into_iter().chain(rest);
        let first = |path: &Path| first(path) && !last(path);
        let sources = preview::PreviewSources {
            changes: &self.changes,
            upper: &self.upper,
            workspace,
        };
        let holds_changes = |folder: &Path| self.changes.holds_below(folder);
        preview::file_changes(sources, ordered, &first, &holds_changes)
    }

    /// Returns the content that the command left in a file.
    ///
    /// # Errors
    /// There is no such file, it is longer than `most` bytes, or it cannot be read.
    pub fn content(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// Opens a file that the command left.
    ///
    /// # Errors
    /// There is no such file, or it cannot be opened.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let file = self.upper.file(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(file)
    }

    /// Applies the selected changes and records them as one set. Skips changes that are already in the workspace, so a
    /// second call completes the first. Leaves out conflicts, and changes that depend on one that is not selected:
    /// see [`left_out`](Self::left_out).
    ///
    /// The files remain in the upper folder, as hard links of those in the workspace if both are on one mount. Delete
    /// it afterwards; never mount it again.
    ///
    /// # Errors
    /// Before anything is touched: a file differs from its collected state, or the changes cannot be recorded. Otherwise:
    /// something cannot be changed, and the changes before it are applied.
    pub fn apply(
        &self,
        workspace: &Workspace,
        changer: &crate::change::Changer,
        select: &dyn Fn(&Path) -> bool,
    ) -> Result<(), WorkspaceError> {
        self.apply_within(workspace, changer, select, &|| Ok(()))
    }

    /// Applies the selected changes as [`apply`](Self::apply) does, while `go_on` returns no error. It is asked before each step; where
    /// it fails, the changes before are applied, and a second call completes them.
    ///
    /// # Errors
    /// As for `apply`, and that of `go_on`.
    pub fn apply_within(
        &self,
        workspace: &Workspace,
        changer: &crate::change::Changer,
        select: &dyn Fn(&Path) -> bool,
        go_on: &dyn Fn() -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        apply::apply(self, workspace, changer, select, go_on)
    }

    /// Returns the selected changes that are already in the workspace: those applied before something failed.
    pub fn applied(&self, workspace: &Workspace, select: &dyn Fn(&Path) -> bool) -> Vec<&Path> {
        apply::applied(self, workspace, select)
    }

    /// Whether applying reached the files of the workspace, so that a failure may have left changes half applied.
    pub fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Acquire)
    }

    /// Returns the selected changes that are only partly made, each with a description.
    pub fn begun(
        &self,
        workspace: &Workspace,
        select: &dyn Fn(&Path) -> bool,
    ) -> Vec<(&Path, &'static str)> {
        if !self.is_touched() {
            return Vec::new();
        }
        let selected = self.changes.iter().filter(|change| select(change.path));
        let started_changes = selected.filter_map(|change| {
            let now = workspace.look(change.path);
            Some((change.path, apply::begun(&change, now.map(|now| now.0))?))
        });
        started_changes.collect()
    }

    /// Returns the selected changes that [`apply`](Self::apply) leaves out, each with the reason: a conflict, or a dependency on a
    /// change that is not selected.
    pub fn left_out(&self, select: &dyn Fn(&Path) -> bool) -> Vec<(&Path, &'static str)> {
        apply::ApplicableChanges::new(&self.changes, select).left_out
    }
}

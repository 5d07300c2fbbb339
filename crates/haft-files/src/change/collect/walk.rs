//! The walk through an upper folder: compares each entry with what is at its path in the workspace.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use crate::change::collect::git_states::{GitStates, GitValues};
use crate::change::collect::upper::{
    ModeGuard, Upper, created_at, failed, is_opaque, is_redirect, is_whiteout_device,
    is_whiteout_file, link_in, may_be_metacopy, names, open_file, stat_in,
};
use crate::change::collect::{
    ChangeList, CollectError, DroppedEntry, MAX_ENTRIES, Stamps, ViewChange, ViewCreation,
};
use crate::change::log::{MAX_FILE_BYTES, MAX_RUN_BYTES};
use crate::change::net::ChangeKind;
use crate::change::{EntryState, FileHash};
use crate::workspace::{EntryKind, FileStamp, Workspace, open_within};

mod content;
mod finish;
mod known;
mod meanwhile;
mod touched;
mod vanished;

use content::Hasher;
pub use touched::{MAX_TOUCHED, TouchedEntries};
use vanished::DeletionEvidence;

const CHANGED: &str = "it was changed while the command ran";
const OWN_FILE: &str = "it is haft's own";
const NOT_TEXT: &str = "its name is not UTF-8";
const TOO_LONG: &str = "its path is longer than 4,095 bytes";
const TOO_DEEP: &str = "it lies in more than 512 folders within each other";
const UNREADABLE: &str = "it cannot be read";

/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 4095;
/// Maximum number of parts of a path. Each change is judged by every folder above it, so a chain of folders takes time by its square.
const MAX_PARTS: usize = 513;

/// The walk through an upper folder, with the changes found so far.
pub(super) struct UpperWalk<'a> {
    workspace: &'a Workspace,
    upper: &'a Upper,
    since: ViewCreation,
    /// What was shown of repositories; `None` when the changes are collected for the first time. Later some may already be applied.
    known: Option<&'a GitStates>,
    values: GitValues<'a>,
    /// Number of entries so far.
    entries: usize,
    /// Bytes of deleted files that were counted for hashing.
    deleted_bytes: u64,
    hasher: Hasher,
    unlocked: ModeGuard<'a>,
    /// In the order of the walk, each path once.
    found: ChangeList,
    /// Folders that another program moved, so that all changes at and below them are conflicts.
    moved: Vec<PathBuf>,
    dropped: Vec<DroppedEntry>,
    touched: TouchedEntries,
    /// Entries of the workspace that remain although the folder above them was deleted.
    stay: Vec<PathBuf>,
    /// Folders of the upper folder still to visit.
    todo: Vec<PendingFolder>,
    /// Entries that another program may have deleted.
    vanished: DeletionEvidence,
}

/// A folder of the upper folder.
struct PendingFolder {
    path: PathBuf,
    /// Whether a folder above it hides everything below in the workspace.
    opaque: bool,
    /// Whether another program moved it there: its content is not what the command saw.
    moved: bool,
}

/// An entry of the upper folder or of the workspace.
struct OverlayEntry<'a> {
    path: PathBuf,
    folder: &'a OwnedFd,
    name: &'a OsStr,
    stat: Stat,
}

impl OverlayEntry<'_> {
    fn kind(&self) -> EntryKind {
        kind(&self.stat)
    }

    fn failed(&self, verb: &'static str) -> impl Fn(Errno) -> CollectError + use<> {
        let path = self.path.clone();
        move |e| failed(verb, &path, e)
    }
}

fn kind(stat: &Stat) -> EntryKind {
    EntryKind::of(rustix::fs::FileType::from_raw_mode(stat.st_mode))
}

impl<'a> UpperWalk<'a> {
    /// Creates a walk through the changes since a moment. With `known`, they were collected before.
    pub(super) fn new(
        workspace: &'a Workspace,
        upper: &'a Upper,
        since: ViewCreation,
        known: Option<&'a GitStates>,
    ) -> Self {
        Self {
            workspace,
            upper,
            since,
            known,
            values: GitValues::new(workspace),
            entries: 0,
            deleted_bytes: 0,
            hasher: Hasher::default(),
            unlocked: ModeGuard::new(upper),
            found: ChangeList::default(),
            moved: Vec::new(),
            dropped: Vec::new(),
            touched: TouchedEntries::default(),
            stay: Vec::new(),
            todo: vec![PendingFolder {
                path: PathBuf::new(),
                opaque: false,
                moved: false,
            }],
            vanished: DeletionEvidence::new(known.is_some()),
        }
    }

    /// Visits all folders of the upper folder and compares their entries with the workspace.
    ///
    /// # Errors
    /// A folder cannot be read, is a mount point, or there are too many entries.
    pub(super) fn run(&mut self) -> Result<(), CollectError> {
        while let Some(todo) = self.todo.pop() {
            self.visit_folder(&todo)?;
        }
        Ok(())
    }

    fn visit_folder(&mut self, todo: &PendingFolder) -> Result<(), CollectError> {
        let path = &*todo.path;
        let to_error = |e| failed("read", path, e);
        let folder = match self.upper.folder(path) {
            Err(Errno::ACCESS) => return self.drop_entry(path.to_owned(), UNREADABLE),
            other => other.map_err(to_error)?,
        };
        if is_redirect(folder.as_fd()).map_err(to_error)? {
            let path = path.to_owned();
            return Err(CollectError::Incomplete { path });
        }
        let lower = self.lower_folder(path)?;
        let moved = todo.moved || self.is_moved(path, lower.as_ref())?;
        let names = all_names(path, &folder)?;
        let opaque = todo.opaque || is_opaque(folder.as_fd()).map_err(to_error)?;
        self.enter(path, &folder, lower.as_ref(), opaque)?;
        if opaque && let Some(lower) = &lower {
            let there: HashSet<&OsString> = names.iter().collect();
            for name in all_names(path, lower)? {
                if !there.contains(&name) {
                    self.delete_name(path, lower, &name)?;
                }
            }
        }
        for name in &names {
            if let Some(path) = self.usable_path(path, name)? {
                let stat = stat_in(folder.as_fd(), name).map_err(to_error)?;
                let stat = stat.ok_or_else(|| to_error(Errno::NOENT))?;
                let entry = OverlayEntry {
                    path,
                    folder: &folder,
                    name,
                    stat,
                };
                self.unlocked.unlock(&entry.path, &entry.stat);
                if entry.kind() == EntryKind::Directory {
                    let path = entry.path.clone();
                    self.todo.push(PendingFolder {
                        path,
                        opaque,
                        moved,
                    });
                }
                self.visit_entry(entry, lower.as_ref())?;
            }
        }
        if moved {
            self.moved.push(path.to_owned());
        }
        Ok(())
    }

    /// Returns the path of an entry. `None` if it cannot be applied, since its name is not UTF-8, its path is too long or too deep,
    /// or it is haft's own: then the entry is reported as dropped.
    fn usable_path(
        &mut self,
        parent: &Path,
        name: &OsStr,
    ) -> Result<Option<PathBuf>, CollectError> {
        let path = parent.join(name);
        let why = if name.to_str().is_none() {
            NOT_TEXT
        } else if path.as_os_str().len() > MAX_PATH {
            TOO_LONG
        } else if path.iter().count() > MAX_PARTS {
            TOO_DEEP
        } else if self.workspace.is_own(&path) {
            OWN_FILE
        } else {
            return Ok(Some(path));
        };
        self.drop_entry(path, why)?;
        Ok(None)
    }

    fn visit_entry(
        &mut self,
        entry: OverlayEntry<'_>,
        lower: Option<&OwnedFd>,
    ) -> Result<(), CollectError> {
        let below = match lower {
            Some(_) if self.workspace.is_repository(&entry.path) => {
                let stat = self.workspace.stat(&entry.path);
                Some(stat.map_err(entry.failed("look at"))?)
            }
            Some(folder) => stat_in(folder.as_fd(), entry.name).map_err(entry.failed("look at"))?,
            None => None,
        };
        let below = below.zip(lower).map(|(stat, folder)| OverlayEntry {
            path: entry.path.clone(),
            folder,
            name: entry.name,
            stat,
        });
        if is_whiteout_device(&entry.stat) {
            return self.whiteout(below);
        }
        match entry.kind() {
            EntryKind::File => self.visit_file(entry, below),
            EntryKind::Link => {
                let target = link_in(entry.folder.as_fd(), entry.name);
                let target = target.map_err(entry.failed("read"))?;
                let after = EntryState::Link {
                    target: target.as_path().into(),
                };
                self.compare(after, None, &entry.path, below)
            }
            EntryKind::Directory => {
                self.touch_folder(&entry, below.as_ref())?;
                let mode = Some(entry.stat.st_mode & 0o777);
                self.compare(EntryState::Folder { mode }, None, &entry.path, below)
            }
            EntryKind::Pipe => self.drop_entry(entry.path, "it is a named pipe"),
            EntryKind::Socket => self.drop_entry(entry.path, "it is a socket"),
            EntryKind::Device => self.drop_entry(entry.path, "it is a device"),
        }
    }

    fn visit_file(
        &mut self,
        entry: OverlayEntry<'_>,
        below: Option<OverlayEntry<'_>>,
    ) -> Result<(), CollectError> {
        let to_error = entry.failed("read");
        let file = match open_file(entry.folder.as_fd(), Path::new(entry.name)) {
            Err(Errno::ACCESS) => return self.drop_entry(entry.path, UNREADABLE),
            other => other.map_err(&to_error)?,
        };
        if entry.stat.st_size == 0 && is_whiteout_file(&file).map_err(&to_error)? {
            return self.whiteout(below);
        }
        self.record_copy_up(&entry, &file, below.as_ref())?;
        if may_be_metacopy(&file, &entry.stat).map_err(&to_error)? {
            return Err(CollectError::Incomplete { path: entry.path });
        }
        let stamp = FileStamp::of(&entry.stat);
        let mode = Some(entry.stat.st_mode & 0o777);
        let after = EntryState::File {
            sha256: self.hash(&entry.path, &file, stamp.bytes())?,
            bytes: stamp.bytes(),
            mode,
        };
        if let Some(below) = &below
            && below.kind() == EntryKind::File
            && stamp.bytes() > MAX_FILE_BYTES
            && FileStamp::of(&below.stat).bytes() == stamp.bytes()
            && let Ok(lower) = open_file(below.folder.as_fd(), Path::new(below.name))
            && content::is_same(&file, &lower).map_err(|e| io(&entry.path, e))?
        {
            return self.compare_modes(after, stamp, below);
        }
        self.compare(after, Some(stamp), &entry.path, below)
    }

    /// Compares what the command left with what is in the workspace.
    fn compare(
        &mut self,
        after: EntryState,
        upper: Option<FileStamp>,
        path: &Path,
        below: Option<OverlayEntry<'_>>,
    ) -> Result<(), CollectError> {
        let Some(below) = below else {
            if self.add_known(path, &after, None, Stamps { lower: None, upper })? {
                return Ok(());
            }
            let change = change(path, ChangeKind::Create, None, Some(after));
            return self.add(change, None, upper);
        };
        let (before, lower) = self.before(&below, true)?;
        if self.add_known(path, &after, Some(&before), Stamps { lower, upper })? {
            return Ok(());
        }
        let (was, is) = (permission_bits(&before), permission_bits(&after));
        let action = match (&before, &after) {
            (EntryState::Folder { .. }, EntryState::Folder { .. }) if was == is => return Ok(()),
            (EntryState::Folder { .. }, EntryState::Folder { .. }) => ChangeKind::Chmod,
            (EntryState::Link { target: a }, EntryState::Link { target: b }) if a == b => {
                return Ok(());
            }
            (EntryState::Link { .. }, EntryState::Link { .. }) => ChangeKind::Modify,
            (EntryState::File { sha256: a, .. }, EntryState::File { sha256: b, .. }) => {
                if a.is_none() || a != b {
                    ChangeKind::Modify
                } else if was == is {
                    return self.touch(&below, after, Stamps { lower, upper });
                } else {
                    ChangeKind::Chmod
                }
            }
            _ => ChangeKind::Replace,
        };
        if below.kind() == EntryKind::Directory && action == ChangeKind::Replace {
            self.delete_content(&below.path)?;
        }
        let later = if action == ChangeKind::Chmod && below.kind() == EntryKind::Directory {
            // Any new entry changes a folder's time too, so the time does not show who changed the mode. When collecting again, haft's own
            // changes must not count; then the states that were shown are compared.
            self.known.is_none() && ViewCreation::changed(&below.stat) > self.since
        } else {
            self.is_later(&below)?
        };
        let mut change = change(path, action, Some(before), Some(after));
        change.conflict = later.then_some(CHANGED);
        self.add(change, lower, upper)
    }

    /// Compares the modes of two files with the same content.
    fn compare_modes(
        &mut self,
        after: EntryState,
        upper: FileStamp,
        below: &OverlayEntry<'_>,
    ) -> Result<(), CollectError> {
        let lower = FileStamp::of(&below.stat);
        let before = EntryState::File {
            sha256: None,
            bytes: lower.bytes(),
            mode: Some(below.stat.st_mode & 0o7777),
        };
        if permission_bits(&before) == permission_bits(&after) {
            let (lower, upper) = (Some(lower), Some(upper));
            return self.touch(below, after, Stamps { lower, upper });
        }
        let mut change = change(&below.path, ChangeKind::Chmod, Some(before), Some(after));
        change.conflict = self.is_later(below)?.then_some(CHANGED);
        self.add(change, Some(lower), Some(upper))
    }

    fn delete_name(
        &mut self,
        parent: &Path,
        folder: &OwnedFd,
        name: &OsStr,
    ) -> Result<(), CollectError> {
        let path = parent.join(name);
        let stat = stat_in(folder.as_fd(), name).map_err(|e| failed("look at", &path, e))?;
        let Some(path) = self.usable_path(parent, name)? else {
            self.stay.push(path);
            return Ok(());
        };
        let Some(stat) = stat else { return Ok(()) };
        self.delete(&OverlayEntry {
            path,
            folder,
            name,
            stat,
        })
    }

    /// Adds the deletion of an entry of the workspace, with its content.
    fn delete(&mut self, entry: &OverlayEntry<'_>) -> Result<(), CollectError> {
        let folder = entry.kind() == EntryKind::Directory;
        let (before, lower) = self.state_before_deletion(entry)?;
        let mut change = change(&entry.path, ChangeKind::Delete, Some(before), None);
        let content = if folder {
            self.lower_folder(&entry.path)?
        } else {
            None
        };
        let later = self.is_later(entry)? || self.is_moved(&entry.path, content.as_ref())?;
        change.conflict = later.then_some(CHANGED);
        self.add(change, lower, None)?;
        if folder {
            self.delete_content(&entry.path)?;
        }
        Ok(())
    }

    /// Adds the deletion of everything below a folder of the workspace.
    fn delete_content(&mut self, path: &Path) -> Result<(), CollectError> {
        let mut todo = vec![(path.to_owned(), false)];
        while let Some((parent, moved)) = todo.pop() {
            let Some(folder) = self.lower_folder(&parent)? else {
                continue;
            };
            let moved = moved || self.is_moved(&parent, Some(&folder))?;
            for name in all_names(&parent, &folder)? {
                let path = parent.join(&name);
                let stat = stat_in(folder.as_fd(), &name);
                let Some(stat) = stat.map_err(|e| failed("look at", &path, e))? else {
                    continue;
                };
                if self.usable_path(&parent, &name)?.is_none() {
                    self.stay.push(path);
                    continue;
                }
                let entry = OverlayEntry {
                    path: path.clone(),
                    folder: &folder,
                    name: &name,
                    stat,
                };
                let (before, lower) = self.state_before_deletion(&entry)?;
                let mut change = change(&path, ChangeKind::Delete, Some(before), None);
                change.conflict = (moved || self.is_later(&entry)?).then_some(CHANGED);
                self.add(change, lower, None)?;
                if entry.kind() == EntryKind::Directory {
                    todo.push((path, moved));
                }
            }
        }
        Ok(())
    }

    /// Returns the state of an entry that is deleted. Hashes only as many bytes as can be saved for an undo.
    fn state_before_deletion(
        &mut self,
        entry: &OverlayEntry<'_>,
    ) -> Result<(EntryState, Option<FileStamp>), CollectError> {
        if entry.kind() == EntryKind::File {
            let bytes = FileStamp::of(&entry.stat).bytes();
            self.deleted_bytes = self.deleted_bytes.saturating_add(bytes);
        }
        self.before(entry, self.deleted_bytes <= MAX_RUN_BYTES)
    }

    /// Returns the state of an entry of the workspace.
    fn before(
        &mut self,
        entry: &OverlayEntry<'_>,
        hashed: bool,
    ) -> Result<(EntryState, Option<FileStamp>), CollectError> {
        let stamp = FileStamp::of(&entry.stat);
        let mode = Some(entry.stat.st_mode & 0o7777);
        let state = match entry.kind() {
            EntryKind::Directory => return Ok((EntryState::Folder { mode }, None)),
            EntryKind::Link => {
                let target = link_in(entry.folder.as_fd(), entry.name);
                let target = target.map_err(entry.failed("read"))?;
                EntryState::Link {
                    target: target.as_path().into(),
                }
            }
            EntryKind::File => match open_file(entry.folder.as_fd(), Path::new(entry.name)) {
                Ok(file) => {
                    let now = rustix::fs::fstat(&file).map_err(entry.failed("look at"))?;
                    if !stamp.is_still(&FileStamp::of(&now)) {
                        return Err(failed("read", &entry.path, Errno::STALE));
                    }
                    let bytes = stamp.bytes();
                    let sha256 = if hashed {
                        self.hash(&entry.path, &file, bytes)?
                    } else {
                        None
                    };
                    EntryState::File {
                        sha256,
                        bytes,
                        mode,
                    }
                }
                Err(Errno::ACCESS) => EntryState::Other,
                Err(e) => return Err(failed("read", &entry.path, e)),
            },
            EntryKind::Pipe | EntryKind::Socket | EntryKind::Device => EntryState::Other,
        };
        Ok((state, Some(stamp)))
    }

    /// Returns the SHA-256 of a file; `None` if it is too large.
    fn hash(
        &mut self,
        path: &Path,
        file: &File,
        bytes: u64,
    ) -> Result<Option<FileHash>, CollectError> {
        if bytes > MAX_FILE_BYTES {
            return Ok(None);
        }
        self.hasher.hash(file, bytes).map_err(|e| io(path, e))
    }

    /// Opens the folder at a path of the workspace; `None` if there is none.
    fn lower_folder(&self, path: &Path) -> Result<Option<OwnedFd>, CollectError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let (base, within) = self.workspace.base_of(path);
        match open_within(base, within, flags) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(e) => Err(failed("read", &self.workspace.host_path(path), e)),
        }
    }

    fn add(
        &mut self,
        change: ViewChange<'_>,
        lower: Option<FileStamp>,
        upper: Option<FileStamp>,
    ) -> Result<(), CollectError> {
        self.count()?;
        let stamps = Stamps { lower, upper };
        self.found.add(&ViewChange { stamps, ..change })
    }

    fn drop_entry(&mut self, path: PathBuf, why: &'static str) -> Result<(), CollectError> {
        self.count()?;
        self.dropped.push(DroppedEntry { path, why });
        Ok(())
    }

    fn count(&mut self) -> Result<(), CollectError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(CollectError::TooMany);
        }
        Ok(())
    }
}

fn all_names(path: &Path, folder: &OwnedFd) -> Result<Vec<OsString>, CollectError> {
    let names = names(folder.as_fd(), MAX_ENTRIES).map_err(|e| failed("read", path, e))?;
    names.ok_or(CollectError::TooMany)
}

fn permission_bits(state: &EntryState) -> Option<u32> {
    match state {
        EntryState::File { mode, .. } | EntryState::Folder { mode } => {
            mode.map(|mode| mode & 0o777)
        }
        EntryState::Link { .. } | EntryState::Other => None,
    }
}

fn change(
    path: &Path,
    action: ChangeKind,
    before: Option<EntryState>,
    after: Option<EntryState>,
) -> ViewChange<'_> {
    ViewChange {
        path,
        action,
        before,
        after,
        conflict: None,
        stamps: Stamps::default(),
    }
}

fn io(path: &Path, source: std::io::Error) -> CollectError {
    CollectError::Io {
        verb: "read",
        path: path.to_owned(),
        source,
    }
}

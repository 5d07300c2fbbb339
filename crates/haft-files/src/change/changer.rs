//! `Changer`: the only way to change files of a workspace. A call's changer writes to the run's log before it acts.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::change::log::{BegunSet, ChangeLog, ChangesMade, OpenSet};
use crate::change::state::{hash_open_file, state_at};
use crate::change::{ChangeEntry, EntryState, FileHash};
use crate::workspace::{
    EntryKind, FileRemoval, FileStamp, FileUpdate, Import, ResolvedPath, Workspace, WorkspaceError,
    WriteMode, WriteReceipt,
};
use haft_types::call::{CallId, RunId};

/// Maximum number of entries in a folder that is deleted.
const MAX_ENTRIES: usize = 100_000;

/// Changes files of a workspace, and records each change if it belongs to a call.
#[derive(Debug, Clone)]
pub struct Changer {
    workspace: Workspace,
    recorder: Option<CallRecorder>,
    /// The modes to record for folders that are temporarily writable.
    modes: Arc<BTreeMap<PathBuf, u32>>,
}

#[derive(Debug, Clone)]
struct CallRecorder {
    log: Arc<ChangeLog>,
    run: RunId,
    call: CallId,
}

/// The state at each path, sorted by path.
pub(super) type SavedStates = BTreeMap<PathBuf, Option<EntryState>>;

/// The entries to record for one operation.
struct PlannedSet {
    changes: Vec<ChangeEntry>,
    /// Whether everything remains as before if the operation fails.
    atomic: bool,
}

/// Changes to record as one set, in the order in which they are made: deletions first.
pub(super) trait ChangesToRecord {
    /// Returns each path with its state afterwards.
    fn each(&self) -> Box<dyn Iterator<Item = (&Path, Option<EntryState>)> + '_>;

    /// Returns whether a path is among them.
    fn contains(&self, path: &Path) -> bool;
}

impl CallRecorder {
    /// Records the end of a set, as far as it is known. With `atomic`, a failure left everything as before.
    fn conclude<T>(
        &self,
        set: &BegunSet,
        atomic: bool,
        done: Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let (log, run) = (&self.log, &self.run);
        if done.is_ok() {
            log.tell(ChangesMade {
                run: run.clone(),
                call: self.call.clone(),
                paths: set.paths,
            });
        }
        let known = match &done {
            Ok(_) => true,
            Err(WorkspaceError::NotPutBack { .. }) => false,
            Err(_) => atomic,
        };
        if known && let Err(error) = log.end(run, set, done.is_ok()) {
            // The set then counts as possibly done; an undo compares it with the files.
            tracing::warn!(%error, %run, "record that a change is done");
        }
        done
    }
}

impl Workspace {
    /// Returns a changer that records nothing, so its changes cannot be undone: for a host's own files and for tests. A tool uses
    /// `haft::CallContext::changer`.
    pub fn unrecorded(&self) -> Changer {
        Changer {
            workspace: self.clone(),
            recorder: None,
            modes: Arc::default(),
        }
    }
}

impl Changer {
    /// Returns the changer of a call.
    pub fn of(workspace: &Workspace, log: &Arc<ChangeLog>, run: &RunId, call: &CallId) -> Self {
        Self {
            workspace: workspace.clone(),
            recorder: Some(CallRecorder {
                log: Arc::clone(log),
                run: run.clone(),
                call: call.clone(),
            }),
            modes: Arc::default(),
        }
    }

    /// Returns a changer that records these modes for folders: those from before the folders became temporarily writable.
    pub(super) fn with_modes(&self, modes: BTreeMap<PathBuf, u32>) -> Self {
        Self {
            modes: Arc::new(modes),
            ..self.clone()
        }
    }

    /// Returns a changer that may also restore what belongs to repositories.
    pub(super) fn with_repositories(&self) -> Self {
        Self {
            workspace: self.workspace.with_repositories().with_git(),
            ..self.clone()
        }
    }

    /// Writes a file at a place and creates its parents. Whatever goes wrong, the old content remains until the new one is completely
    /// on disk; mode and owner do not change. For a link, writes its target; another name of the same file (a hard link) keeps the
    /// old content. With `expected`, a file in a different state is not changed.
    ///
    /// # Errors
    /// The place may not be changed, is not a file, or is in a different state than expected; or the disk is full.
    pub fn write(
        &self,
        place: &ResolvedPath,
        content: &[u8],
        mode: WriteMode,
        expected: Option<&FileStamp>,
    ) -> Result<WriteReceipt, WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let real = place.real();
            let before = self.save_state(recorder, real)?;
            let old = match mode {
                WriteMode::Append => self.read_bytes(place)?,
                WriteMode::Overwrite | WriteMode::Create => Vec::new(),
            };
            let after = file_state(&[&old, content], before.as_ref());
            let mut changes = missing_parents(place);
            changes.push(change_entry(real, before, Some(after)));
            Ok(PlannedSet {
                changes,
                atomic: true,
            })
        };
        self.record_then(planned, || {
            self.workspace.write(place, content, mode, expected)
        })
    }

    /// Makes all changes or none. Replaces each file as [`write`](Self::write) does; if a change fails, reverts those before it and
    /// removes the folders created for them. Returns the new state of each file, in order; `None` for a deleted one. The places
    /// must be different files.
    ///
    /// # Errors
    /// A file is not in the expected state, or cannot be changed; [`WorkspaceError::NotPutBack`] says that some changes remain.
    pub fn change(
        &self,
        changes: &[FileUpdate<'_>],
    ) -> Result<Vec<Option<FileStamp>>, WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let mut all = Vec::with_capacity(changes.len());
            let mut made = HashSet::new();
            for change in changes {
                let real = change.place.real();
                let before = self.save_state(recorder, real)?;
                let like = match (&before, change.like) {
                    (None, Some(like)) => self.current_state(like.real())?,
                    _ => before.clone(),
                };
                let after = |content: &[u8]| {
                    let after = file_state(&[content], like.as_ref());
                    change
                        .mode
                        .map_or(after.clone(), |mode| with_mode(after, mode & 0o777))
                };
                let after = change.content.map(after);
                let folders = missing_parents(change.place).into_iter();
                all.extend(folders.filter(|folder| made.insert(folder.path.clone())));
                all.push(change_entry(real, before, after));
            }
            Ok(PlannedSet {
                changes: all,
                atomic: true,
            })
        };
        self.record_then(planned, || self.workspace.change(changes))
    }

    /// Moves what [`entry`](Workspace::entry) found at `from` to `to`, and creates the parents. With `overwrite` it may replace a file
    /// or link, but never a folder.
    ///
    /// # Errors
    /// Something is in the way, or may not be changed.
    pub fn rename(
        &self,
        from: &ResolvedPath,
        to: &ResolvedPath,
        overwrite: bool,
    ) -> Result<(), WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let mut changes = missing_parents(to);
            changes.push(ChangeEntry {
                path: to.real().into(),
                from: Some(from.real().into()),
                before: self.save_state(recorder, to.real())?,
                after: self.current_state(from.real())?,
            });
            Ok(PlannedSet {
                changes,
                atomic: true,
            })
        };
        self.record_then(planned, || self.workspace.rename(from, to, overwrite))
    }

    /// Deletes the file, link or empty folder at a place that [`entry`](Workspace::entry) found; with `recursive`, the
    /// whole tree. Does not touch a tree that contains a `.git` entry or haft's own files.
    ///
    /// # Errors
    /// It may not be deleted, is not empty, or contains more than 100,000 entries.
    pub fn remove(&self, place: &ResolvedPath, recursive: bool) -> Result<(), WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let mut below = Vec::new();
            if recursive && place.kind() == Some(EntryKind::Directory) {
                below = self.below(place)?;
            }
            // In the order of deletion: the content of a folder before the folder.
            below.sort();
            let removed = below.iter().rev().map(PathBuf::as_path);
            let removed = removed.chain([place.real()]);
            let changes =
                removed.map(|path| Ok(change_entry(path, self.save_state(recorder, path)?, None)));
            Ok(PlannedSet {
                changes: changes.collect::<Result<_, WorkspaceError>>()?,
                atomic: !recursive,
            })
        };
        self.record_then(planned, || self.workspace.remove(place, recursive))
    }

    /// Creates the folder at an empty place, and its parents. The caller must still [set](Self::set_mode) its mode.
    pub(crate) fn make_folder(
        &self,
        place: &ResolvedPath,
        mode: Option<u32>,
    ) -> Result<(), WorkspaceError> {
        let planned = |_: &CallRecorder| {
            let mut changes = missing_parents(place);
            let folder = EntryState::Folder { mode };
            changes.push(change_entry(place.real(), None, Some(folder)));
            Ok(PlannedSet {
                changes,
                atomic: true,
            })
        };
        self.record_then(planned, || self.workspace.make_folder(place))
    }

    /// Sets the mode of the folder at a place, without set-id bits; without a mode, the one of a new folder.
    pub(crate) fn set_mode(
        &self,
        place: &ResolvedPath,
        mode: Option<u32>,
    ) -> Result<(), WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let before = self.save_state(recorder, place.real())?;
            let after = Some(EntryState::Folder { mode });
            Ok(PlannedSet {
                changes: vec![change_entry(place.real(), before, after)],
                atomic: true,
            })
        };
        self.record_then(planned, || self.workspace.set_mode(place, mode))
    }

    /// Creates a link at an empty place, and its parents.
    pub(crate) fn make_link(
        &self,
        place: &ResolvedPath,
        target: &Path,
    ) -> Result<(), WorkspaceError> {
        let planned = |_: &CallRecorder| {
            let mut changes = missing_parents(place);
            let target = target.into();
            changes.push(change_entry(
                place.real(),
                None,
                Some(EntryState::Link { target }),
            ));
            Ok(PlannedSet {
                changes,
                atomic: true,
            })
        };
        self.record_then(planned, || self.workspace.make_link(place, target))
    }

    /// Deletes files one by one, like [`remove_files`](Workspace::remove_files).
    pub(super) fn remove_files(&self, files: &[FileRemoval<'_>]) -> Result<(), WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let change = |file: &FileRemoval<'_>| {
                let before = self.save_state(recorder, file.path)?;
                Ok(change_entry(file.path, before, None))
            };
            let changes: Result<_, WorkspaceError> = files.iter().map(change).collect();
            Ok(PlannedSet {
                changes: changes?,
                atomic: false,
            })
        };
        self.record_then(planned, || self.workspace.remove_files(files))
    }

    /// Puts files from outside at their places, like [`import`](Workspace::import).
    pub(super) fn import(&self, files: &[Import<'_>]) -> Result<(), WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let (mut changes, mut made) = (Vec::with_capacity(files.len()), HashSet::new());
            for import in files {
                let folders = missing_parents(&self.workspace.real_place(import.path)?).into_iter();
                changes.extend(folders.filter(|folder| made.insert(folder.path.clone())));
                let after = EntryState::File {
                    sha256: import.file.sha256,
                    bytes: import.file.stamp.bytes(),
                    mode: Some(import.mode & 0o777),
                };
                let before = self.save_state(recorder, import.path)?;
                changes.push(change_entry(import.path, before, Some(after)));
            }
            Ok(PlannedSet {
                changes,
                atomic: false,
            })
        };
        self.record_then(planned, || self.workspace.import(files))
    }

    /// Sets the permission bits of the file at a place, and changes nothing else.
    pub(super) fn set_file_mode(
        &self,
        place: &ResolvedPath,
        mode: u32,
        expected: Option<&FileStamp>,
    ) -> Result<(), WorkspaceError> {
        let planned = |recorder: &CallRecorder| {
            let before = self.save_state(recorder, place.real())?;
            let after = before.clone().map(|state| with_mode(state, mode & 0o777));
            Ok(PlannedSet {
                changes: vec![change_entry(place.real(), before, after)],
                atomic: true,
            })
        };
        self.record_then(planned, || {
            self.workspace.set_file_mode(place, mode, expected)
        })
    }

    /// Gives a file or folder the time when another one was modified, and changes nothing else. It is not recorded: an undo restores no times.
    ///
    /// # Errors
    /// It is in a different state than expected, or may not be changed.
    pub(super) fn set_modified(
        &self,
        real: &Path,
        like: &FileStamp,
        expected: &FileStamp,
    ) -> Result<(), WorkspaceError> {
        self.workspace.set_modified(real, like, expected)
    }

    /// Records all changes of a command as one set on disk, then makes them with a changer that records nothing further
    /// and may change `.git` folders.
    ///
    /// # Errors
    /// The set cannot be recorded, or not all changes could be made; then the set counts as possibly made.
    pub(super) fn record_set(
        &self,
        changes: &dyn ChangesToRecord,
        sync: impl FnOnce() -> Result<(), WorkspaceError>,
        act: impl FnOnce(&Self) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        let unrecorded = Self {
            workspace: self.workspace.with_git(),
            recorder: None,
            modes: Arc::default(),
        };
        let make = || {
            sync()?;
            act(&unrecorded)
        };
        let Some(recorder) = &self.recorder else {
            return make();
        };
        let (log, run) = (&recorder.log, &recorder.run);
        let mut set = log.open_set(run, &recorder.call);
        if let Err(error) = self.record_each(recorder, changes, &mut set) {
            set.abandon();
            return Err(error);
        }
        let set = set.close().map_err(WorkspaceError::NotNoted)?;
        recorder.conclude(&set, false, make())
    }

    /// Records changes one after the other: all of them at once would take much memory.
    fn record_each(
        &self,
        recorder: &CallRecorder,
        changes: &dyn ChangesToRecord,
        set: &mut OpenSet<'_>,
    ) -> Result<(), WorkspaceError> {
        let mut add = |entry| set.add(entry).map_err(WorkspaceError::NotNoted);
        let mut listed: HashSet<&Path> = HashSet::new();
        for (path, after) in changes.each() {
            let missing = |folder: &&Path| self.workspace.look(folder).is_none();
            let parents = path.ancestors().skip(1).filter(|_| after.is_some());
            let parents = parents
                .take_while(|folder| !changes.contains(folder) && listed.insert(folder))
                .take_while(missing);
            let parents: Vec<_> = parents.collect();
            for parent in parents.into_iter().rev() {
                add(change_entry(
                    parent,
                    None,
                    Some(EntryState::Folder { mode: None }),
                ))?;
            }
            let before = self.save_state(recorder, path)?;
            add(change_entry(path, before, after))?;
        }
        Ok(())
    }

    /// Returns the states at these paths, with the content of files saved, before a program changes them that haft does not run. Without a
    /// record there is nothing to save.
    pub(super) fn save_states(&self, paths: &[PathBuf]) -> Result<SavedStates, WorkspaceError> {
        let Some(recorder) = &self.recorder else {
            return Ok(SavedStates::new());
        };
        let mut states = SavedStates::new();
        for path in paths {
            let missing = |folder: &&Path| self.workspace.look(folder).is_none();
            let above = path.ancestors().skip(1).take_while(missing);
            states.extend(above.map(|folder| (folder.to_owned(), None)));
            states.insert(path.clone(), self.save_state(recorder, path)?);
        }
        Ok(states)
    }

    /// Records which of these paths are not as they were, as one set of changes that were made. Returns how many there are.
    pub(super) fn record_differences(&self, saved: SavedStates) -> Result<usize, WorkspaceError> {
        let mut changes = Vec::new();
        // Sorted, so that a folder comes before its content.
        for (path, before) in saved {
            let after = self.current_state(&path)?;
            if before != after {
                changes.push(change_entry(&path, before, after));
            }
        }
        let count = changes.len();
        if count > 0 {
            let planned = |_: &CallRecorder| {
                Ok(PlannedSet {
                    changes,
                    atomic: true,
                })
            };
            self.record_then(planned, || Ok(()))?;
        }
        Ok(count)
    }

    fn record_then<T>(
        &self,
        planned: impl FnOnce(&CallRecorder) -> Result<PlannedSet, WorkspaceError>,
        act: impl FnOnce() -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let Some(recorder) = &self.recorder else {
            return act();
        };
        let PlannedSet { changes, atomic } = planned(recorder)?;
        let (log, run) = (&recorder.log, &recorder.run);
        let set = log.begin(run, &recorder.call, changes);
        let set = set.map_err(WorkspaceError::NotNoted)?;
        recorder.conclude(&set, atomic, act())
    }

    /// Returns the state of a path that the operation is about to overwrite or delete; saves the content of a file.
    fn save_state(
        &self,
        recorder: &CallRecorder,
        real: &Path,
    ) -> Result<Option<EntryState>, WorkspaceError> {
        let state = state_at(&self.workspace, real, &mut |mut open| {
            let kept = recorder.log.save_file(&recorder.run, &mut open.file);
            kept.map_err(WorkspaceError::NotNoted)
        })?;
        Ok(match (state, self.modes.get(real)) {
            (Some(EntryState::Folder { .. }), Some(mode)) => {
                Some(EntryState::Folder { mode: Some(*mode) })
            }
            (state, _) => state,
        })
    }

    /// Returns the state of a path whose content the operation keeps.
    fn current_state(&self, real: &Path) -> Result<Option<EntryState>, WorkspaceError> {
        state_at(&self.workspace, real, &mut |open| {
            hash_open_file(open, real)
        })
    }

    /// Returns the bytes of the file at a place; empty if there is none.
    fn read_bytes(&self, place: &ResolvedPath) -> Result<Vec<u8>, WorkspaceError> {
        if place.kind().is_none() {
            return Ok(Vec::new());
        }
        let mut open = self.workspace.read(place)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut open.file, &mut bytes)
            .map_err(|e| WorkspaceError::io("read", &place.display(), e))?;
        Ok(bytes)
    }

    fn below(&self, place: &ResolvedPath) -> Result<Vec<PathBuf>, WorkspaceError> {
        let below = self.workspace.tree(place, MAX_ENTRIES)?;
        let below = below.ok_or_else(|| {
            WorkspaceError::Malformed(place.display(), "it holds more than 100,000 entries")
        })?;
        Ok(below.into_iter().map(PathBuf::from).collect())
    }
}

fn change_entry(real: &Path, before: Option<EntryState>, after: Option<EntryState>) -> ChangeEntry {
    ChangeEntry {
        path: real.into(),
        from: None,
        before,
        after,
    }
}

/// Returns the missing parent folders of a place, outermost first.
fn missing_parents(place: &ResolvedPath) -> Vec<ChangeEntry> {
    let missing = place.missing().saturating_sub(1);
    let above = place.real().ancestors().skip(1).take(missing);
    let mut made: Vec<_> = above
        .map(|folder| change_entry(folder, None, Some(EntryState::Folder { mode: None })))
        .collect();
    made.reverse();
    made
}

/// Returns the state of a file with these bytes and the mode of `before`.
fn file_state(parts: &[&[u8]], before: Option<&EntryState>) -> EntryState {
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    for part in parts {
        hasher.update(part);
        bytes += part.len() as u64;
    }
    EntryState::File {
        sha256: Some(FileHash::finish(hasher)),
        bytes,
        mode: match before {
            // Without set-id bits.
            Some(EntryState::File { mode, .. }) => mode.map(|mode| mode & 0o777),
            _ => None,
        },
    }
}

fn with_mode(state: EntryState, mode: u32) -> EntryState {
    match state {
        EntryState::File { sha256, bytes, .. } => EntryState::File {
            sha256,
            bytes,
            mode: Some(mode),
        },
        other => other,
    }
}

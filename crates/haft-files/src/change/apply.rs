//! Brings each path of a plan to its target state: for an undo, and for a command's changes on a view.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::change::state::state_at;
use crate::change::{Changer, EntryState};
use crate::workspace::{
    EntryKind, FileRemoval, FileStamp, FileUpdate, Import, OutsideFile, ResolvedPath, Workspace,
    WorkspaceError,
};

/// Maximum number of files changed atomically: larger sets cost fewer syncs.
const MAX_BATCH: usize = 1_000;
/// Maximum number of folders in such a set: each of them is held open.
const MAX_FOLDERS: usize = 200;
/// The permission bits of a file if none are known.
const NEW_MODE: u32 = 0o600;
/// The mode bits that let the owner change the entries of a folder.
const WRITE_BITS: u32 = 0o300;

/// The desired state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetState {
    /// Nothing exists there.
    Nothing,
    /// A file.
    File {
        /// Its content.
        content: ContentSource,
        /// Its permission bits; `None` leaves them unchanged.
        mode: Option<u32>,
    },
    /// A link with this text.
    Link(PathBuf),
    /// A folder with this mode, if known.
    Folder(Option<u32>),
}

/// The source of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentSource {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// A file outside the workspace.
    Outside(OutsideFile),
    /// The content that it has now.
    Unchanged,
}

/// The targets of paths, in the order of the paths. They need not be in memory: each is made when it is needed.
pub(super) trait TargetList {
    /// Returns all paths.
    fn paths(&self) -> Box<dyn Iterator<Item = &Path> + '_>;

    /// Returns all paths with their targets.
    fn each(&self) -> Box<dyn Iterator<Item = (&Path, Cow<'_, TargetState>)> + '_>;

    /// Returns whether a path has a target.
    fn contains(&self, path: &Path) -> bool;

    /// Returns the state of a file when it was compared. A file in a different state is not replaced or deleted.
    fn stamp(&self, path: &Path) -> Option<FileStamp>;

    /// Fails if no further target may be reached. Asked before each step.
    fn check_time(&self) -> Result<(), WorkspaceError> {
        Ok(())
    }
}

/// Targets in memory, with the states of files.
pub(super) struct TargetMap<'a> {
    pub(super) all: &'a BTreeMap<PathBuf, TargetState>,
    pub(super) stamps: &'a HashMap<PathBuf, FileStamp>,
}

impl TargetList for TargetMap<'_> {
    fn paths(&self) -> Box<dyn Iterator<Item = &Path> + '_> {
        Box::new(self.all.keys().map(PathBuf::as_path))
    }

    fn each(&self) -> Box<dyn Iterator<Item = (&Path, Cow<'_, TargetState>)> + '_> {
        let each = self.all.iter();
        Box::new(each.map(|(path, target)| (path.as_path(), Cow::Borrowed(target))))
    }

    fn contains(&self, path: &Path) -> bool {
        self.all.contains_key(path)
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        self.stamps.get(path).copied()
    }
}

/// The target states of several paths.
#[derive(Clone, Copy)]
pub(super) struct TargetStates<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) changer: &'a Changer,
    pub(super) all: &'a dyn TargetList,
}

/// What exists at each path of some targets, in their order.
type EntryKinds = [Option<EntryKind>];
/// The modes of folders.
type FolderModes = BTreeMap<PathBuf, u32>;

impl<'a> TargetStates<'a> {
    /// Brings each path to its target. Deletes files in the same set as writing others where possible.
    ///
    /// # Errors
    /// Something cannot be changed, or differs from its state when compared.
    pub(super) fn apply(&self) -> Result<(), WorkspaceError> {
        self.with_open_folders(|targets, open| {
            let kinds = targets.kinds();
            targets.apply_at_once(&kinds, open)
        })
    }

    /// Brings each path to its target, with all deletions first, one after the other, so that another process can
    /// complete an interrupted run.
    ///
    /// # Errors
    /// Something cannot be changed, or differs from its state when compared.
    pub(super) fn apply_in_order(&self) -> Result<(), WorkspaceError> {
        self.with_open_folders(|targets, open| {
            let kinds = targets.kinds();
            targets.remove_links(&kinds)?;
            targets.remove_files(&kinds)?;
            targets.remove_empty_folders(&kinds)?;
            targets.apply_rest(open)
        })
    }

    /// Calls `apply` while the owner may write to all folders above the paths.
    fn with_open_folders(
        &self,
        apply: impl FnOnce(&TargetStates<'_>, &FolderModes) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        let open = self.open_folders()?;
        let changer = &self.changer.with_modes(open.clone());
        let done = apply(&TargetStates { changer, ..*self }, &open);
        self.close_folders(open).and(done)
    }

    /// Lets the owner write to the folders of all paths. Returns their previous modes.
    fn open_folders(&self) -> Result<FolderModes, WorkspaceError> {
        let parents: BTreeSet<&Path> = self.all.paths().filter_map(Path::parent).collect();
        let mut open = FolderModes::new();
        for path in parents {
            let Ok(stat) = self.workspace.stat(path) else {
                continue;
            };
            let folder =
                EntryKind::of(FileType::from_raw_mode(stat.st_mode)) == EntryKind::Directory;
            if folder && stat.st_mode & WRITE_BITS != WRITE_BITS {
                self.workspace.set_bits(path, stat.st_mode | WRITE_BITS)?;
                open.insert(path.to_owned(), stat.st_mode & 0o7777);
            }
        }
        Ok(open)
    }

    /// Restores the modes of folders, except those that have a target.
    fn close_folders(&self, open: FolderModes) -> Result<(), WorkspaceError> {
        for (path, mode) in open.into_iter().rev() {
            let stays = !self.all.contains(&path);
            if stays
                && self
                    .workspace
                    .look(&path)
                    .is_some_and(|(kind, _)| kind == EntryKind::Directory)
            {
                self.workspace.set_bits(&path, mode)?;
            }
        }
        Ok(())
    }

    fn apply_at_once(&self, kinds: &EntryKinds, open: &FolderModes) -> Result<(), WorkspaceError> {
        self.remove_links(kinds)?;
        let in_the_way = |(target, kind): (Cow<'_, TargetState>, Option<EntryKind>)| match &*target
        {
            TargetState::File { .. } => kind == Some(EntryKind::Directory),
            TargetState::Folder(_) | TargetState::Link(_) => kind == Some(EntryKind::File),
            TargetState::Nothing => false,
        };
        let mut each = self.each_with(kinds);
        if each.any(|(_, target, kind)| in_the_way((target, kind))) {
            self.apply_deletes_first(kinds, open)
        } else {
            let modes = self.make_folders(open)?;
            let mut together = self.deletes(kinds)?;
            together.extend(self.writes()?);
            self.change(&together)?;
            self.remove_empty_folders(kinds)?;
            self.finish(modes)
        }
    }

    fn apply_deletes_first(
        &self,
        kinds: &EntryKinds,
        open: &FolderModes,
    ) -> Result<(), WorkspaceError> {
        self.change(&self.deletes(kinds)?)?;
        self.remove_empty_folders(kinds)?;
        self.apply_rest(open)
    }

    /// Creates folders, files and links.
    fn apply_rest(&self, open: &FolderModes) -> Result<(), WorkspaceError> {
        let modes = self.make_folders(open)?;
        self.change(&self.writes()?)?;
        self.import()?;
        self.finish(modes)
    }

    /// Removes the files whose target is not a file.
    fn remove_files(&self, kinds: &EntryKinds) -> Result<(), WorkspaceError> {
        let removed = || {
            self.each_with(kinds).filter_map(|(path, target, kind)| {
                let stays =
                    matches!(*target, TargetState::File { .. }) || kind != Some(EntryKind::File);
                (!stays).then_some(path)
            })
        };
        let unknown = removed().find(|path| self.all.stamp(path).is_none());
        if let Some(path) = unknown {
            return Err(WorkspaceError::Changed(path.to_string_lossy().into_owned()));
        }
        let with_stamp = |path: &'a Path| {
            let expected = self.all.stamp(path)?;
            Some(FileRemoval { path, expected })
        };
        let mut files = removed().filter_map(with_stamp).peekable();
        while files.peek().is_some() {
            self.all.check_time()?;
            let some: Vec<FileRemoval<'_>> = files.by_ref().take(MAX_BATCH).collect();
            self.changer.remove_files(&some)?;
        }
        Ok(())
    }

    /// Returns all paths with their targets, and what exists there.
    fn each_with(
        &self,
        kinds: &EntryKinds,
    ) -> impl Iterator<Item = (&'a Path, Cow<'a, TargetState>, Option<EntryKind>)> {
        let each = self.all.each().zip(kinds);
        each.map(|((path, target), kind)| (path, target, *kind))
    }

    /// Deletes links, files and then empty folders, except paths whose target is a file.
    ///
    /// # Errors
    /// Something cannot be deleted, or differs from its state when compared.
    pub(super) fn delete_files(&self) -> Result<(), WorkspaceError> {
        let kinds = self.kinds();
        for (path, kind) in self.all.paths().zip(&kinds) {
            if *kind == Some(EntryKind::Link) {
                let place = self.workspace.real_place(path)?;
                self.changer.remove(&place, false)?;
            }
        }
        self.change(&self.deletes(&kinds)?)
    }

    /// Removes the empty folders whose target is not a folder, innermost first.
    ///
    /// # Errors
    /// One cannot be removed.
    pub(super) fn delete_empty_folders(&self) -> Result<(), WorkspaceError> {
        self.remove_empty_folders(&self.kinds())
    }

    fn kinds(&self) -> Vec<Option<EntryKind>> {
        let mut stat = self.workspace.stat_near();
        let kind = |stat: Stat| EntryKind::of(FileType::from_raw_mode(stat.st_mode));
        let each = self.all.paths();
        each.map(|path| stat(path).map(kind)).collect()
    }

    /// Removes what is neither a file nor a folder, unless it already matches its target.
    fn remove_links(&self, kinds: &EntryKinds) -> Result<(), WorkspaceError> {
        for (path, target, kind) in self.each_with(kinds) {
            let removed = match kind {
                Some(EntryKind::Link) => !self.link_matches(path, &target),
                Some(EntryKind::Pipe | EntryKind::Socket | EntryKind::Device) => true,
                Some(EntryKind::File | EntryKind::Directory) | None => false,
            };
            if removed {
                self.all.check_time()?;
                let place = self.workspace.real_place(path)?;
                self.changer.remove(&place, false)?;
            }
        }
        Ok(())
    }

    /// Creates the missing folders before their content. Returns the modes to set at the end.
    fn make_folders(
        &self,
        open: &FolderModes,
    ) -> Result<Vec<(&'a Path, Option<u32>)>, WorkspaceError> {
        let mut modes = Vec::new();
        for (path, target) in self.all.each() {
            let TargetState::Folder(mode) = *target else {
                continue;
            };
            let opened = open.get(path).copied();
            let now = state_at(self.workspace, path, &mut |_| Ok(None))?;
            if let Some(EntryState::Folder { mode: now }) = now {
                if opened.is_some() || mode.is_some() && now != mode {
                    modes.push((path, mode.or(opened)));
                }
            } else {
                self.all.check_time()?;
                let place = self.workspace.real_place(path)?;
                self.changer.make_folder(&place, mode)?;
                modes.push((path, mode));
            }
        }
        Ok(modes)
    }

    /// Returns the files to delete.
    fn deletes(&self, kinds: &EntryKinds) -> Result<Vec<FileStep>, WorkspaceError> {
        let mut steps = Vec::new();
        for (path, target, kind) in self.each_with(kinds) {
            if matches!(*target, TargetState::File { .. }) || kind != Some(EntryKind::File) {
                continue;
            }
            steps.push(FileStep {
                place: self.workspace.real_place(path)?,
                bytes: None,
                mode: None,
            });
        }
        Ok(steps)
    }

    /// Returns the files whose content is in memory.
    fn writes(&self) -> Result<Vec<FileStep>, WorkspaceError> {
        let mut steps = Vec::new();
        for (path, target) in self.all.each() {
            if let TargetState::File { content, mode } = &*target
                && let ContentSource::Bytes(bytes) = content
            {
                steps.push(FileStep {
                    place: self.workspace.real_place(path)?,
                    bytes: Some(Arc::clone(bytes)),
                    mode: *mode,
                });
            }
        }
        Ok(steps)
    }

    /// Changes files in atomic sets.
    fn change(&self, steps: &[FileStep]) -> Result<(), WorkspaceError> {
        let mut rest = steps;
        while !rest.is_empty() {
            self.all.check_time()?;
            let (now, others) = rest.split_at(batch_len(rest));
            let changes: Vec<_> = now.iter().map(|step| step.change(self.all)).collect();
            self.changer.change(&changes)?;
            rest = others;
        }
        Ok(())
    }

    /// Imports the files from outside, and sets the modes of files whose content does not change.
    fn import(&self) -> Result<(), WorkspaceError> {
        for (path, target) in self.all.each() {
            if let TargetState::File {
                content: ContentSource::Unchanged,
                mode,
            } = *target
            {
                self.all.check_time()?;
                let (place, expected) = (self.workspace.real_place(path)?, self.all.stamp(path));
                let mode = mode.unwrap_or(NEW_MODE);
                self.changer
                    .set_file_mode(&place, mode, expected.as_ref())?;
            }
        }
        let files = self.all.each();
        let files = files.filter_map(|(path, target)| outside_file(path, target));
        let mut files = files.peekable();
        while files.peek().is_some() {
            self.all.check_time()?;
            let some: Vec<_> = files.by_ref().take(MAX_BATCH).collect();
            let imports = some.iter().map(|(path, file, mode)| Import {
                path,
                file,
                mode: *mode,
                expected: self.all.stamp(path),
            });
            let imports: Vec<Import<'_>> = imports.collect();
            self.changer.import(&imports)?;
        }
        Ok(())
    }

    fn remove_empty_folders(&self, kinds: &EntryKinds) -> Result<(), WorkspaceError> {
        let folders = self.each_with(kinds).filter(|(_, target, kind)| {
            *kind == Some(EntryKind::Directory) && !matches!(**target, TargetState::Folder(_))
        });
        let folders: Vec<&Path> = folders.map(|(path, ..)| path).collect();
        for path in folders.into_iter().rev() {
            self.all.check_time()?;
            let place = self.workspace.real_place(path)?;
            if place.kind() == Some(EntryKind::Directory) && self.workspace.is_empty(&place) {
                self.changer.remove(&place, false)?;
            }
        }
        Ok(())
    }

    /// Creates the links, then sets the modes of folders.
    fn finish(&self, modes: Vec<(&Path, Option<u32>)>) -> Result<(), WorkspaceError> {
        for (path, target) in self.all.each() {
            if let TargetState::Link(text) = &*target
                && !self.link_matches(path, &target)
            {
                self.all.check_time()?;
                let place = self.workspace.real_place(path)?;
                self.changer.make_link(&place, text)?;
            }
        }
        for (path, mode) in modes.into_iter().rev() {
            let place = self.workspace.real_place(path)?;
            self.changer.set_mode(&place, mode)?;
        }
        Ok(())
    }

    /// Whether a link already has its target text.
    fn link_matches(&self, path: &Path, target: &TargetState) -> bool {
        let now = state_at(self.workspace, path, &mut |_| Ok(None));
        match (target, now) {
            (TargetState::Link(text), Ok(Some(EntryState::Link { target }))) => target.0 == *text,
            _ => false,
        }
    }
}

/// Returns the path, the file and its permission bits if a file from outside is the target.
fn outside_file<'a>(
    path: &'a Path,
    target: Cow<'a, TargetState>,
) -> Option<(&'a Path, OutsideFile, u32)> {
    match target.into_owned() {
        TargetState::File {
            content: ContentSource::Outside(file),
            mode,
        } => Some((path, file, mode.unwrap_or(NEW_MODE))),
        _ => None,
    }
}

/// Returns how many files at the start of the list go into one set.
fn batch_len(steps: &[FileStep]) -> usize {
    let mut folders = HashSet::new();
    let first = steps.iter().take(MAX_BATCH);
    let first = first.map(|step| step.place.real().parent());
    let fitting = first.take_while(|folder| {
        folders.contains(folder) || (folders.len() < MAX_FOLDERS && folders.insert(*folder))
    });
    fitting.count()
}

/// A file to delete, or to write from memory.
struct FileStep {
    place: ResolvedPath,
    bytes: Option<Arc<[u8]>>,
    mode: Option<u32>,
}

impl FileStep {
    fn change(&self, all: &dyn TargetList) -> FileUpdate<'_> {
        let stamp = || all.stamp(self.place.real());
        FileUpdate {
            place: &self.place,
            content: self.bytes.as_deref(),
            expected: self.place.kind().and_then(|_| stamp()),
            like: None,
            mode: self.mode,
        }
    }
}

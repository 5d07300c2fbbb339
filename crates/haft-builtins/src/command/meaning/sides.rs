//! `ChangeSides`: the files of a workspace before and after a change set, whichever of the two the workspace holds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::{ChangeList, ViewChange};
use haft::workspace::{EntryKind, OutsideRepository, Workspace};

use crate::lexical::normalize;

/// Before or after the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before them.
    Before,
    /// After them.
    After,
}

/// A changed path with what was and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange<'a> {
    /// The path below the root.
    pub path: &'a Path,
    /// What was there; `None` for something new.
    pub before: Option<Cow<'a, EntryState>>,
    /// What is there; `None` for something deleted.
    pub after: Option<Cow<'a, EntryState>>,
}

impl<'a> From<ViewChange<'a>> for PathChange<'a> {
    fn from(change: ViewChange<'a>) -> Self {
        Self {
            path: change.path,
            before: change.before.map(Cow::Owned),
            after: change.after.map(Cow::Owned),
        }
    }
}

impl PathChange<'_> {
    /// Returns what is there on one side.
    pub fn state(&self, side: Side) -> Option<&EntryState> {
        match side {
            Side::Before => self.before.as_deref(),
            Side::After => self.after.as_deref(),
        }
    }
}

/// The content of a file, read in parts or as a whole.
#[derive(Debug)]
pub enum PathContent {
    /// An open file.
    File(File),
    /// Bytes in memory.
    Bytes(Vec<u8>),
}

impl PathContent {
    /// Returns the size in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.metadata().map_or(0, |meta| meta.len()),
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Reads at most `bytes.len()` bytes from an offset and returns how many there were.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(bytes, offset),
            Self::Bytes(all) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
                let rest = &all[from..];
                let count = rest.len().min(bytes.len());
                bytes[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }

    /// Reads exactly `count` bytes from an offset.
    pub(super) fn exact_at(&self, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let mut at = 0;
        while at < count {
            match self.read_at(&mut bytes[at..], offset + at as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => at += more,
            }
        }
        Ok(bytes)
    }

    /// Returns the whole content; `None` if it is longer than `most` bytes or cannot be read.
    pub(in crate::command) fn whole(self, most: u64) -> Option<Vec<u8>> {
        if self.len() > most {
            return None;
        }
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::File(file) => {
                let mut bytes = Vec::new();
                io::Read::read_to_end(&mut io::Read::take(file, most + 1), &mut bytes).ok()?;
                (bytes.len() as u64 <= most).then_some(bytes)
            }
        }
    }
}

/// Opens the content of a changed path on one side.
type ContentOpener<'a> = dyn Fn(&PathChange<'_>, Side) -> io::Result<PathContent> + 'a;

/// The changes of a set, sorted by path.
enum SortedChanges<'a> {
    /// Those of any set.
    Whole(Vec<PathChange<'a>>),
    /// Those of a command: there may be very many, so each is read when it is needed.
    OfCommand(&'a ChangeList),
}

impl SortedChanges<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Whole(changes) => changes.len(),
            Self::OfCommand(changes) => changes.len(),
        }
    }

    fn get(&self, at: usize) -> Option<PathChange<'_>> {
        match self {
            Self::Whole(changes) => changes.get(at).map(|change| PathChange {
                path: change.path,
                before: change.before.as_deref().map(Cow::Borrowed),
                after: change.after.as_deref().map(Cow::Borrowed),
            }),
            Self::OfCommand(changes) => changes.get(at).map(PathChange::from),
        }
    }

    /// Returns the number of the change at a path.
    fn position(&self, path: &Path) -> Option<usize> {
        match self {
            Self::Whole(changes) => changes
                .binary_search_by_key(&path, |change| change.path)
                .ok(),
            Self::OfCommand(changes) => changes.position(path),
        }
    }

    /// Returns the number of the first change that is not before a path.
    fn first_from(&self, path: &Path) -> usize {
        match self {
            Self::Whole(changes) => changes.partition_point(|change| change.path < path),
            Self::OfCommand(changes) => changes.first_from(path),
        }
    }
}

/// The files of a workspace before and after a change set. Paths that are not in the set are read from the workspace.
pub struct ChangeSides<'a> {
    workspace: &'a Workspace,
    changes: SortedChanges<'a>,
    open: Box<ContentOpener<'a>>,
}

impl fmt::Debug for ChangeSides<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<_> = self.changes().collect();
        f.debug_struct("ChangeSides")
            .field("changes", &changes)
            .finish_non_exhaustive()
    }
}

impl<'a> ChangeSides<'a> {
    /// Creates the sides of a change set; `open` reads the changed files.
    pub fn new(
        workspace: &'a Workspace,
        changes: impl IntoIterator<Item = PathChange<'a>>,
        open: impl Fn(&PathChange<'_>, Side) -> io::Result<PathContent> + 'a,
    ) -> Self {
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|change| change.path);
        Self {
            workspace,
            changes: SortedChanges::Whole(changes),
            open: Box::new(open),
        }
    }

    /// Creates the sides of a command's changes; `open` reads the changed files.
    pub(in crate::command) fn of_command(
        workspace: &'a Workspace,
        changes: &'a ChangeList,
        open: impl Fn(&PathChange<'_>, Side) -> io::Result<PathContent> + 'a,
    ) -> Self {
        Self {
            workspace,
            changes: SortedChanges::OfCommand(changes),
            open: Box::new(open),
        }
    }

    /// Returns the path below the root that a text in a folder names; `None` if it lies outside.
    pub(super) fn named_in(&self, folder: &Path, to: &str) -> Option<PathBuf> {
        let whole = normalize(&self.workspace.host_path(folder).join(to));
        self.workspace.below(&whole)
    }

    /// Returns the path on this machine of a path below the root.
    pub(super) fn host_path(&self, path: &Path) -> PathBuf {
        self.workspace.host_path(path)
    }

    /// Returns the workspace's path within the work tree of its repository: empty unless that lies above.
    pub(super) fn prefix(&self) -> &Path {
        let outside = self.workspace.repository();
        outside.map_or(Path::new(""), OutsideRepository::prefix)
    }

    /// Returns the part of the workspace's repository that belongs to its work tree.
    pub(super) fn own_part(&self) -> PathBuf {
        let outside = self.workspace.repository();
        outside.map_or_else(|| PathBuf::from(".git"), OutsideRepository::own_part)
    }

    /// Returns the changes, sorted by path.
    pub(super) fn changes(&self) -> impl Iterator<Item = PathChange<'_>> {
        self.changes_from(0)
    }

    fn changes_from(&self, first: usize) -> impl Iterator<Item = PathChange<'_>> {
        (first..self.changes.len()).filter_map(|at| self.changes.get(at))
    }

    /// Returns the change of a path.
    fn change(&self, path: &Path) -> Option<PathChange<'_>> {
        self.changes.get(self.changes.position(path)?)
    }

    /// Returns true if something changes at a path.
    pub(super) fn is_changed(&self, path: &Path) -> bool {
        self.changes.position(path).is_some()
    }

    /// Returns the changes at and below a folder.
    pub(super) fn below<'s>(&'s self, folder: &'s Path) -> impl Iterator<Item = PathChange<'s>> {
        let from = self.changes_from(self.changes.first_from(folder));
        from.take_while(move |change| change.path.starts_with(folder))
    }

    /// Opens a file on one side. Links are not followed.
    pub(super) fn open(&self, side: Side, path: &Path) -> Option<PathContent> {
        if let Some(change) = self.change(path) {
            return match change.state(side)? {
                EntryState::File { .. } => (self.open)(&change, side).ok(),
                _ => None,
            };
        }
        if !self.has_parents(side, path) {
            return None;
        }
        Some(PathContent::File(self.workspace.open_file(path).ok()?.file))
    }

    /// Returns the whole content of a file; `None` if there is none or it is longer than `most` bytes.
    pub(super) fn read(&self, side: Side, path: &Path, most: u64) -> Option<Vec<u8>> {
        self.open(side, path)?.whole(most)
    }

    /// Returns what is at a path; `None` if nothing is.
    pub(super) fn kind(&self, side: Side, path: &Path) -> Option<EntryKind> {
        if let Some(change) = self.change(path) {
            return change.state(side).map(kind_of);
        }
        let found = self.workspace.look(path).map(|(kind, _)| kind);
        found.filter(|_| self.has_parents(side, path))
    }

    /// Returns the names in a folder with their kinds; `None` if there are more than `most`.
    pub(super) fn names(&self, side: Side, folder: &Path, most: usize) -> Option<FolderNames> {
        let mut names = FolderNames::new();
        let mut too_many = false;
        if self.has_parents(side, &folder.join("x"))
            && let Ok(open) = self.workspace.folder(folder)
        {
            let listed = open.entries(|name, kind| {
                too_many |= names.len() >= most;
                if !too_many {
                    names.insert(name.to_owned(), kind);
                }
            });
            listed.ok()?;
        }
        for change in self.below(folder) {
            if change.path.parent() != Some(folder) {
                continue;
            }
            let Some(name) = change.path.file_name() else {
                continue;
            };
            match change.state(side) {
                Some(state) => names.insert(name.to_owned(), kind_of(state)),
                None => names.remove(name),
            };
        }
        (!too_many && names.len() <= most).then_some(names)
    }

    /// Returns true unless a folder above the path is missing on this side.
    fn has_parents(&self, side: Side, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        above.all(|folder| match self.change(folder) {
            Some(change) => matches!(change.state(side), Some(EntryState::Folder { .. })),
            None => true,
        })
    }
}

/// The names in a folder with their kinds.
pub(super) type FolderNames = BTreeMap<OsString, EntryKind>;

fn kind_of(state: &EntryState) -> EntryKind {
    match state {
        EntryState::File { .. } => EntryKind::File,
        EntryState::Folder { .. } => EntryKind::Directory,
        EntryState::Link { .. } => EntryKind::Link,
        EntryState::Other => EntryKind::Device,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use haft::change::collect::{CollectedChanges, ViewCreation};

    use super::*;

    #[test]
    fn changes_of_a_command_when_read_one_by_one_are_those_of_the_set_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("work/a/changed", "1"),
            ("work/a/other", "1"),
            ("work/a-b", "4"),
            ("work/b/kept", "1"),
            ("upper/a/changed", "22"),
            ("upper/a/new", "3"),
            ("upper/a-b", "5"),
            ("upper/c/d/new", "3"),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        std::os::unix::fs::symlink("changed", at("upper/a/link")).unwrap();
        let (workspace, upper) = (Workspace::open(&at("work")).unwrap(), at("upper"));
        let since = ViewCreation::of(&upper).unwrap();
        let collected = CollectedChanges::collect(&workspace, &upper, since).unwrap();
        let list = &collected.changes;
        assert_eq!(list.len(), 7);
        let open = |_: &PathChange<'_>, _| Err(io::ErrorKind::NotFound.into());
        let whole = ChangeSides::new(&workspace, list.iter().map(PathChange::from), open);
        let single = ChangeSides::of_command(&workspace, list, open);
        assert!(single.changes().eq(list.iter().map(PathChange::from)));
        for path in ["", "a", "a/changed", "a/none", "a-b", "b", "c", "c/d", "z"] {
            let path = Path::new(path);
            assert!(whole.below(path).eq(single.below(path)), "{path:?}");
            assert_eq!(whole.change(path), single.change(path));
            for side in [Side::Before, Side::After] {
                assert_eq!(whole.kind(side, path), single.kind(side, path));
                let names = |sides: &ChangeSides<'_>| sides.names(side, path, 10);
                assert_eq!(names(&whole), names(&single), "{path:?}");
            }
        }
    }
}

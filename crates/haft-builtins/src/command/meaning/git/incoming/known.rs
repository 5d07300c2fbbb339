//! `KnownFiles`: what the user has already, so that a commit which records it brings in nothing new.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use haft::workspace::EntryKind;

use super::super::entries::MODE_LINK;
use super::super::history::exclusive;
use super::super::id::{ID_HASH, ObjectId};
use super::super::object::{ObjectKind, id_of};
use super::super::store::ObjectDatabase;
use super::super::tree::TreeFile;
use super::pointers::Pointers;
use crate::command::index::{IndexRecords, MAX_INDEX, recorded_in};
use crate::command::meaning::sides::{ChangeSides, PathContent, Side};

/// Maximum number of commits whose trees are looked into.
const MAX_COMMITS: usize = 500;
/// Maximum size of a file that is compared, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// The files that the user has.
pub(super) struct KnownFiles<'s> {
    sides: &'s ChangeSides<'s>,
    store: ObjectDatabase<'s>,
    pointers: Pointers,
    trees: OnceCell<Vec<ObjectId>>,
    index: OnceCell<IndexRecords>,
}

impl<'s> KnownFiles<'s> {
    pub(super) fn new(
        sides: &'s ChangeSides<'s>,
        store: ObjectDatabase<'s>,
        pointers: Pointers,
    ) -> Self {
        Self {
            sides,
            store,
            pointers,
            trees: OnceCell::new(),
            index: OnceCell::new(),
        }
    }

    /// Returns true if the user has this file at this path of a tree, or at the path of a work tree; `None` is no file.
    pub(super) fn has(&self, path: &[u8], file: Option<TreeFile>, place: Option<&Path>) -> bool {
        // Judged like the file itself, also if it is one of another branch.
        if place.is_some_and(|place| self.sides.is_changed(place)) {
            return false;
        }
        let Some(file) = file else {
            return place.is_some_and(|place| self.sides.kind(Side::Before, place).is_none());
        };
        place.is_some_and(|place| self.is_in_work_tree(place, file)) || self.is_recorded(path, file)
    }

    /// Returns true if the index or a branch has this file.
    pub(super) fn is_recorded(&self, path: &[u8], file: TreeFile) -> bool {
        self.is_in_index(path, file) || self.is_in_trees(path, file)
    }

    fn is_in_work_tree(&self, place: &Path, file: TreeFile) -> bool {
        let (mode, id) = file;
        let content = match self.sides.kind(Side::Before, place) {
            Some(EntryKind::Link) if mode == MODE_LINK => {
                let target = self.sides.host_path(place).read_link();
                target.ok().map(|to| to.as_os_str().as_bytes().to_vec())
            }
            Some(EntryKind::File) if mode != MODE_LINK => {
                let open = self.sides.open(Side::Before, place);
                open.filter(|open| is_executable(open) == (mode & 0o100 != 0))
                    .and_then(|open| open.whole(MAX_FILE))
            }
            _ => None,
        };
        content.is_some_and(|content| id_of(ObjectKind::Blob, &content) == id)
    }

    fn is_in_index(&self, path: &[u8], file: TreeFile) -> bool {
        let index = self.index.get_or_init(|| {
            let place = if self.store.repository() == Path::new(".git") {
                self.sides.own_part()
            } else {
                self.store.repository().to_owned()
            };
            let bytes = self
                .sides
                .read(Side::Before, &place.join("index"), MAX_INDEX);
            let read = bytes.and_then(|bytes| recorded_in(&bytes, ID_HASH));
            read.unwrap_or_default()
        });
        let record = index.get(path);
        record.is_some_and(|record| {
            (record.mode, Some(file.1)) == (file.0, ObjectId::from_bytes(record.object()))
        })
    }

    fn is_in_trees(&self, path: &[u8], file: TreeFile) -> bool {
        let trees = self.trees.get_or_init(|| self.find_trees());
        trees.iter().any(|tree| {
            let entry = self.store.lookup(tree, path).ok().flatten();
            entry.is_some_and(|entry| (entry.mode, entry.id) == file)
        })
    }

    /// Returns the trees at the ends of branches as they were, and of commits that go: a rebase makes those anew.
    fn find_trees(&self) -> Vec<ObjectId> {
        let Pointers {
            ends, new, moved, ..
        } = &self.pointers;
        let ends = ends.iter().take(MAX_COMMITS);
        let mut trees: BTreeSet<ObjectId> = ends
            .filter_map(|id| Some(self.store.peel(id).ok()?.0.tree))
            .collect();
        let new: HashSet<ObjectId> = new.iter().map(|one| one.id).collect();
        let new: Vec<ObjectId> = new.into_iter().collect();
        let first: Vec<ObjectId> = moved.iter().copied().take(MAX_COMMITS).collect();
        let gone = exclusive(&self.store, &first, &new).commits;
        trees.extend(gone.iter().take(MAX_COMMITS).map(|commit| commit.tree));
        trees.into_iter().collect()
    }
}

fn is_executable(open: &PathContent) -> bool {
    match open {
        PathContent::File(file) => {
            let meta = file.metadata();
            meta.is_ok_and(|meta| meta.permissions().mode() & 0o100 != 0)
        }
        PathContent::Bytes(_) => false,
    }
}

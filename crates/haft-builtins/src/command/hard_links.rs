//! `HardLinks`: the other names of changed files by hard links.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::{ChangeList, ViewChange};

/// Maximum number of workspace entries to search.
const MAX_ENTRIES: usize = 1_000_000;

/// A file, by device and inode.
type FileId = (u64, u64);

/// The names of changed files that have several.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    files: HashMap<PathBuf, FileId>,
    names: HashMap<FileId, Vec<PathBuf>>,
    /// Whether the workspace has more entries than were searched.
    pub(super) is_cut: bool,
}

impl HardLinks {
    /// Searches a workspace for the names of the files that were changed, if any of them has several.
    pub(super) fn of_changes(root: &Path, changes: &ChangeList) -> Self {
        let file = |change: ViewChange<'_>| -> Option<(PathBuf, FileId)> {
            let path = root.join(change.path);
            let before = matches!(change.before, Some(EntryState::File { .. }));
            let id = before.then(|| id(&path.symlink_metadata().ok()?)).flatten();
            Some((change.path.to_owned(), id?))
        };
        let mut found = Self {
            files: changes.iter().filter_map(file).collect(),
            ..Self::default()
        };
        if !found.files.is_empty() {
            found.search(root);
        }
        found
    }

    /// Returns the other names of a changed file.
    pub(super) fn names_of(&self, path: &Path) -> impl Iterator<Item = &PathBuf> {
        let file = self.files.get(path);
        let names = file.and_then(|file| self.names.get(file));
        let names = names.into_iter().flatten();
        names.filter(move |name| *name != path)
    }

    fn search(&mut self, root: &Path) {
        let wanted: HashSet<FileId> = self.files.values().copied().collect();
        let (mut todo, mut left) = (vec![PathBuf::new()], MAX_ENTRIES);
        while let Some(folder) = todo.pop() {
            // Nothing can be opened by a name in a folder that cannot be read, except by one that is known.
            let Ok(entries) = fs::read_dir(root.join(&folder)) else {
                continue;
            };
            for entry in entries.flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    self.is_cut = true;
                    return;
                };
                left = rest;
                let Ok(meta) = entry.metadata() else {
                    continue;
                };
                if meta.is_dir() {
                    todo.push(folder.join(entry.file_name()));
                } else if let Some(id) = id(&meta)
                    && wanted.contains(&id)
                {
                    let names = self.names.entry(id).or_default();
                    names.push(folder.join(entry.file_name()));
                }
            }
        }
    }
}

/// Returns the identity of a file that has several names.
fn id(meta: &Metadata) -> Option<FileId> {
    (meta.is_file() && meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
}

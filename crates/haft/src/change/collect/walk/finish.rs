//! How the changes of a walk affect each other: folders that must remain, and conflicts that concern other changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::change::State;
use crate::change::collect::walk::{CHANGED, Walk};
use crate::change::collect::{Dropped, ViewChange};

const HOLDS_CHANGED: &str = "it holds a file that was changed while the command ran";
const BELOW_CHANGED: &str = "the folder above it was changed while the command ran";
const HOLDS_DROPPED: &str = "it holds something that is not deleted";

impl Walk<'_> {
    /// Returns the changes, sorted by path, and what is not applied. A folder with an entry that remains is not deleted either; a
    /// conflict also concerns the folders that would be deleted with it, and the entries below it.
    pub(in crate::change::collect) fn finish(mut self) -> (Vec<ViewChange>, Vec<Dropped>) {
        self.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.mark_moved();
        self.find_vanished();
        let (mut found, mut dropped) = (self.found, self.dropped);
        let mut remaining = BTreeSet::new();
        for path in &self.stay {
            for folder in path.ancestors().skip(1) {
                if at(&found, folder).is_some_and(|at| is_folder_gone(&found[at])) {
                    remaining.insert(folder.to_owned());
                }
            }
        }
        found.retain(|change| !remaining.contains(&change.path));
        let why = HOLDS_DROPPED;
        dropped.extend(remaining.into_iter().map(|path| Dropped { path, why }));
        for conflict in 0..found.len() {
            if found[conflict].conflict.is_none() {
                continue;
            }
            let above: Vec<usize> = {
                let above = found[conflict].path.ancestors().skip(1);
                above.filter_map(|folder| at(&found, folder)).collect()
            };
            for folder in above {
                if is_folder_gone(&found[folder]) {
                    found[folder].conflict.get_or_insert(HOLDS_CHANGED);
                }
            }
        }
        let mut above: Option<PathBuf> = None;
        for change in &mut found {
            if above
                .as_ref()
                .is_some_and(|above| change.path.starts_with(above))
            {
                change.conflict.get_or_insert(BELOW_CHANGED);
            } else if change.conflict.is_some() && is_folder_made(change) {
                above = Some(change.path.clone());
            }
        }
        (found, dropped)
    }

    /// Marks all changes at and below moved folders as conflicts.
    fn mark_moved(&mut self) {
        for folder in &self.moved {
            let from = self.found.partition_point(|change| change.path < *folder);
            let below = self.found.iter_mut().skip(from);
            for change in below.take_while(|change| change.path.starts_with(folder)) {
                change.conflict = Some(CHANGED);
            }
        }
    }
}

/// Returns the index of the change at a path.
pub(super) fn at(sorted: &[ViewChange], path: &Path) -> Option<usize> {
    sorted
        .binary_search_by(|change| change.path.as_path().cmp(path))
        .ok()
}

/// Whether a folder would be deleted or replaced.
fn is_folder_gone(change: &ViewChange) -> bool {
    is_folder(change.before.as_ref()) && !is_folder(change.after.as_ref())
}

/// Whether a folder would be created where none is.
fn is_folder_made(change: &ViewChange) -> bool {
    !is_folder(change.before.as_ref()) && is_folder(change.after.as_ref())
}

fn is_folder(state: Option<&State>) -> bool {
    matches!(state, Some(State::Folder { .. }))
}

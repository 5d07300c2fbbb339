//! How the changes of a walk affect each other: folders that must remain, and conflicts that concern other changes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::change::EntryState;
use crate::change::collect::walk::{CHANGED, UpperWalk};
use crate::change::collect::{ChangeList, DroppedEntry, ViewChange};

const HOLDS_CHANGED: &str = "it holds a file that was changed while the command ran";
const BELOW_CHANGED: &str = "the folder above it was changed while the command ran";
const HOLDS_DROPPED: &str = "it holds something that is not deleted";

impl UpperWalk<'_> {
    /// Returns the changes, sorted by path, and what is not applied. A folder with an entry that remains is not deleted either; a
    /// conflict also concerns the folders that would be deleted with it, and the entries below it.
    pub(in crate::change::collect) fn finish(mut self) -> (ChangeList, Vec<DroppedEntry>) {
        self.found.sort();
        self.mark_moved();
        self.find_vanished();
        let (mut found, mut dropped) = (self.found, self.dropped);
        let mut remaining = BTreeSet::new();
        for path in &self.stay {
            for folder in path.ancestors().skip(1) {
                let change = found.position(folder).and_then(|at| found.get(at));
                if change.is_some_and(|change| is_folder_gone(&change)) {
                    remaining.insert(folder.to_owned());
                }
            }
        }
        found.retain(|path| !remaining.contains(path));
        let why = HOLDS_DROPPED;
        dropped.extend(remaining.into_iter().map(|path| DroppedEntry { path, why }));
        mark_folders_above(&mut found);
        mark_below(&mut found);
        (found, dropped)
    }

    /// Marks all changes at and below moved folders as conflicts.
    fn mark_moved(&mut self) {
        for folder in &self.moved {
            for at in self.found.first_from(folder)..self.found.len() {
                if !self.found.path(at).starts_with(folder) {
                    break;
                }
                self.found.set_conflict(at, CHANGED);
            }
        }
    }
}

/// Marks the folders that would be deleted with a conflict.
fn mark_folders_above(found: &mut ChangeList) {
    for conflict in 0..found.len() {
        if found.conflict(conflict).is_none() {
            continue;
        }
        let above = found.path(conflict).ancestors().skip(1);
        let above = above.filter_map(|folder| found.position(folder));
        let gone = |at: &usize| found.get(*at).is_some_and(|change| is_folder_gone(&change));
        let gone: Vec<usize> = above.filter(gone).collect();
        for folder in gone {
            if found.conflict(folder).is_none() {
                found.set_conflict(folder, HOLDS_CHANGED);
            }
        }
    }
}

/// Marks the entries below a folder that is a conflict.
fn mark_below(found: &mut ChangeList) {
    let mut above: Option<PathBuf> = None;
    for at in 0..found.len() {
        let path = found.path(at);
        if above.as_ref().is_some_and(|above| path.starts_with(above)) {
            if found.conflict(at).is_none() {
                found.set_conflict(at, BELOW_CHANGED);
            }
        } else if found.conflict(at).is_some()
            && found.get(at).is_some_and(|change| is_folder_made(&change))
        {
            above = Some(path.to_owned());
        }
    }
}

/// Whether a folder would be deleted or replaced.
fn is_folder_gone(change: &ViewChange<'_>) -> bool {
    is_folder(change.before.as_ref()) && !is_folder(change.after.as_ref())
}

/// Whether a folder would be created where none is.
fn is_folder_made(change: &ViewChange<'_>) -> bool {
    !is_folder(change.before.as_ref()) && is_folder(change.after.as_ref())
}

fn is_folder(state: Option<&EntryState>) -> bool {
    matches!(state, Some(EntryState::Folder { .. }))
}

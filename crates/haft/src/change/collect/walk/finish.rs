//! How the changes of a walk affect each other: folders that must remain, and conflicts that concern other changes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::change::State;
use crate::change::collect::walk::{StampedChange, Walk};
use crate::change::collect::{Dropped, ViewChange};

const HOLDS_CHANGED: &str = "it holds a file that was changed while the command ran";
const BELOW_CHANGED: &str = "the folder above it was changed while the command ran";
const HOLDS_DROPPED: &str = "it holds something that is not deleted";

impl Walk<'_> {
    /// Returns the changes by path, and what is not applied. A folder with an entry that remains is not deleted either; a
    /// conflict also concerns the folders that would be deleted with it, and the entries below it.
    pub(in crate::change::collect) fn finish(
        mut self,
    ) -> (BTreeMap<PathBuf, StampedChange>, Vec<Dropped>) {
        self.find_vanished();
        let (mut found, mut dropped) = (self.found, self.dropped);
        for path in self.stay {
            for folder in path.ancestors().skip(1) {
                let goes = found
                    .get(folder)
                    .is_some_and(|found| is_folder_gone(&found.change));
                if goes && found.remove(folder).is_some() {
                    let (path, why) = (folder.to_owned(), HOLDS_DROPPED);
                    dropped.push(Dropped { path, why });
                }
            }
        }
        let conflicts = found
            .values()
            .filter(|found| found.change.conflict.is_some());
        let conflicts: Vec<PathBuf> = conflicts.map(|found| found.change.path.clone()).collect();
        for path in conflicts {
            for folder in path.ancestors().skip(1) {
                if let Some(found) = found.get_mut(folder)
                    && is_folder_gone(&found.change)
                {
                    found.change.conflict.get_or_insert(HOLDS_CHANGED);
                }
            }
        }
        let mut above: Option<PathBuf> = None;
        for (path, found) in &mut found {
            if above.as_ref().is_some_and(|above| path.starts_with(above)) {
                found.change.conflict.get_or_insert(BELOW_CHANGED);
            } else if found.change.conflict.is_some() && is_folder_made(&found.change) {
                above = Some(path.clone());
            }
        }
        (found, dropped)
    }
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

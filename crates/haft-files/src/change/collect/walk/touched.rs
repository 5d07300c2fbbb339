//! `TouchedEntries`: what a command left as it was, but for the time: it only touched it, or wrote it again with the same content.

use std::collections::HashSet;
use std::path::Path;

use crate::change::collect::walk::{OverlayEntry, UpperWalk};
use crate::change::collect::{
    ChangeList, CollectError, CollectedChanges, Stamps, ViewChange, ViewCreation,
};
use crate::change::net::ChangeKind;
use crate::change::{Changer, EntryState};
use crate::workspace::{EntryKind, FileStamp, is_git};

/// Maximum number of files and folders whose times are set. If there are more, none is set: some without the others would have an order
/// that the command did not leave.
pub const MAX_TOUCHED: usize = 50_000;

/// Files and folders with the content and permissions of those in the workspace, and another time. No time is a change: nothing here is in
/// the list of changes, and nobody is asked about it.
#[derive(Debug, Default)]
pub struct TouchedEntries {
    list: ChangeList,
    /// Whether there were more than [`MAX_TOUCHED`]; then there are none.
    is_cut: bool,
}

impl TouchedEntries {
    /// Returns them as changes that leave everything as it is, sorted by path.
    pub fn list(&self) -> &ChangeList {
        &self.list
    }

    /// Returns whether there were more than [`MAX_TOUCHED`], so that none is known.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns whether the command touched nothing.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && !self.is_cut
    }

    /// Sorts them, and leaves out the folders in which something changes: they get their time with that.
    pub(in crate::change::collect) fn beside(mut self, changes: &ChangeList) -> Self {
        let changing: HashSet<&Path> = changes.paths().filter_map(Path::parent).collect();
        self.list
            .retain(|path| !changing.contains(path) && changes.position(path).is_none());
        self.list.sort();
        self
    }

    fn add(&mut self, change: &ViewChange<'_>) -> Result<(), CollectError> {
        if self.list.len() == MAX_TOUCHED {
            self.list = ChangeList::default();
            self.is_cut = true;
        }
        if self.is_cut {
            return Ok(());
        }
        self.list.add(change)
    }
}

impl UpperWalk<'_> {
    /// Returns what was touched, in the order of the walk.
    pub(in crate::change::collect) fn take_touched(&mut self) -> TouchedEntries {
        std::mem::take(&mut self.touched)
    }

    /// Notes the time of a folder that is in both layers.
    pub(super) fn touch_folder(
        &mut self,
        entry: &OverlayEntry<'_>,
        below: Option<&OverlayEntry<'_>>,
    ) -> Result<(), CollectError> {
        let Some(below) = below.filter(|below| below.kind() == EntryKind::Directory) else {
            return Ok(());
        };
        let stamp = |entry: &OverlayEntry<'_>| Some(FileStamp::of(&entry.stat));
        let (lower, upper) = (stamp(below), stamp(entry));
        let state = EntryState::Folder {
            mode: Some(below.stat.st_mode & 0o7777),
        };
        self.touch(below, state, Stamps { lower, upper })
    }

    /// Notes the time of a file or folder whose content is the same in both layers, unless another program changed it since the view was
    /// created.
    pub(super) fn touch(
        &mut self,
        below: &OverlayEntry<'_>,
        state: EntryState,
        stamps: Stamps,
    ) -> Result<(), CollectError> {
        let (Some(lower), Some(upper)) = (&stamps.lower, &stamps.upper) else {
            return Ok(());
        };
        // Another name of the file, which may lie outside of the workspace, would get the time, too.
        let is_shared = below.kind() == EntryKind::File && lower.links() != 1;
        let is_later = ViewCreation::changed(&below.stat) > self.since;
        if lower.modified == upper.modified || is_shared || is_later || is_git(&below.path) {
            return Ok(());
        }
        self.touched.add(&ViewChange {
            path: &below.path,
            action: ChangeKind::Modify,
            before: Some(state.clone()),
            after: Some(state),
            conflict: None,
            stamps,
        })
    }
}

impl CollectedChanges {
    /// Returns what the command left as it was, but for the time.
    pub fn only_touched(&self) -> &TouchedEntries {
        &self.only_touched
    }

    /// Sets the times that the command left on what it touched and `select` takes. Returns how many were set: what is not in its collected
    /// state any more, or may not be changed, keeps its time.
    pub fn set_times(&self, changer: &Changer, select: &dyn Fn(&Path) -> bool) -> u64 {
        let mut set = 0;
        for change in self.only_touched.list.iter() {
            let (Some(lower), Some(upper)) = (&change.stamps.lower, &change.stamps.upper) else {
                continue;
            };
            if !select(change.path) {
                continue;
            }
            match changer.set_modified(change.path, upper, lower) {
                Ok(()) => set += 1,
                Err(error) => {
                    tracing::debug!(%error, path = %change.path.display(), "set the time of a file");
                }
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_when_there_are_too_many_are_none() {
        let mut entries = TouchedEntries::default();
        for number in 0..=MAX_TOUCHED {
            assert!(!entries.is_cut());
            let path = number.to_string();
            let change = ViewChange {
                path: Path::new(&path),
                action: ChangeKind::Modify,
                before: None,
                after: None,
                conflict: None,
                stamps: Stamps::default(),
            };
            entries.add(&change).unwrap();
        }
        let entries = entries.beside(&ChangeList::default());
        assert!(entries.is_cut() && !entries.is_empty());
        assert_eq!(entries.list().len(), 0);
    }
}

//! Changes in repositories that were shown before, and what git on the host has only stored in another way since.

use std::path::Path;

use crate::change::EntryState;
use crate::change::collect::git_states::is_store;
use crate::change::collect::walk::UpperWalk;
use crate::change::collect::{CollectError, Stamps, ViewChange};

impl UpperWalk<'_> {
    /// Adds a change as it was shown, if what is in the workspace still records the same. Returns whether nothing else is to be added.
    /// `stamps` are those of what is there now.
    pub(super) fn add_known(
        &mut self,
        path: &Path,
        after: &EntryState,
        now: Option<&EntryState>,
        stamps: Stamps,
    ) -> Result<bool, CollectError> {
        let Some(known) = self.known.filter(|known| !known.is_empty()) else {
            return Ok(false);
        };
        let Some(state) = known.unchanged(&mut self.values, path, now) else {
            // It was there when the others were shown.
            let is_folder = matches!(after, EntryState::Folder { .. });
            return Ok(is_folder && now.is_none() && is_store(path));
        };
        let change = ViewChange {
            path,
            action: state.action,
            before: state.before.clone(),
            after: Some(after.clone()),
            conflict: None,
            stamps: Stamps::default(),
        };
        self.add(change, stamps.lower, stamps.upper)?;
        Ok(true)
    }
}

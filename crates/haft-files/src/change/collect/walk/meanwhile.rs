//! Changes that other programs made in the workspace while a command worked on its view.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use crate::change::collect::walk::{OverlayEntry, UpperWalk, created_at, failed};
use crate::change::collect::{CollectError, ViewCreation};
use crate::workspace::EntryKind;

impl UpperWalk<'_> {
    /// Whether another program changed an entry of the workspace since the view was created. A folder changes with its
    /// content, which is compared itself: it counts only if it is new, where the file system knows that.
    pub(super) fn is_later(&self, entry: &OverlayEntry<'_>) -> Result<bool, CollectError> {
        if ViewCreation::changed(&entry.stat) <= self.since {
            return Ok(false);
        }
        if entry.kind() != EntryKind::Directory {
            return Ok(true);
        }
        let born = created_at(entry.folder.as_fd(), entry.name).map_err(entry.failed("look at"))?;
        Ok(born.is_some_and(|born| born > self.since))
    }

    /// Whether another program moved a folder to its place since the view was created. A moved folder keeps the time of its last
    /// new entry and updates its new parent's time; its content keeps all times.
    pub(super) fn is_moved(
        &self,
        path: &Path,
        folder: Option<&OwnedFd>,
    ) -> Result<bool, CollectError> {
        let Some(folder) = folder.filter(|_| path != Path::new("")) else {
            return Ok(false);
        };
        let stat = rustix::fs::fstat(folder).map_err(|e| failed("look at", path, e))?;
        if ViewCreation::changed(&stat) <= self.since || ViewCreation::modified(&stat) > self.since
        {
            return Ok(false);
        }
        let Some(parent) = self.lower_folder(path.parent().unwrap_or(Path::new("")))? else {
            return Ok(true);
        };
        let parent = rustix::fs::fstat(&parent).map_err(|e| failed("look at", path, e))?;
        Ok(ViewCreation::modified(&parent) > self.since)
    }
}

//! The files of a command's changes, as they were and as the command left them.

use std::io;
use std::path::Path;

use haft::change::collect::CollectedChanges;
use haft::workspace::Workspace;

use crate::command::meaning::{ChangeSides, PathChange, PathContent, Side};

/// Opens a changed file as it was, or as the command left it.
pub(super) fn open(
    workspace: &Workspace,
    collected: &CollectedChanges,
    path: &Path,
    side: Side,
) -> io::Result<PathContent> {
    Ok(PathContent::File(match side {
        Side::Before => workspace.open_file(path).map_err(io::Error::other)?.file,
        Side::After => collected.open(path)?,
    }))
}

/// Returns all files of the workspace before and after the changes.
pub(super) fn sides<'a>(
    workspace: &'a Workspace,
    collected: &'a CollectedChanges,
) -> ChangeSides<'a> {
    let open = |change: &PathChange<'_>, side| open(workspace, collected, change.path, side);
    ChangeSides::of_command(workspace, &collected.changes, open)
}

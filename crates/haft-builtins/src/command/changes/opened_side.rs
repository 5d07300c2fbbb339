//! A changed file, as it was or as the command left it.

use std::io;
use std::path::Path;

use haft::workspace::Workspace;

use crate::command::changes::pending::PendingChanges;
use crate::command::meaning::{Content, Side};

/// Opens a changed file as it was, or as the command left it.
pub(super) fn open(
    workspace: &Workspace,
    changes: &PendingChanges,
    path: &Path,
    side: Side,
) -> io::Result<Content> {
    Ok(Content::File(match side {
        Side::Before => workspace.open_file(path).map_err(io::Error::other)?.file,
        Side::After => changes.collected.open(path)?,
    }))
}

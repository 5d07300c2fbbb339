//! Guards for the host's own files in a workspace: what no command sees, and the host's program, which none changes.

use std::path::Path;

use crate::command::{Mounts, PathGuard};
use crate::places::Places;

/// Adds the guards, whoever starts the command.
pub(super) fn guard(mounts: &mut Mounts, places: &Places, workspace: &Path) {
    mounts.guards.extend(hiding(places, workspace));
    mounts.guards.extend(protecting(places, workspace));
    let pinned = places.pinned_within(workspace).map(Path::to_path_buf);
    mounts.pinned.extend(pinned);
}

/// Returns guards that hide the host's own files in a workspace, whoever starts the command.
fn hiding(places: &Places, workspace: &Path) -> Vec<PathGuard> {
    let hide = |path: &Path| {
        if workspace.join(path).is_file() {
            PathGuard::hide_file(path)
        } else {
            PathGuard::hide_dir(path)
        }
    };
    places.own_within(workspace).map(hide).collect()
}

/// Returns guards that keep the host's own program in a workspace as it is, on a view too.
fn protecting(places: &Places, workspace: &Path) -> Vec<PathGuard> {
    let existing = places.fixed_within(workspace);
    let existing = existing.filter(|path| workspace.join(path).symlink_metadata().is_ok());
    let protect = |path: &Path| {
        if workspace.join(path).is_dir() {
            PathGuard::protect_dir(path)
        } else {
            PathGuard::protect_file(path)
        }
    };
    existing.map(protect).collect()
}

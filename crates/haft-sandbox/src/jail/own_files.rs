//! Guards for the host's own files in a workspace: what no command sees, and the host's program, which none changes.

use std::path::Path;

use crate::command::Guard;
use crate::places::Places;

/// Returns the guards, whoever starts the command.
pub(super) fn guards(places: &Places, workspace: &Path) -> Vec<Guard> {
    let mut guards = hiding(places, workspace);
    guards.extend(protecting(places, workspace));
    guards
}

/// Returns guards that hide the host's own files in a workspace, whoever starts the command.
fn hiding(places: &Places, workspace: &Path) -> Vec<Guard> {
    let hide = |path: &Path| {
        if workspace.join(path).is_file() {
            Guard::hide_file(path)
        } else {
            Guard::hide_dir(path)
        }
    };
    places.own_within(workspace).map(hide).collect()
}

/// Returns guards that keep the host's own program in a workspace as it is, on a view too.
fn protecting(places: &Places, workspace: &Path) -> Vec<Guard> {
    let existing = places.fixed_within(workspace);
    let existing = existing.filter(|path| workspace.join(path).symlink_metadata().is_ok());
    let protect = |path: &Path| {
        if workspace.join(path).is_dir() {
            Guard::protect_dir(path)
        } else {
            Guard::protect_file(path)
        }
    };
    existing.map(protect).collect()
}

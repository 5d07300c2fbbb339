//! Paths by their text alone: nothing is looked up, no link is followed.

use std::path::{Component, Path, PathBuf};

/// An absolute path without `.` and `..`.
pub(crate) fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// Whether a path goes down and then up again: links on the way may lead elsewhere.
pub(super) fn climbs(path: &Path) -> bool {
    let mut parts = path
        .components()
        .skip_while(|part| !matches!(part, Component::Normal(_)));
    parts.any(|part| part == Component::ParentDir)
}

/// A path without `.` and `..`, if it is below the folder that it starts at.
pub(super) fn inside(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir if clean.pop() => {}
            _ => return None,
        }
    }
    (clean != Path::new("")).then_some(clean)
}

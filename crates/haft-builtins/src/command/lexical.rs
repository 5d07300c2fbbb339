//! Operations on the text of paths. They look nothing up and follow no links.

use std::path::{Component, Path, PathBuf};

/// Removes `.` and `..` from an absolute path; links are not followed.
pub fn normalize(path: &Path) -> PathBuf {
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

/// Returns true if a path goes down and then up again, so that links on the way may lead elsewhere.
pub(super) fn goes_down_and_up(path: &Path) -> bool {
    let mut parts = path
        .components()
        .skip_while(|part| !matches!(part, Component::Normal(_)));
    parts.any(|part| part == Component::ParentDir)
}

/// Removes `.` and `..` from a path. Returns `None` if it does not stay below its start.
pub(super) fn normalize_relative(path: &Path) -> Option<PathBuf> {
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

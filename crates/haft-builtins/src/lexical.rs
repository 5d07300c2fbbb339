//! Operations on the text of paths. They look nothing up and follow no links.

use std::path::{Component, Path, PathBuf};

/// Locations of system programs, which links may point to: the user who runs haft cannot change them.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/", "/bin/", "/lib/", "/lib64/"];

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
pub(crate) fn has_inner_parent(path: &Path) -> bool {
    let mut parts = path
        .components()
        .skip_while(|part| !matches!(part, Component::Normal(_)));
    parts.any(|part| part == Component::ParentDir)
}

/// Returns where a new link at a path of the workspace leads, as a claim states it, if rules may apply to that.
pub(crate) fn target_of_link(root: &Path, path: &Path, text: &Path) -> Option<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let whole = root.join(folder).join(text);
    if has_inner_parent(text) {
        // The target depends on other links, so its text alone does not tell.
        return Some(whole.to_string_lossy().into_owned());
    }
    let whole = normalize(&whole);
    let text = match whole.strip_prefix(root) {
        Ok(inside) if inside == Path::new("") => ".".to_owned(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => whole.to_string_lossy().into_owned(),
    };
    let system = SYSTEM_FOLDERS.iter().any(|folder| text.starts_with(folder));
    (!system).then_some(text)
}

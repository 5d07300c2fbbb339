//! Folders that git treats as repositories whatever their names, and the guards for their settings.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::workspace::Workspace;
use haft_sandbox::Guard;

/// Maximum size of a `.git` file or `commondir`, in bytes: a path and a word.
const MAX_POINTER: u64 = 8 * 1024;

/// Returns true if git treats a folder with these names as a repository. A linked worktree has its objects in another folder.
pub(super) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Returns guards for the settings of the repository in this folder, which holds these names. An absent file gets a guard only
/// if git treats an empty one alike; an empty `commondir` would break the repository.
pub(super) fn guards(folder: &Path, names: &BTreeSet<String>) -> Vec<Guard> {
    let at = |name: &str| folder.join(name);
    let config = |name: &&String| name.to_ascii_lowercase().starts_with("config");
    let others = names.iter().filter(config).map(String::as_str);
    let mut guards: Vec<Guard> = others.map(|name| Guard::protect_file(at(name))).collect();
    let pointers = ["commondir", "gitdir"].into_iter();
    let pointers = pointers.filter(|name| names.contains(*name));
    guards.extend(pointers.map(|name| Guard::protect_file(at(name))));
    guards.push(Guard::protect_file(at("config.worktree")));
    if !names.contains("commondir") {
        guards.push(Guard::protect_file(at("config")));
        guards.push(Guard::protect_dir(at("hooks")));
    }
    if names.contains("info") {
        guards.push(Guard::protect_file(at("info/attributes")));
    }
    guards
}

/// Returns the folder below the root that a `.git` file or a `commondir` names. Returns `None` for the root itself too.
pub(super) fn target(workspace: &Workspace, pointer: &Path) -> Option<PathBuf> {
    let open = workspace.open_file(pointer).ok()?;
    let mut text = String::new();
    let mut file = open.file.take(MAX_POINTER);
    file.read_to_string(&mut text).ok()?;
    let path = text.trim_end_matches(['\n', '\r']);
    let path = match pointer.file_name()?.to_str()? {
        ".git" => path.strip_prefix("gitdir:")?.trim_start(),
        _ => path,
    };
    if path.is_empty() {
        return None;
    }
    let root = workspace.root();
    let end = root
        .join(pointer.parent()?)
        .join(path)
        .canonicalize()
        .ok()?;
    let inside = end.strip_prefix(root).ok()?;
    (end.is_dir() && inside != Path::new("")).then(|| inside.to_owned())
}

//! The guards for the settings of a repository.

use std::collections::BTreeSet;
use std::path::Path;

use haft_sandbox::Guard;

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

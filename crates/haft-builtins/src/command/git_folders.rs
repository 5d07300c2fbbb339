//! The guards for the settings of a repository.

use std::collections::BTreeSet;
use std::path::Path;

use haft_sandbox::PathGuard;

/// Returns guards for the settings of the repository in this folder, which holds these names. No placeholder holds the place of an
/// absent file that git treats otherwise if it is empty: an empty `commondir` would break the repository. No repository of a submodule
/// may appear, for git would adopt it.
pub(super) fn guards(folder: &Path, names: &BTreeSet<String>) -> Vec<PathGuard> {
    let at = |name: &str| folder.join(name);
    let config = |name: &&String| name.to_ascii_lowercase().starts_with("config");
    let others = names.iter().filter(config).map(String::as_str);
    let mut guards: Vec<PathGuard> = others
        .map(|name| PathGuard::protect_file(at(name)))
        .collect();
    let pointers = ["commondir", "gitdir"].into_iter();
    let pointers = pointers.filter(|name| names.contains(*name));
    guards.extend(pointers.map(|name| PathGuard::protect_file(at(name))));
    guards.push(PathGuard::protect_file(at("config.worktree")));
    if !names.contains("commondir") {
        guards.push(PathGuard::protect_file(at("commondir")).without_placeholder());
        guards.push(if names.contains("modules") {
            PathGuard::no_new_entries(at("modules"))
        } else {
            PathGuard::protect_dir(at("modules"))
        });
        guards.push(PathGuard::protect_file(at("config")));
        guards.push(PathGuard::protect_dir(at("hooks")));
    }
    if names.contains("info") {
        guards.push(PathGuard::protect_file(at("info/attributes")));
    }
    guards
}

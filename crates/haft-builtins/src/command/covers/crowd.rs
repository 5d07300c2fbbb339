//! Reduces the number of guards for hidden files: a folder is hidden as a whole if all of its contents are. For the rest, an
//! error says where most of the files are.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use haft_sandbox::{GuardKind, PathGuard};

/// Returns an equivalent cover with fewer guards: a folder whose whole contents are hidden gets a single guard.
pub(super) fn merge_guards(root: &Path, guards: Vec<PathGuard>) -> Vec<PathGuard> {
    let (apart, mut others): (Vec<_>, Vec<_>) = guards
        .into_iter()
        .partition(|guard| guard.kind == GuardKind::Hidden && !guard.any_depth);
    let mut hidden: BTreeMap<PathBuf, PathGuard> = apart
        .into_iter()
        .map(|guard| (guard.path.clone(), guard))
        .collect();
    // Deepest first: hiding a folder as a whole may complete the contents of its parent.
    let mut folders = BTreeSet::new();
    let parent_of = |path: &Path| {
        let parent = path.parent().filter(|parent| *parent != Path::new(""))?;
        Some((parent.components().count(), parent.to_owned()))
    };
    folders.extend(hidden.keys().filter_map(|path| parent_of(path)));
    while let Some((_, folder)) = folders.pop_last() {
        if hidden.contains_key(&folder) || !holds_nothing_else(root, &folder, &hidden) {
            continue;
        }
        let below = hidden.range(folder.clone()..);
        let below = below.map(|(path, _)| path.clone());
        let below: Vec<PathBuf> = below.take_while(|path| path.starts_with(&folder)).collect();
        for path in below {
            hidden.remove(&path);
        }
        folders.extend(parent_of(&folder));
        hidden.insert(folder.clone(), PathGuard::hide_dir(folder));
    }
    let hidden: Vec<PathGuard> = hidden.into_values().collect();
    remove_nested_guards(&hidden, &mut others);
    hidden.into_iter().chain(others).collect()
}

/// Removes guards inside folders that other guards hide as a whole, because there is nothing to put them on.
pub(super) fn remove_nested_guards(hiding: &[PathGuard], guards: &mut Vec<PathGuard>) {
    let hides = |guard: &&PathGuard| guard.kind == GuardKind::Hidden && guard.folder;
    let folders: HashSet<&Path> = hiding.iter().filter(hides).map(|g| &*g.path).collect();
    guards.retain(|guard| {
        let mut above = guard.path.ancestors().skip(1);
        guard.any_depth || !above.any(|folder| folders.contains(folder))
    });
}

/// Returns true if every entry of the folder is hidden, and false if the folder cannot be listed.
fn holds_nothing_else(root: &Path, folder: &Path, hidden: &BTreeMap<PathBuf, PathGuard>) -> bool {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return false;
    };
    let mut entries = entries.map(|entry| entry.map(|entry| folder.join(entry.file_name())));
    entries.all(|entry| entry.is_ok_and(|path| hidden.contains_key(&path)))
}

/// Returns the deepest folder with at least half of the guards, or else the one with the most, and their number. Returns `None` if
/// all are at the root.
pub(super) fn most_crowded(guards: &[PathGuard]) -> Option<(&Path, usize)> {
    let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
    for guard in guards {
        for folder in guard.path.ancestors().skip(1) {
            *counts.entry(folder).or_default() += 1;
        }
    }
    counts.remove(Path::new(""));
    let depth = |path: &Path| path.components().count();
    let half = counts
        .iter()
        .filter(|(_, count)| **count * 2 >= guards.len());
    let deepest = half.max_by_key(|(path, count)| (depth(path), **count));
    let fullest = || counts.iter().max_by_key(|(_, count)| **count);
    let (path, count) = deepest.or_else(fullest)?;
    Some((*path, *count))
}

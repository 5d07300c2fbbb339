//! The state in which a command leaves a worktree: a merge that stopped, conflicts, files at which git no longer looks.

use std::collections::BTreeMap;
use std::path::Path;

use haft::approval::meaning::{Meaning, MeaningKind};

use super::id::ID_HASH;
use crate::command::index::{IndexFlags, MAX_INDEX, flags_in};
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::{count, name};

/// What lies in a repository's folder while something is unfinished.
const UNFINISHED: [(&str, MeaningKind, &str); 5] = [
    ("rebase-merge", MeaningKind::Rebase, "a rebase"),
    ("rebase-apply", MeaningKind::Rebase, "a rebase"),
    ("MERGE_HEAD", MeaningKind::Merge, "a merge"),
    ("CHERRY_PICK_HEAD", MeaningKind::CherryPick, "a cherry-pick"),
    ("REVERT_HEAD", MeaningKind::Commit, "a revert"),
];
/// Maximum number of files that a line names.
const MAX_LISTED: usize = 10;

type FlagsByPath = BTreeMap<Vec<u8>, IndexFlags>;

/// Returns what a command leaves unfinished in the folder with a HEAD and an index, and what it hides from git.
pub(super) fn states(sides: &ChangeSides<'_>, folder: &Path) -> Vec<Meaning> {
    let flags = |side| -> FlagsByPath {
        let index = sides.read(side, &folder.join("index"), MAX_INDEX);
        index
            .and_then(|index| flags_in(&index, ID_HASH))
            .unwrap_or_default()
    };
    let (before, after) = (flags(Side::Before), flags(Side::After));
    let mut found: Vec<Meaning> = unfinished(sides, folder, &before, &after)
        .into_iter()
        .collect();
    let hidden = hidden(&before, &after);
    if !hidden.is_empty() {
        let mut meaning = Meaning::new(MeaningKind::Staged, "git is told to overlook changes");
        meaning.warnings = hidden;
        found.push(meaning);
    }
    found
}

/// Returns the files that get a flag, named.
fn fresh(
    before: &FlagsByPath,
    after: &FlagsByPath,
    has: fn(&IndexFlags) -> bool,
) -> Option<(usize, String)> {
    let files: Vec<&Vec<u8>> = after
        .iter()
        .filter(|(path, flags)| has(flags) && !before.get(*path).is_some_and(has))
        .map(|(path, _)| path)
        .collect();
    if files.is_empty() {
        return None;
    }
    let mut names: Vec<String> = files
        .iter()
        .take(MAX_LISTED)
        .map(|path| name(path))
        .collect();
    if files.len() > MAX_LISTED {
        names.push(format!("and {} more", files.len() - MAX_LISTED));
    }
    Some((files.len(), names.join(", ")))
}

fn unfinished(
    sides: &ChangeSides<'_>,
    folder: &Path,
    before: &FlagsByPath,
    after: &FlagsByPath,
) -> Option<Meaning> {
    let is_new = |entry: &str| {
        let there = |side| sides.kind(side, &folder.join(entry)).is_some();
        there(Side::After) && !there(Side::Before)
    };
    let state = UNFINISHED.into_iter().find(|(entry, ..)| is_new(entry));
    let conflicts = fresh(before, after, |flags| flags.in_conflict);
    let conflicts =
        conflicts.map(|(number, names)| format!("conflicts in {}: {names}", count(number, "file")));
    let (kind, title) = match (state, conflicts) {
        (Some((_, kind, what)), None) => (kind, format!("{what} is left unfinished")),
        (Some((_, kind, what)), Some(conflicts)) => {
            (kind, format!("{what} is left unfinished, with {conflicts}"))
        }
        (None, Some(conflicts)) => (MeaningKind::Staged, conflicts),
        (None, None) => return None,
    };
    Some(Meaning::new(kind, title))
}

fn hidden(before: &FlagsByPath, after: &FlagsByPath) -> Vec<String> {
    type Has = fn(&IndexFlags) -> bool;
    let kinds: [(Has, &str, &str); 2] = [
        (
            |flags| flags.assume_unchanged,
            "git no longer sees changes of",
            "assume-unchanged",
        ),
        (
            |flags| flags.skip_worktree,
            "git no longer looks at",
            "skip-worktree",
        ),
    ];
    let each = kinds.into_iter().filter_map(|(has, what, flag)| {
        let (number, names) = fresh(before, after, has)?;
        Some(format!(
            "{what} {} ({flag}): {names}",
            count(number, "file")
        ))
    });
    each.collect()
}

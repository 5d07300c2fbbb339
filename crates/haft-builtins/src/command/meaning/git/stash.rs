//! Stashes: uncommitted changes that are put aside, taken back or dropped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};

use super::commit::{compare, quoted};
use super::id::ObjectId;
use super::refs::Refs;
use super::staged::is_object;
use super::store::ObjectDatabase;
use super::tree::differences;
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::count;

/// The ref of the newest stash; its log has the others.
const STASH: &str = "refs/stash";
/// Maximum size of the log, in bytes.
const MAX_LOG: u64 = 1 << 20;
/// Maximum number of stashes that are described.
const MAX_STASHES: usize = 20;
/// Maximum number of files of a stash that are compared with the worktrees'.
const MAX_COMPARED: usize = 1_000;

/// A stash and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stash {
    pub(super) id: ObjectId,
    message: String,
}

/// Returns the stashes of a repository, the oldest first.
pub(super) fn stashes(
    sides: &ChangeSides<'_>,
    side: Side,
    repository: &Path,
    refs: &Refs,
) -> Vec<Stash> {
    let Some(newest) = refs.get(STASH) else {
        return Vec::new();
    };
    let log = sides.read(side, &repository.join("logs").join(STASH), MAX_LOG);
    let log = log.unwrap_or_default();
    let mut all: Vec<Stash> = log_lines(&log)
        .map(|(id, message)| Stash { id, message })
        .collect();
    if !all.iter().any(|stash| stash.id == newest) {
        let message = "without a message".to_owned();
        all.push(Stash {
            id: newest,
            message,
        });
    }
    all
}

/// Returns the new object and the message of each line of a log.
pub(super) fn log_lines(log: &[u8]) -> impl Iterator<Item = (ObjectId, String)> + '_ {
    log.split(|byte| *byte == b'\n').filter_map(|line| {
        let new = ObjectId::from_hex(line.get(41..81)?)?;
        let tab = memchr::memchr(b'\t', line)?;
        let message = String::from_utf8_lossy(&line[tab + 1..]).into_owned();
        Some((new, message))
    })
}

/// The stashes of a repository before and after.
#[derive(Debug)]
pub(super) struct StashLists {
    pub(super) before: Vec<Stash>,
    pub(super) after: Vec<Stash>,
}

/// Returns what happens to stashes.
pub(super) fn stash_meanings(
    sides: &ChangeSides<'_>,
    store: &ObjectDatabase<'_>,
    folders: &[(PathBuf, Option<PathBuf>)],
    lists: &StashLists,
    budget: &mut Budget,
) -> Vec<Meaning> {
    let (before, after) = (&*lists.before, &*lists.after);
    let is_in = |all: &[Stash], one: &Stash| all.iter().any(|other| other.id == one.id);
    let made = after.iter().filter(|one| !is_in(before, one));
    let mut found: Vec<Meaning> = made
        .take(MAX_STASHES)
        .map(|stash| meaning(store, "stash", stash, budget))
        .collect();
    let gone: Vec<&Stash> = before.iter().filter(|one| !is_in(after, one)).collect();
    for stash in gone.iter().take(MAX_STASHES) {
        if is_taken_back(sides, store, folders, stash) {
            found.push(meaning(store, "take back the stash", stash, budget));
        } else {
            let mut dropped = meaning(store, "drop the stash", stash, budget);
            let why = "the files are not as it has them: what of it is not among the changes here is gone";
            dropped.warnings.push(why.to_owned());
            found.push(dropped);
        }
    }
    if gone.len() > MAX_STASHES {
        let more = count(gone.len() - MAX_STASHES, "more stash");
        found.push(Meaning::new(MeaningKind::Stash, format!("drop {more}")));
    }
    found
}

fn meaning(store: &ObjectDatabase<'_>, head: &str, stash: &Stash, budget: &mut Budget) -> Meaning {
    let mut meaning = Meaning::new(
        MeaningKind::Stash,
        format!("{head} {}", quoted(&stash.message)),
    );
    let commit = store.commit(&stash.id);
    let base = commit.as_ref().ok().and_then(|commit| {
        let parent = commit.parents.first()?;
        store.commit(parent).ok()
    });
    let (Ok(commit), Some(base)) = (commit, base) else {
        let why = "its changes cannot be read".to_owned();
        meaning.warnings.push(why);
        return meaning;
    };
    let compared = compare(store, Some(&base.tree), Some(&commit.tree), budget);
    meaning.title = format!("{}: {}", meaning.title, compared.shown.sum());
    compared.shown.fill(&mut meaning);
    meaning.warnings.extend(compared.failure);
    // The third parent holds the files that git did not know.
    let untracked = commit.parents.get(2).and_then(|id| store.commit(id).ok());
    if let Some(untracked) = untracked {
        let compared = compare(store, None, Some(&untracked.tree), budget);
        let line = format!("untracked files: {}", compared.shown.sum());
        meaning.lines.push(line);
        compared.shown.fill(&mut meaning);
    }
    meaning
}

/// Returns true if one of the worktrees, which share their stashes, has all files as the stash has them.
fn is_taken_back(
    sides: &ChangeSides<'_>,
    store: &ObjectDatabase<'_>,
    folders: &[(PathBuf, Option<PathBuf>)],
    stash: &Stash,
) -> bool {
    let trees = store.commit(&stash.id).and_then(|commit| {
        let parent = commit.parents.first().map(|id| store.commit(id));
        let base = parent.transpose()?.map(|base| base.tree);
        Ok((base, commit.tree))
    });
    let Ok((base, tree)) = trees else {
        return false;
    };
    let Ok(all) = differences(store, base.as_ref(), Some(&tree)) else {
        return false;
    };
    let is_in = |worktree: &PathBuf| {
        all.iter().all(|one| {
            let path = worktree.join(OsStr::from_bytes(&one.path));
            is_object(sides, Side::After, &path, one.after) == Some(true)
        })
    };
    let mut worktrees = folders.iter().filter_map(|(_, worktree)| worktree.as_ref());
    all.len() <= MAX_COMPARED && worktrees.any(is_in)
}

//! Entries that git's logs lose: often the last trace of commits that no branch has any more.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::workspace::EntryKind;

use super::commit::list;
use super::history::exclusive;
use super::id::ObjectId;
use super::refs::Refs;
use super::store::ObjectDatabase;
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::count;

/// Maximum size of a log, in bytes.
const MAX_LOG: u64 = 4 << 20;
/// Maximum number of logs that are read for what they still name.
const MAX_LOGS: usize = 2_000;

/// Returns what it means that logs of a repository lose entries; `parts` are the folders with a HEAD, and `roots` what is reachable
/// afterwards.
pub(super) fn lost_entries(
    sides: &ChangeSides<'_>,
    store: &ObjectDatabase<'_>,
    after: &Refs,
    parts: &[PathBuf],
    roots: &[ObjectId],
) -> Option<Meaning> {
    let (mut gone, mut number) = (BTreeSet::new(), 0);
    for part in parts {
        let logs = part.join("logs");
        for change in sides.below(&logs) {
            let Ok(name) = change.path.strip_prefix(&logs) else {
                continue;
            };
            // The log of stashes is read as what it is.
            if name == Path::new("refs/stash") {
                continue;
            }
            let lines = |side| sides.read(side, change.path, MAX_LOG).unwrap_or_default();
            let (before, after_bytes) = (lines(Side::Before), lines(Side::After));
            let kept: HashSet<&[u8]> = after_bytes.split(|byte| *byte == b'\n').collect();
            let entries = before.split(|byte| *byte == b'\n');
            let entries = entries.filter(|line| !line.is_empty() && !kept.contains(line));
            // That of a deleted branch goes with it.
            let has_ref = name == Path::new("HEAD") || after.get(&name.to_string_lossy()).is_some();
            for line in entries {
                number += usize::from(has_ref);
                gone.extend(ids(line));
            }
        }
    }
    if gone.is_empty() {
        return None;
    }
    let mut not = roots.to_vec();
    not.extend(
        parts
            .iter()
            .flat_map(|part| named(sides, &part.join("logs"))),
    );
    let gone: Vec<ObjectId> = gone
        .into_iter()
        .filter(|id| store.peel(id).is_ok())
        .collect();
    let lost = exclusive(store, &gone, &not).commits;
    if lost.is_empty() && number == 0 {
        return None;
    }
    let title = match number {
        0 => "git's logs go with their branches".to_owned(),
        _ => format!("git's logs lose {}", count(number, "entry")),
    };
    let mut meaning = Meaning::new(MeaningKind::Reset, title);
    if !lost.is_empty() {
        let (commits, them) = match lost.len() {
            1 => ("1 commit is".to_owned(), "it"),
            more => (format!("{more} commits are"), "them"),
        };
        meaning.warnings.push(format!(
            "{commits} then on no branch, tag or log, and git will delete {them}: {}",
            list(&lost)
        ));
    }
    Some(meaning)
}

/// Returns the objects that a line of a log names.
fn ids(line: &[u8]) -> impl Iterator<Item = ObjectId> + use<> {
    let id = |range| ObjectId::from_hex(line.get(range)?);
    [id(0..40), id(41..81)].into_iter().flatten()
}

/// Returns what the logs in a folder name after the changes.
fn named(sides: &ChangeSides<'_>, logs: &Path) -> BTreeSet<ObjectId> {
    let (mut left, mut found, mut read) = (vec![logs.to_owned()], BTreeSet::new(), 0);
    while let Some(folder) = left.pop() {
        let names = sides.names(Side::After, &folder, MAX_LOGS);
        for (name, kind) in names.unwrap_or_default() {
            let path = folder.join(name);
            match kind {
                EntryKind::Directory => left.push(path),
                EntryKind::File if read < MAX_LOGS => {
                    read += 1;
                    let log = sides.read(Side::After, &path, MAX_LOG).unwrap_or_default();
                    found.extend(log.split(|byte| *byte == b'\n').flat_map(ids));
                }
                _ => {}
            }
        }
    }
    found
}

//! The changed files of a workspace that mean more, or less, than their lines.

use std::collections::BTreeMap;
use std::path::Path;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::{EntryState, FileHash};

use super::budget::Budget;
use super::folded::{FoldReason, fold};
use super::picture;
use super::sides::{ChangeSides, PathChange, Side};
use super::single;
use super::words::{count, name};

/// Maximum size of a file that is read, in bytes.
const MAX_FILE: u64 = 24 << 20;
/// Size from which on a file is read to find out whether somebody reads it, in bytes.
const MIN_FOLDED: u64 = 16 << 10;
/// Ends of the names of archives, which are recognised at any size.
const ARCHIVE_ENDS: [&str; 12] = [
    ".7z", ".bz2", ".gz", ".jar", ".rar", ".tar", ".tgz", ".war", ".whl", ".xz", ".zip", ".zst",
];
/// Maximum number of meanings of single files.
const MAX_SINGLE: usize = 50;
/// Maximum number of files that a line names.
const MAX_NAMED: usize = 100;

/// Returns what the selected changes of single files mean.
pub(super) fn files(
    sides: &ChangeSides<'_>,
    select: &dyn Fn(&Path) -> bool,
    budget: &mut Budget,
) -> Vec<Meaning> {
    let mut found = Vec::new();
    let mut folded: Vec<(String, FoldReason)> = Vec::new();
    let mut unread: Vec<String> = Vec::new();
    for change in sides.changes() {
        let path = change.path.to_string_lossy();
        if !is_candidate(&change, &path) || !select(change.path) {
            continue;
        }
        // One that would be left out takes no time and no memory.
        let both =
            bytes(change.state(Side::Before)).saturating_add(bytes(change.state(Side::After)));
        let is_full = found.len() >= MAX_SINGLE || budget.is_over();
        let is_left_out = is_full || !single::may_be_read(&path, both);
        let mut read = |side| {
            if is_left_out {
                Err(())
            } else {
                content(sides, &change, side, budget)
            }
        };
        let [Ok(before), Ok(after)] = [read(Side::Before), read(Side::After)] else {
            if single::may_mean(&path) {
                unread.push(name(path.as_bytes()));
            }
            continue;
        };
        let (was, is) = (before.as_deref(), after.as_deref());
        let meaning =
            single::meaning(&path, was, is, budget).or_else(|| picture::meaning(&path, was, is));
        if let Some(mut meaning) = meaning {
            // Of a picture no line could be shown. Any other file stays visible beside what it means.
            if meaning.kind == MeaningKind::Image {
                meaning.covers.push(path.into_owned());
            }
            found.push(meaning);
        } else if let Some(fold) = fold(&path, was, is) {
            folded.push((path.into_owned(), fold));
        }
    }
    found.extend(groups(folded));
    found.extend(not_read(unread));
    found
}

/// Says of which files it was not read what their changes mean.
fn not_read(mut files: Vec<String>) -> Option<Meaning> {
    let title = match &files[..] {
        [] => return None,
        [file] => format!("what changes in {file} was not read"),
        files => format!("what changes in {} files was not read", files.len()),
    };
    let mut meaning = Meaning::new(MeaningKind::Lockfile, title);
    let why = "they are too large, or too many: look at their lines";
    meaning.warnings.push(why.to_owned());
    if files.len() > 1 {
        let more = files.len().saturating_sub(MAX_NAMED);
        files.truncate(MAX_NAMED);
        if more > 0 {
            files.push(format!("and {}", count(more, "more file")));
        }
        meaning.lines = files;
    }
    Some(meaning)
}

fn is_candidate(change: &PathChange<'_>, path: &str) -> bool {
    let is_file =
        |state: Option<&EntryState>| matches!(state, None | Some(EntryState::File { .. }));
    let is_git = change
        .path
        .iter()
        .any(|part| part.eq_ignore_ascii_case(".git"));
    let (before, after) = (change.state(Side::Before), change.state(Side::After));
    let longest = bytes(before).max(bytes(after));
    let lower = path.to_ascii_lowercase();
    // A changed mode is shown as one.
    let is_content = before.zip(after);
    let is_content = is_content.is_none_or(|(was, is)| hash(was) != hash(is));
    is_file(before)
        && is_file(after)
        && is_content
        && !is_git
        && (single::may_mean(path)
            || picture::is_named(&lower)
            || longest >= MIN_FOLDED
            || ARCHIVE_ENDS.iter().any(|end| lower.ends_with(end)))
}

fn bytes(state: Option<&EntryState>) -> u64 {
    match state {
        Some(EntryState::File { bytes, .. }) => *bytes,
        _ => 0,
    }
}

fn hash(state: &EntryState) -> Option<FileHash> {
    match state {
        EntryState::File { sha256, .. } => *sha256,
        _ => None,
    }
}

/// Returns the content on one side.
fn content(
    sides: &ChangeSides<'_>,
    change: &PathChange<'_>,
    side: Side,
    budget: &mut Budget,
) -> Result<Option<Vec<u8>>, ()> {
    let Some(EntryState::File { bytes, .. }) = change.state(side) else {
        return Ok(None);
    };
    let fits = *bytes <= MAX_FILE && budget.may_read(usize::try_from(*bytes).unwrap_or(usize::MAX));
    let content = fits.then(|| sides.read(side, change.path, MAX_FILE));
    content.flatten().map(Some).ok_or(())
}

/// The kind of a group's files, and each with the reason why it is folded.
type FileGroup = (MeaningKind, Vec<(String, String)>);

/// Returns one meaning for all files that are folded for the same reason.
fn groups(folded: Vec<(String, FoldReason)>) -> Vec<Meaning> {
    let mut groups: BTreeMap<&str, FileGroup> = BTreeMap::new();
    for (path, fold) in folded {
        let noun = match fold.kind {
            MeaningKind::Archive => "archive",
            _ => "generated file",
        };
        let group = groups.entry(noun).or_insert((fold.kind, Vec::new()));
        group.1.push((path, fold.why));
    }
    let meaning = |(noun, (kind, files)): (&str, FileGroup)| {
        let title = match &files[..] {
            [(path, why)] => format!("{}: {why}", name(path.as_bytes())),
            _ => count(files.len(), noun),
        };
        let mut meaning = Meaning::new(kind, title);
        if files.len() > 1 {
            let named = files.iter().take(MAX_NAMED);
            meaning.lines = named
                .map(|(path, why)| format!("{}: {why}", name(path.as_bytes())))
                .collect();
        }
        if files.len() > MAX_NAMED {
            let more = count(files.len() - MAX_NAMED, "more file");
            meaning.lines.push(format!("and {more}"));
        }
        meaning
    };
    groups.into_iter().map(meaning).collect()
}

//! The files of a commit, as a person reads them.

use std::collections::BTreeMap;

use haft::approval::meaning::Meaning;
use haft::approval::preview::{FileChange, StoredSides};

use super::entries::{MODE_LINK, MODE_SUBMODULE};
use super::id::ObjectId;
use super::store::{ObjectDatabase, ObjectError};
use super::tree::{TreeDifference, TreeFile};
use crate::command::meaning::budget::Budget;
use crate::command::meaning::lines::count_lines;
use crate::command::meaning::sides::ChangeSides;
use crate::command::meaning::single;
use crate::command::meaning::words::{count, name, size};

/// Maximum size of a file whose content is read, in bytes.
const MAX_BLOB: u64 = 24 << 20;
/// Maximum number of lines with modes and submodules.
const MAX_LINES: usize = 50;

/// The files of a commit.
#[derive(Debug, Default)]
pub(super) struct FileList {
    pub(super) files: Vec<FileChange>,
    pub(super) lines: Vec<String>,
    pub(super) parts: Vec<Meaning>,
    /// Number of files that differ.
    total: usize,
    added: usize,
    removed: usize,
    /// Number of files whose lines were counted.
    counted: usize,
}

impl FileList {
    /// Returns the sum in a few words: "3 files, +12 −4".
    pub(super) fn sum(&self) -> String {
        if self.total == 0 {
            return "no files".to_owned();
        }
        let files = count(self.total, "file");
        let partly = if self.counted < self.total {
            format!(" in the first {}", self.counted)
        } else {
            String::new()
        };
        match (self.added, self.removed, self.counted) {
            (_, _, 0) | (0, 0, _) => files,
            (added, removed, _) => format!("{files}, +{added} \u{2212}{removed}{partly}"),
        }
    }

    /// Moves what is shown into a meaning.
    pub(super) fn fill(self, meaning: &mut Meaning) {
        meaning.files.extend(self.files);
        meaning.lines.extend(self.lines);
        meaning.parts.extend(self.parts);
    }
}

/// Reads the files that differ, as far as the budget allows.
pub(super) fn show(
    store: &ObjectDatabase<'_>,
    all: &[TreeDifference],
    budget: &mut Budget,
) -> FileList {
    let mut shown = FileList {
        total: all.len(),
        ..FileList::default()
    };
    for one in all {
        if shown.lines.len() < MAX_LINES {
            shown.lines.extend(line_of(one));
        }
        if is_submodule(one.before) || is_submodule(one.after) {
            shown.counted += 1;
            continue;
        }
        if budget.is_full() && budget.is_over() {
            break;
        }
        file(store, one, budget, &mut shown);
    }
    // In order: there is room for the first ones.
    let files = all
        .iter()
        .filter(|one| !is_submodule(one.before) && !is_submodule(one.after));
    let left: Vec<&TreeDifference> = files.skip(shown.files.len()).collect();
    shown.lines.extend(names_of(&left));
    shown
}

/// Returns lines that name files without showing them. Of very many, the last ones are counted by the folder at the top.
fn names_of(left: &[&TreeDifference]) -> Vec<String> {
    const MAX_NAMED: usize = 1_000;
    const ON_A_LINE: usize = 10;
    const MAX_FOLDERS: usize = 20;
    if left.is_empty() {
        return Vec::new();
    }
    let path = |one: &TreeDifference| name(one.to.as_ref().unwrap_or(&one.path));
    let mut lines = vec![format!("files that are not shown: {}", left.len())];
    let named = &left[..left.len().min(MAX_NAMED)];
    for some in named.chunks(ON_A_LINE) {
        let names: Vec<String> = some.iter().map(|one| path(one)).collect();
        lines.push(format!("not shown: {}", names.join(", ")));
    }
    let mut folders: BTreeMap<&[u8], usize> = BTreeMap::new();
    for one in &left[named.len()..] {
        let path = one.to.as_ref().unwrap_or(&one.path);
        let end = path.iter().position(|byte| *byte == b'/').unwrap_or(0);
        *folders.entry(&path[..end]).or_default() += 1;
    }
    let more = folders.len().saturating_sub(MAX_FOLDERS);
    for (folder, number) in folders.into_iter().take(MAX_FOLDERS) {
        let place = match folder {
            [] => "the top folder".to_owned(),
            folder => name(folder),
        };
        lines.push(format!(
            "not named: {} in {place}",
            count(number, "more file")
        ));
    }
    if more > 0 {
        lines.push(format!("and more in {}", count(more, "other folder")));
    }
    lines
}

fn is_submodule(file: Option<TreeFile>) -> bool {
    file.is_some_and(|(mode, _)| mode == MODE_SUBMODULE)
}

/// The mode of a file that is not executable.
const PLAIN: u32 = 0o100_644;

/// Returns a line on a mode or a submodule.
fn line_of(one: &TreeDifference) -> Option<String> {
    let path = name(one.to.as_ref().unwrap_or(&one.path));
    let (was, is) = (one.before, one.after);
    if is_submodule(was) || is_submodule(is) {
        let of = |file: Option<TreeFile>| match file {
            Some((MODE_SUBMODULE, id)) => id.short(),
            Some(_) => "files".to_owned(),
            None => "nothing".to_owned(),
        };
        return Some(format!("submodule {path}: {} → {}", of(was), of(is)));
    }
    match (was, is) {
        (Some((was, _)), Some((is, _))) if was != is => {
            Some(format!("mode of {path}: {was:06o} → {is:06o}"))
        }
        (None, Some((is, _))) if is != PLAIN => Some(format!("mode of {path}: {is:06o}")),
        _ => None,
    }
}

fn file(
    store: &ObjectDatabase<'_>,
    one: &TreeDifference,
    budget: &mut Budget,
    shown: &mut FileList,
) {
    let path = String::from_utf8_lossy(&one.path).into_owned();
    let sides = (
        side(store, one.before, budget),
        side(store, one.after, budget),
    );
    let (before, after) = match sides {
        (Ok(before), Ok(after)) => (before, after),
        (Err(why), _) | (_, Err(why)) => {
            if budget.may_show(0) {
                shown.files.push(named(store, one, &path, &why));
            }
            return;
        }
    };
    shown.counted += 1;
    let is_text = |side: &Option<Vec<u8>>| side.as_ref().is_none_or(|bytes| is_text(bytes));
    if is_text(&before) && is_text(&after) {
        let text = |side: &Option<Vec<u8>>| side.clone().unwrap_or_default();
        let lines = count_lines(&text(&before), &text(&after));
        shown.added += lines.added;
        shown.removed += lines.removed;
    }
    let (was, is) = (before.as_deref(), after.as_deref());
    let target = one.to.as_ref().map(|to| String::from_utf8_lossy(to));
    let at = target.as_deref().unwrap_or(&path);
    // Beside the file, never in its place.
    if was != is {
        shown.parts.extend(single::meaning(at, was, is, budget));
    }
    let bytes = was.map_or(0, <[u8]>::len) + is.map_or(0, <[u8]>::len);
    let fold = lfs_pointer(is.or(was)).or_else(|| single::fold(at, was, is));
    if let Some(why) = fold {
        if budget.may_show(0) {
            shown
                .files
                .push(folded(change(store, one, &path, was, is), why));
        }
    } else if budget.may_show(bytes) {
        shown.files.push(change(store, one, &path, was, is));
    } else if budget.may_show(0) {
        let why = "the request has no room for it".to_owned();
        shown
            .files
            .push(folded(change(store, one, &path, was, is), why));
    }
}

fn change(
    store: &ObjectDatabase<'_>,
    one: &TreeDifference,
    path: &str,
    was: Option<&[u8]>,
    is: Option<&[u8]>,
) -> FileChange {
    let object = |side: Option<TreeFile>| side.map(|(_, id)| id.hex());
    let mut change = FileChange::new(path, was, is);
    change.stored = Some(StoredSides {
        repository: store.repository().into(),
        before: object(one.before),
        after: object(one.after),
    });
    match &one.to {
        Some(to) => change.moved(String::from_utf8_lossy(to)),
        None => change,
    }
}

/// Leaves out the content, and says why.
fn folded(mut change: FileChange, why: String) -> FileChange {
    change.fold(why);
    change.binary = false;
    change
}

/// Returns a file whose content cannot be read.
fn named(
    store: &ObjectDatabase<'_>,
    one: &TreeDifference,
    path: &str,
    why: &ObjectError,
) -> FileChange {
    let empty: Option<&[u8]> = Some(b"");
    let mut change = change(
        store,
        one,
        path,
        one.before.and(empty),
        one.after.and(empty),
    );
    (change.before_sha256, change.after_sha256) = (None, None);
    (change.before_bytes, change.after_bytes) = (None, None);
    folded(change, why.0.clone())
}

/// Returns the content of a file; a link's is its target.
fn side(
    store: &ObjectDatabase<'_>,
    file: Option<TreeFile>,
    budget: &mut Budget,
) -> Result<Option<Vec<u8>>, ObjectError> {
    let Some((mode, id)) = file else {
        return Ok(None);
    };
    let no_room = || {
        ObjectError(format!(
            "too much would have to be read (object {})",
            id.short()
        ))
    };
    if budget.is_over() {
        return Err(no_room());
    }
    let object = store.object(&id, MAX_BLOB)?;
    let Some(content) = object.content else {
        let why = format!("it has {} (object {})", size(object.size), id.short());
        return Err(ObjectError(why));
    };
    if !budget.may_read(content.len()) {
        return Err(no_room());
    }
    if mode == MODE_LINK {
        let target = String::from_utf8_lossy(&content).into_owned();
        return Ok(Some(format!("link to {target}\n").into_bytes()));
    }
    Ok(Some(content))
}

/// Returns the content of the two sides of a file of a commit.
///
/// # Errors
/// A side cannot be read: why, as the end of a sentence.
pub(in crate::command) fn stored(
    sides: &ChangeSides<'_>,
    of: &StoredSides,
) -> Result<[Option<Vec<u8>>; 2], String> {
    let store = ObjectDatabase::new(sides, &of.repository, None);
    let read = |name: &Option<String>| {
        let Some(name) = name else { return Ok(None) };
        let id = ObjectId::from_hex(name.as_bytes()).ok_or("its object has no name of git's")?;
        let object = store.object(&id, MAX_BLOB).map_err(|why| why.0)?;
        let size = size(object.size);
        let content = object.content;
        content.map(Some).ok_or_else(|| format!("it has {size}"))
    };
    Ok([read(&of.before)?, read(&of.after)?])
}

/// Returns true for a text, as git tells it: without a zero byte near its beginning.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes
        .get(..8_000.min(bytes.len()))
        .is_some_and(|head| head.contains(&0))
}

/// Returns why a file that Git LFS keeps is not shown: the repository has only a pointer to it.
fn lfs_pointer(content: Option<&[u8]>) -> Option<String> {
    const MAX_POINTER: usize = 1_024;
    let content = content.filter(|bytes| bytes.len() <= MAX_POINTER)?;
    let text = std::str::from_utf8(content).ok()?;
    if !text.starts_with("version https://git-lfs.github.com/spec/v1\n") {
        return None;
    }
    // A line more is content that git would check out.
    let is_known = |line: &str| {
        ["version ", "oid sha256:", "size "]
            .iter()
            .any(|key| line.starts_with(key))
    };
    if text.lines().count() != 3 || !text.lines().all(is_known) {
        return None;
    }
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let bytes: u64 = value("size ")?.parse().ok()?;
    let hash: String = value("oid sha256:")?.chars().take(12).collect();
    Some(format!(
        "Git LFS keeps it: {}, SHA-256 {hash}…",
        size(bytes)
    ))
}

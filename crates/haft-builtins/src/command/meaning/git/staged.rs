//! What a change set does to git's index beyond what its commits explain, and which uncommitted changes it throws away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};

use super::commit::compare_files;
use super::id::{ID_HASH, ObjectId};
use super::object::{ObjectKind, id_of};
use super::store::{ObjectDatabase, ObjectError};
use super::tree::{TreeDifference, TreeFile, differences};
use crate::command::index::{IndexRecord, IndexRecords, MAX_INDEX, flags_in, recorded_in};
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::{count, name};

/// Maximum number of files that are compared with HEAD's.
const MAX_NAMES: usize = 200_000;
/// Maximum number of files whose content is compared with that of a commit.
const MAX_COMPARED: usize = 2_000;
/// Maximum size of such a file, in bytes.
const MAX_BYTES: u64 = 24 << 20;

/// The folder and the commits of a HEAD.
#[derive(Debug)]
pub(super) struct HeadLocation {
    /// The folder with HEAD and the index.
    pub(super) folder: PathBuf,
    /// The files that it is about; `None` for a bare repository.
    pub(super) worktree: Option<PathBuf>,
    /// The tree of HEAD before and after.
    pub(super) before: Option<ObjectId>,
    pub(super) after: Option<ObjectId>,
}

type PathSet = BTreeSet<Vec<u8>>;

fn index(sides: &ChangeSides<'_>, side: Side, folder: &Path) -> Result<IndexRecords, String> {
    let path = folder.join("index");
    if sides.kind(side, &path).is_none() {
        return Ok(IndexRecords::new());
    }
    let bytes = sides.read(side, &path, MAX_INDEX);
    let read = bytes.and_then(|bytes| recorded_in(&bytes, ID_HASH));
    read.ok_or_else(|| {
        "git's index is damaged or split, or programs may read it in several ways".to_owned()
    })
}

fn file_of(recorded: &IndexRecord) -> Option<TreeFile> {
    Some((recorded.mode, ObjectId::from_bytes(recorded.object())?))
}

/// Returns what an index records of a file, also where it records only the tree of a folder above.
fn in_index(
    store: &ObjectDatabase<'_>,
    index: &IndexRecords,
    path: &[u8],
) -> Result<Option<TreeFile>, ObjectError> {
    if let Some(record) = index.get(path) {
        return Ok(file_of(record));
    }
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut folders = slashes.filter_map(|(at, _)| path.split_at_checked(at + 1));
    let above = folders.find_map(|(folder, rest)| Some((index.get(folder)?, rest)));
    let Some((record, rest)) = above else {
        return Ok(None);
    };
    in_tree(store, file_of(record).map(|(_, tree)| tree), rest)
}

/// Returns the paths of the files that two indexes record differently; in place of a folder of a sparse index, the files in it.
fn changed_paths(
    store: &ObjectDatabase<'_>,
    [before, after]: &[IndexRecords; 2],
) -> Result<PathSet, ObjectError> {
    let mut paths = PathSet::new();
    for path in before.keys().chain(after.keys()) {
        if before.get(path) == after.get(path) {
            continue;
        }
        if path.last() != Some(&b'/') {
            paths.insert(path.clone());
            continue;
        }
        let tree = |index: &IndexRecords| index.get(path).and_then(file_of).map(|(_, tree)| tree);
        let files = differences(store, tree(before).as_ref(), tree(after).as_ref())?;
        paths.extend(files.iter().map(|file| [&**path, &*file.path].concat()));
    }
    Ok(paths)
}

/// Returns the files with conflicts.
fn conflicts(sides: &ChangeSides<'_>, folder: &Path) -> BTreeSet<Vec<u8>> {
    let index = sides.read(Side::After, &folder.join("index"), MAX_INDEX);
    let flags = index
        .and_then(|index| flags_in(&index, ID_HASH))
        .unwrap_or_default();
    let files = flags.into_iter().filter(|(_, flags)| flags.in_conflict);
    files.map(|(path, _)| path).collect()
}

/// Returns whether a file has the content of an object; `None` if it is too long to be told.
pub(super) fn is_object(
    sides: &ChangeSides<'_>,
    side: Side,
    path: &Path,
    object: Option<TreeFile>,
) -> Option<bool> {
    let Some(file) = sides.open(side, path) else {
        return Some(object.is_none());
    };
    let Some((_, id)) = object else {
        return Some(false);
    };
    Some(id_of(ObjectKind::Blob, &file.whole(MAX_BYTES)?) == id)
}

/// The file of a path in HEAD's tree before and after.
type HeadEntry = (Option<TreeFile>, Option<TreeFile>);

/// How the index differs from HEAD, where it differs in another way than before.
#[derive(Debug, Default)]
struct StagedChanges {
    added: Vec<TreeDifference>,
    /// Number of files whose staged changes are gone.
    removed: usize,
}

impl StagedChanges {
    fn of(
        store: &ObjectDatabase<'_>,
        heads: &HeadComparison,
        indexes: &[IndexRecords; 2],
        skip: &PathSet,
    ) -> Result<Self, String> {
        let changed = changed_paths(store, indexes).map_err(|why| why.0)?;
        // A commit may have moved away from what the index holds.
        let names: BTreeSet<&Vec<u8>> = changed.iter().chain(heads.moved.keys()).collect();
        let names = names.into_iter().filter(|path| !skip.contains(*path));
        let mut found = Self::default();
        for path in names.take(MAX_NAMES) {
            let (head_was, head) = heads.at(store, path)?;
            let [was, is] = indexes
                .each_ref()
                .map(|index| in_index(store, index, path).map_err(|why| why.0));
            let (was, is) = (was?, is?);
            if was == is && !heads.moved.contains_key(path) {
                // A sparse index records it in another way.
            } else if is == head {
                // Committed, or as HEAD has it. Changes that were staged are gone if HEAD did not move.
                found.removed += usize::from(heads.before == heads.after && was != head_was);
            } else {
                found.added.push(TreeDifference {
                    path: path.clone(),
                    before: head,
                    after: is,
                    to: None,
                });
            }
        }
        Ok(found)
    }
}

/// What HEAD holds before and after.
struct HeadComparison {
    before: Option<ObjectId>,
    after: Option<ObjectId>,
    /// The files that differ between the two.
    moved: BTreeMap<Vec<u8>, HeadEntry>,
    /// Why that cannot be told.
    failure: Option<String>,
}

impl HeadComparison {
    fn read(store: &ObjectDatabase<'_>, place: &HeadLocation) -> Self {
        let (before, after) = (place.before, place.after);
        let (moved, failure) = match differences(store, before.as_ref(), after.as_ref()) {
            Ok(moved) => (moved, None),
            Err(why) => (Vec::new(), Some(why.0)),
        };
        let moved = moved.into_iter();
        Self {
            before,
            after,
            moved: moved
                .map(|one| (one.path, (one.before, one.after)))
                .collect(),
            failure,
        }
    }

    fn at(&self, store: &ObjectDatabase<'_>, path: &[u8]) -> Result<HeadEntry, String> {
        if let Some(known) = self.moved.get(path) {
            return Ok(*known);
        }
        let head = in_tree(store, self.after, path).map_err(|why| why.0)?;
        Ok((head, head))
    }
}

/// Returns what the next commit would change, where it is not what it would have changed before.
///
/// # Errors
/// Why the index is not understood.
pub(super) fn staged(
    sides: &ChangeSides<'_>,
    store: &ObjectDatabase<'_>,
    place: &HeadLocation,
    budget: &mut Budget,
) -> Result<Option<Meaning>, String> {
    let has_index = |side| sides.kind(side, &place.folder.join("index")).is_some();
    let is_bare = place.worktree.is_none();
    if is_bare && !has_index(Side::Before) && !has_index(Side::After) {
        return Ok(None);
    }
    let of_side = |side| index(sides, side, &place.folder);
    let indexes = [of_side(Side::Before)?, of_side(Side::After)?];
    let heads = HeadComparison::read(store, place);
    // Those with conflicts are said as what they are.
    let skip = conflicts(sides, &place.folder);
    let StagedChanges { added, removed } = StagedChanges::of(store, &heads, &indexes, &skip)?;
    let gone = (removed > 0).then(|| format!("{} taken out of the index", count(removed, "file")));
    let failure = heads
        .failure
        .map(|why| format!("what else is staged for the next commit cannot be told: {why}"));
    if added.is_empty() {
        let title = gone.or_else(|| {
            failure
                .as_ref()
                .map(|_| "staged for the next commit".to_owned())
        });
        let mut meaning = title.map(|title| Meaning::new(MeaningKind::Staged, title));
        if let Some(meaning) = &mut meaning {
            meaning.warnings.extend(failure);
        }
        return Ok(meaning);
    }
    let shown = compare_files(store, added, budget);
    let title = format!("staged for the next commit: {}", shown.sum());
    let mut meaning = Meaning::new(MeaningKind::Staged, title);
    meaning.lines.extend(gone);
    meaning.warnings.extend(failure);
    shown.fill(&mut meaning);
    Ok(Some(meaning))
}

fn in_tree(
    store: &ObjectDatabase<'_>,
    tree: Option<ObjectId>,
    path: &[u8],
) -> Result<Option<TreeFile>, ObjectError> {
    let Some(tree) = tree else {
        return Ok(None);
    };
    let entry = store.lookup(&tree, path)?;
    let file = entry.filter(|entry| !entry.is_folder());
    Ok(file.map(|entry| (entry.mode, entry.id)))
}

/// Which changed files are compared, and how.
pub(super) struct FileSelection<'a> {
    pub(super) select: &'a dyn Fn(&Path) -> bool,
    /// Whether HEAD was reset, so that no commit took the changes.
    pub(super) goes_back: bool,
}

/// The changed files of a worktree, compared with HEAD.
#[derive(Debug, Default)]
pub(super) struct WorktreeComparison {
    /// Files whose uncommitted changes are gone.
    pub(super) thrown_away: Vec<String>,
}

/// Compares the changed files of a worktree with HEAD's, before and after.
pub(super) fn compare_worktree(
    sides: &ChangeSides<'_>,
    store: &ObjectDatabase<'_>,
    place: &HeadLocation,
    of: &FileSelection<'_>,
    budget: &mut Budget,
) -> WorktreeComparison {
    let mut compared = WorktreeComparison::default();
    let Some(worktree) = &place.worktree else {
        return compared;
    };
    let is_git = |path: &Path| path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
    let changes = sides.below(worktree);
    let files = changes.filter(|change| !is_git(change.path) && (of.select)(change.path));
    for change in files.take(MAX_COMPARED) {
        let Ok(inside) = change.path.strip_prefix(worktree) else {
            continue;
        };
        let inside = inside.as_os_str().as_encoded_bytes();
        if inside.is_empty() || budget.is_over() {
            continue;
        }
        let (Ok(was), Ok(is)) = (
            in_tree(store, place.before, inside),
            in_tree(store, place.after, inside),
        ) else {
            continue;
        };
        let is_file = |state: Option<&haft::change::EntryState>| {
            matches!(state, None | Some(haft::change::EntryState::File { .. }))
        };
        if !is_file(change.state(Side::Before)) || !is_file(change.state(Side::After)) {
            continue;
        }
        // What cannot be told is not called thrown away: the file itself is shown.
        let same_before = is_object(sides, Side::Before, change.path, was) != Some(false);
        let same_after = is_object(sides, Side::After, change.path, is) == Some(true);
        let goes_back = of.goes_back || (was == is && was.is_some());
        let path = || change.path.to_string_lossy().into_owned();
        if same_after && !same_before && goes_back && change.before.is_some() {
            compared.thrown_away.push(path());
        }
    }
    compared
}

/// Returns a warning about uncommitted changes that are gone.
pub(super) fn thrown_away(files: &[String]) -> String {
    const MAX_LISTED: usize = 5;
    let mut names: Vec<String> = files
        .iter()
        .take(MAX_LISTED)
        .map(|path| name(path.as_bytes()))
        .collect();
    if files.len() > MAX_LISTED {
        names.push(format!("and {} more", files.len() - MAX_LISTED));
    }
    let files = count(files.len(), "file");
    format!(
        "uncommitted changes of {files} are thrown away: {}",
        names.join(", ")
    )
}

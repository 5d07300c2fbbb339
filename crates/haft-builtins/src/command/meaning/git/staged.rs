//! What a change set does to git's index beyond what its commits explain, and which uncommitted changes it throws away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};

use super::commit::compare_files;
use super::id::Id;
use super::object::{ObjectKind, id_of};
use super::store::{Store, Unreadable};
use super::tree::{Difference, FileAt};
use crate::command::index::{MAX_INDEX, Recorded, flags_in, recorded_in};
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{Side, Sides};
use crate::command::meaning::words::{count, name};

/// Maximum number of files whose content is compared with that of a commit.
const MAX_COMPARED: usize = 2_000;
/// Maximum size of such a file, in bytes.
const MAX_BYTES: u64 = 24 << 20;

/// The folder and the commits of a HEAD.
#[derive(Debug)]
pub(super) struct Place {
    /// The folder with HEAD and the index.
    pub(super) folder: PathBuf,
    /// The files that it is about; `None` for a bare repository.
    pub(super) worktree: Option<PathBuf>,
    /// The tree of HEAD before and after.
    pub(super) before: Option<Id>,
    pub(super) after: Option<Id>,
}

type Index = BTreeMap<Vec<u8>, Recorded>;

fn index(sides: &Sides<'_>, side: Side, folder: &Path) -> Result<Index, String> {
    let path = folder.join("index");
    if sides.kind(side, &path).is_none() {
        return Ok(Index::new());
    }
    let bytes = sides.read(side, &path, MAX_INDEX);
    let read = bytes.and_then(|bytes| recorded_in(&bytes));
    read.ok_or_else(|| "git's index is damaged, or of a kind that haft does not read".to_owned())
}

/// Returns the files with conflicts.
fn conflicts(sides: &Sides<'_>, folder: &Path) -> BTreeSet<Vec<u8>> {
    let index = sides.read(Side::After, &folder.join("index"), MAX_INDEX);
    let flags = index.and_then(|index| flags_in(&index)).unwrap_or_default();
    let files = flags.into_iter().filter(|(_, flags)| flags.in_conflict);
    files.map(|(path, _)| path).collect()
}

/// Returns whether a file has the content of an object; `None` if it is too long to be told.
pub(super) fn is_object(
    sides: &Sides<'_>,
    side: Side,
    path: &Path,
    object: Option<FileAt>,
) -> Option<bool> {
    let Some(file) = sides.open(side, path) else {
        return Some(object.is_none());
    };
    let Some((_, id)) = object else {
        return Some(false);
    };
    Some(id_of(ObjectKind::Blob, &file.whole(MAX_BYTES)?) == id)
}

/// Returns what is put into the index, or taken out of it, and is not committed.
///
/// # Errors
/// Why the index is not understood.
pub(super) fn staged(
    sides: &Sides<'_>,
    store: &Store<'_>,
    place: &Place,
    budget: &mut Budget,
) -> Result<Option<Meaning>, String> {
    let before = index(sides, Side::Before, &place.folder)?;
    let after = index(sides, Side::After, &place.folder)?;
    let conflicts = conflicts(sides, &place.folder);
    let names: std::collections::BTreeSet<&Vec<u8>> = before
        .iter()
        .filter(|(path, was)| after.get(*path) != Some(*was))
        .chain(
            after
                .iter()
                .filter(|(path, is)| before.get(*path) != Some(*is)),
        )
        .map(|(path, _)| path)
        // Said as what they are.
        .filter(|path| !conflicts.contains(*path))
        .collect();
    let mut changed: Vec<&Vec<u8>> = names.into_iter().collect();
    let (mut added, mut removed) = (Vec::new(), 0_usize);
    changed.truncate(200_000);
    let file_of = |recorded: &Recorded| (recorded.0, Id(recorded.1));
    for path in changed {
        let head = in_tree(store, place.after, path).map_err(|why| why.0)?;
        let is = after.get(path).map(file_of);
        if is == head {
            // Committed, or as HEAD has it. Changes that were staged are gone if HEAD did not move.
            let was = before.get(path).map(file_of);
            removed += usize::from(place.before == place.after && was != head);
        } else {
            added.push(Difference {
                path: path.clone(),
                before: head,
                after: is,
                to: None,
            });
        }
    }
    if added.is_empty() {
        let title = format!("{} taken out of the index", count(removed, "file"));
        let meaning = Meaning::new(MeaningKind::Staged, title);
        return Ok((removed > 0).then_some(meaning));
    }
    let shown = compare_files(store, added, budget);
    let title = format!("staged for the next commit: {}", shown.sum());
    let mut meaning = Meaning::new(MeaningKind::Staged, title);
    if removed > 0 {
        let line = format!("{} taken out of the index", count(removed, "file"));
        meaning.lines.push(line);
    }
    shown.fill(&mut meaning);
    Ok(Some(meaning))
}

fn in_tree(store: &Store<'_>, tree: Option<Id>, path: &[u8]) -> Result<Option<FileAt>, Unreadable> {
    let Some(tree) = tree else {
        return Ok(None);
    };
    let entry = store.lookup(&tree, path)?;
    let file = entry.filter(|entry| !entry.is_folder());
    Ok(file.map(|entry| (entry.mode, entry.id)))
}

/// Which changed files are compared, and how.
pub(super) struct Selection<'a> {
    pub(super) select: &'a dyn Fn(&Path) -> bool,
    /// Whether HEAD was reset, so that no commit took the changes.
    pub(super) goes_back: bool,
}

/// The changed files of a worktree, compared with HEAD.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Files whose uncommitted changes are gone.
    pub(super) thrown_away: Vec<String>,
}

/// Compares the changed files of a worktree with HEAD's, before and after.
pub(super) fn compare_worktree(
    sides: &Sides<'_>,
    store: &Store<'_>,
    place: &Place,
    of: &Selection<'_>,
    budget: &mut Budget,
) -> Compared {
    let mut compared = Compared::default();
    let Some(worktree) = &place.worktree else {
        return compared;
    };
    let is_git = |path: &Path| path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
    let changes = sides.below(worktree);
    let files = changes.filter(|change| !is_git(&change.path) && (of.select)(&change.path));
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
        let is_file = |state: &Option<haft::change::State>| {
            matches!(state, None | Some(haft::change::State::File { .. }))
        };
        if !is_file(&change.before) || !is_file(&change.after) {
            continue;
        }
        // What cannot be told is not called thrown away: the file itself is shown.
        let same_before = is_object(sides, Side::Before, &change.path, was) != Some(false);
        let same_after = is_object(sides, Side::After, &change.path, is) == Some(true);
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

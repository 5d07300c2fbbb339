//! Finds the repositories that a change set touches, and reads what it does to each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::workspace::EntryKind;

use super::cached::cached_trees;
use super::id::ObjectId;
use super::internals::internals;
use super::reflogs::lost_entries;
use super::refs::{Refs, Target, read_target, updates};
use super::staged::{
    FileSelection, HeadLocation, WorktreeComparison, compare_worktree, staged, thrown_away,
};
use super::stash::{Stash, StashLists, log_lines, stash_meanings, stashes};
use super::state::states;
use super::store::ObjectDatabase;
use super::update::{HeadUpdate, RefContext, ReflogHint, at_place};
use super::worktrees::{checked_out, place_of};
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::name;

/// Maximum number of repositories that are read.
const MAX_REPOSITORIES: usize = 20;
/// Maximum size of a settings file, in bytes.
const MAX_CONFIG: u64 = 256 << 10;
/// Maximum size of a log of HEAD, in bytes.
const MAX_LOG: u64 = 4 << 20;
/// Entries that changed repositories have in their folders.
const MARKS: [&str; 17] = [
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "FETCH_HEAD",
    "HEAD",
    "MERGE_HEAD",
    "ORIG_HEAD",
    "REVERT_HEAD",
    "index",
    "lfs",
    "logs",
    "objects",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "rr-cache",
    "worktrees",
];

/// The beginning of the name of a file with records that several indexes share.
pub(super) const SHARED_INDEX: &str = "sharedindex.";

/// Returns the folders of the repositories in which something changes.
pub(in crate::command::meaning) fn find_repositories(sides: &ChangeSides<'_>) -> BTreeSet<PathBuf> {
    find_repositories_up_to(sides, MAX_REPOSITORIES)
}

/// Returns the folders of at most `most` repositories in which something changes.
pub(super) fn find_repositories_up_to(sides: &ChangeSides<'_>, most: usize) -> BTreeSet<PathBuf> {
    let mut known: BTreeMap<PathBuf, bool> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for change in sides.changes() {
        let mut path = change.path;
        while let (Some(folder), Some(last)) = (path.parent(), path.file_name()) {
            let is_mark = last
                .to_str()
                .is_some_and(|last| MARKS.contains(&last) || last.starts_with(SHARED_INDEX));
            if is_mark {
                let is_one = *known
                    .entry(folder.to_owned())
                    .or_insert_with(|| is_repository(sides, folder));
                if is_one {
                    found.insert(folder.to_owned());
                    break;
                }
            }
            path = folder;
        }
        if found.len() >= most {
            break;
        }
    }
    found
}

fn is_repository(sides: &ChangeSides<'_>, folder: &Path) -> bool {
    [Side::Before, Side::After].into_iter().any(|side| {
        let kind = |name: &str| sides.kind(side, &folder.join(name));
        kind("HEAD").is_some()
            && kind("objects") == Some(EntryKind::Directory)
            && kind("refs") == Some(EntryKind::Directory)
    })
}

/// What the settings of a repository say about how it is stored.
pub(super) struct RepositoryLayout {
    /// Why objects may be missing.
    pub(super) incomplete: Option<&'static str>,
    pub(super) worktree: Option<PathBuf>,
}

impl RepositoryLayout {
    /// Reads the layout from the repository's settings, as they are before and after the changes.
    ///
    /// # Errors
    /// Why haft does not understand the repository.
    pub(super) fn read(sides: &ChangeSides<'_>, folder: &Path) -> Result<Self, &'static str> {
        let mut layout = Self {
            incomplete: None,
            worktree: None,
        };
        for side in [Side::Before, Side::After] {
            let text = sides.read(side, &folder.join("config"), MAX_CONFIG);
            let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
            let lower = text.to_ascii_lowercase();
            if lower.contains("objectformat") && lower.contains("sha256") {
                return Err("it names its objects by SHA-256");
            }
            if lower.contains("reftable")
                || sides.kind(side, &folder.join("reftable")) == Some(EntryKind::Directory)
            {
                return Err("it keeps its branches in a reftable");
            }
            if lower.contains("promisor") || lower.contains("partialclone") {
                layout.incomplete = Some("this clone is partial");
            }
            layout.worktree = worktree_of(sides, folder, &text);
        }
        let shallow = folder.join("shallow");
        if [Side::Before, Side::After]
            .into_iter()
            .any(|side| sides.kind(side, &shallow).is_some())
        {
            layout.incomplete = Some("this clone is shallow");
        }
        Ok(layout)
    }
}

fn worktree_of(sides: &ChangeSides<'_>, folder: &Path, config: &str) -> Option<PathBuf> {
    let lines = config.lines().filter_map(|line| line.split_once('='));
    let named = lines
        .filter(|(key, _)| key.trim().eq_ignore_ascii_case("worktree"))
        .map(|(_, to)| to.trim().trim_matches('"').to_owned())
        .next_back();
    if let Some(to) = named {
        return sides.named_in(folder, &to);
    }
    let is_others = folder == Path::new(".git")
        && (sides.own_part() != folder || sides.prefix() != Path::new(""));
    let is_git = folder.file_name().is_some_and(|name| name == ".git");
    // The files are another worktree's, or have other paths here.
    (is_git && !is_others).then(|| folder.parent().unwrap_or(Path::new("")).to_owned())
}

/// The folders with a HEAD: the repository's own, and those of its worktrees in which something changes.
pub(super) fn head_folders(
    sides: &ChangeSides<'_>,
    repository: &Path,
) -> Vec<(PathBuf, Option<PathBuf>)> {
    let linked = repository.join("worktrees");
    let mut folders = BTreeSet::new();
    for change in sides.below(&linked) {
        let name = change.path.strip_prefix(&linked).ok();
        let name = name.and_then(|path| path.iter().next());
        folders.extend(name.map(|name| linked.join(name)));
    }
    let worktree = |folder: &Path| {
        let text = sides.read(Side::After, &folder.join("gitdir"), MAX_CONFIG)?;
        let text = String::from_utf8(text).ok()?;
        let inside = sides.named_in(folder, text.trim())?;
        inside.parent().map(Path::to_owned)
    };
    folders
        .into_iter()
        .take(20)
        .map(|folder| (folder.clone(), worktree(&folder)))
        .collect()
}

/// Returns what changes in the repository in a folder mean. `select` says which of the changes are asked about.
pub(in crate::command::meaning) fn read_repository(
    sides: &ChangeSides<'_>,
    folder: &Path,
    select: &dyn Fn(&Path) -> bool,
    budget: &mut Budget,
) -> Vec<Meaning> {
    let (mut found, failure) = match understood(sides, folder, select, budget) {
        Ok(found) => (found, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    if let Some(place) = elsewhere(sides, folder) {
        for meaning in &mut found {
            meaning.title = format!("{} (in {place})", meaning.title);
        }
    }
    found.extend(internals(sides, folder, select, failure.as_deref()));
    found
}

/// Returns the name of a repository that is not the workspace's own.
fn elsewhere(sides: &ChangeSides<'_>, folder: &Path) -> Option<String> {
    if folder == Path::new(".git") {
        return None;
    }
    let text = sides.read(Side::After, &folder.join("config"), MAX_CONFIG);
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    let place = worktree_of(sides, folder, &text);
    let place = place.filter(|place| !place.as_os_str().is_empty());
    let place = place.unwrap_or_else(|| folder.to_owned());
    Some(name(place.as_os_str().as_encoded_bytes()))
}

fn understood(
    sides: &ChangeSides<'_>,
    folder: &Path,
    select: &dyn Fn(&Path) -> bool,
    budget: &mut Budget,
) -> Result<Vec<Meaning>, String> {
    let layout = RepositoryLayout::read(sides, folder)?;
    let store = ObjectDatabase::new(sides, folder, layout.incomplete);
    let before = Refs::read(sides, Side::Before, folder)?;
    let after = Refs::read(sides, Side::After, folder)?;
    let mut folders = vec![(folder.to_owned(), layout.worktree)];
    folders.extend(head_folders(sides, folder));
    let heads = folders
        .iter()
        .map(|(part, _)| HeadUpdate::read(sides, folder, part));
    let heads: Vec<HeadUpdate> = heads.collect::<Result<_, _>>()?;
    let lists = StashLists {
        before: stashes(sides, Side::Before, folder, &before),
        after: stashes(sides, Side::After, folder, &after),
    };
    let heads_before = heads.iter().map(|head| head.before.as_ref());
    let heads_after = heads.iter().map(|head| head.after.as_ref());
    let roots_before = roots(&before, heads_before, &lists.before);
    let roots_after = roots(&after, heads_after, &lists.after);
    let mut look = RefContext {
        store: &store,
        after: &after,
        heads: &heads,
        elsewhere: &checked_out(sides, folder),
        hints: hints(sides, &folders),
        branches_after: after.below("refs/heads/"),
        roots_before,
        roots_after,
        budget,
    };
    let mut found = look.meanings(&updates(&before, &after));
    let parts: Vec<PathBuf> = folders.iter().map(|(part, _)| part.clone()).collect();
    found.extend(lost_entries(
        sides,
        &store,
        &after,
        &parts,
        &look.roots_after,
    ));
    found.extend(stash_meanings(sides, &store, &folders, &lists, budget));
    for ((folder, worktree), head) in folders.into_iter().zip(&heads) {
        let tree = |target: &Option<Target>, refs: &Refs| {
            let id = refs.resolve(target.as_ref()?)?;
            Some(store.peel(&id).ok()?.0.tree)
        };
        let place = HeadLocation {
            folder,
            worktree,
            before: tree(&head.before, &before),
            after: tree(&head.after, &after),
        };
        let of_index = of_index(sides, &store, &place, budget)?.into_iter();
        found.extend(of_index.map(|meaning| at_place(meaning, head.place.as_deref())));
        let goes_back = found.iter().any(|one| one.kind == MeaningKind::Reset);
        let selection = FileSelection { select, goes_back };
        let compared = compare_worktree(sides, &store, &place, &selection, budget);
        add_worktree(&mut found, &compared);
    }
    Ok(found)
}

/// Returns what changes in the index beside a HEAD, and in what is unfinished there.
fn of_index(
    sides: &ChangeSides<'_>,
    store: &ObjectDatabase<'_>,
    place: &HeadLocation,
    budget: &mut Budget,
) -> Result<Vec<Meaning>, String> {
    let mut found = states(sides, &place.folder);
    found.extend(cached_trees(sides, &place.folder));
    found.extend(staged(sides, store, place, budget)?);
    Ok(found)
}

/// Returns everything that is reachable: from refs, HEADs and stashes.
fn roots<'h>(
    refs: &Refs,
    heads: impl Iterator<Item = Option<&'h Target>>,
    stashes: &[Stash],
) -> Vec<ObjectId> {
    let mut roots = refs.ids();
    roots.extend(heads.flatten().filter_map(|target| refs.resolve(target)));
    roots.extend(stashes.iter().map(|stash| stash.id));
    roots
}

/// Adds a warning about the files of a worktree whose uncommitted changes are gone.
fn add_worktree(found: &mut Vec<Meaning>, compared: &WorktreeComparison) {
    let is_stash = |meaning: &Meaning| meaning.kind == MeaningKind::Stash;
    let has_stash = found.iter().any(is_stash);
    if !compared.thrown_away.is_empty() && !has_stash {
        let warning = thrown_away(&compared.thrown_away);
        let back = |meaning: &&mut Meaning| {
            matches!(meaning.kind, MeaningKind::Reset | MeaningKind::Checkout)
        };
        if let Some(meaning) = found.iter_mut().find(back) {
            meaning.warnings.push(warning);
        } else {
            let title = "files go back to the last commit";
            let mut meaning = Meaning::new(MeaningKind::Reset, title);
            meaning.warnings.push(warning);
            found.push(meaning);
        }
    }
}

impl HeadUpdate {
    fn read(sides: &ChangeSides<'_>, repository: &Path, part: &Path) -> Result<Self, String> {
        Ok(Self {
            before: head(sides, Side::Before, part)?,
            after: head(sides, Side::After, part)?,
            place: place_of(sides, repository, part),
        })
    }
}

fn head(sides: &ChangeSides<'_>, side: Side, folder: &Path) -> Result<Option<Target>, String> {
    let path = folder.join("HEAD");
    match sides.kind(side, &path) {
        None => Ok(None),
        Some(EntryKind::File) => match read_target(sides, side, &path) {
            Some(target) => Ok(Some(target)),
            None => Err("its HEAD is damaged".to_owned()),
        },
        Some(_) => Err("its HEAD is a link or no file".to_owned()),
    }
}

/// Returns the lines that git added to the logs of HEADs.
fn hints(sides: &ChangeSides<'_>, folders: &[(PathBuf, Option<PathBuf>)]) -> Vec<ReflogHint> {
    const MAX_HINTS: usize = 1_000;
    let mut hints = Vec::new();
    for (folder, _) in folders {
        let log = folder.join("logs/HEAD");
        let before = sides.read(Side::Before, &log, MAX_LOG).unwrap_or_default();
        let after = sides.read(Side::After, &log, MAX_LOG).unwrap_or_default();
        let Some(added) = after.strip_prefix(&*before) else {
            continue;
        };
        let lines = log_lines(added).take(MAX_HINTS);
        hints.extend(lines.map(|(new, text)| ReflogHint { new, text }));
    }
    hints
}

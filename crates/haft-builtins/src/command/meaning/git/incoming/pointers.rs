//! `Pointers`: the objects that changed refs, logs and HEADs of a repository name, before and after.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::super::id::{HEX, ObjectId};
use super::super::refs::{Refs, read_target};
use super::PathRole;
use super::pointer_file::{HEAD, MAX_FILE, PACKED, PointerFile, is_log, left};
use crate::command::meaning::sides::{ChangeSides, PathChange, Side};
use crate::command::meaning::words::name;

/// Number of lines at the end of a log from which commits are taken as known.
const MAX_KNOWN_LINES: usize = 200;
/// The refs that are ends of branches: here, of other repositories, and the last stash.
const BRANCHES: [&str; 3] = ["refs/heads/", "refs/remotes/", "refs/stash"];

/// An object that is named for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewPointer {
    pub(super) id: ObjectId,
    /// The changed file that names it.
    pub(super) path: PathBuf,
    /// The ref that leads to it, or the file.
    pub(super) name: String,
}

impl NewPointer {
    /// Whether it only mirrors what another repository has.
    pub(super) fn is_fetched(&self) -> bool {
        let name = self.name.strip_prefix("logs/").unwrap_or(&self.name);
        name.starts_with("refs/remotes/") || name == "FETCH_HEAD"
    }

    /// Whether it is a tag, which a fetch brings along.
    pub(super) fn is_tag(&self) -> bool {
        self.name.starts_with("refs/tags/")
    }

    /// Returns the object in whose place git reads it, as the ref says it.
    pub(super) fn replaces(&self) -> Option<&str> {
        self.name.strip_prefix("refs/replace/")
    }
}

/// The objects that a repository's files name.
#[derive(Debug)]
pub(super) struct Pointers {
    /// What no ref and no HEAD led to before, in the order of the changed files.
    pub(super) new: Vec<NewPointer>,
    /// What refs, HEADs and the ends of logs named before: HEADs first.
    pub(super) old: Vec<ObjectId>,
    /// What HEADs and branches named before, also those of other repositories.
    pub(super) ends: Vec<ObjectId>,
    /// What the changed refs and HEADs among them named.
    pub(super) moved: Vec<ObjectId>,
    /// The files from which git may take something else than haft does, and why, as a clause.
    pub(super) odd: Vec<(PathBuf, String)>,
}

impl Pointers {
    /// Reads the changed files of a repository that name objects, and all its refs as they were.
    ///
    /// # Errors
    /// The file that is not understood, and why, as a clause.
    pub(super) fn read(
        sides: &ChangeSides<'_>,
        repository: &Path,
        changes: &[(PathRole, PathChange<'_>)],
    ) -> Result<Self, (PathBuf, String)> {
        let refs = Refs::read(sides, Side::Before, repository);
        let refs = refs.map_err(|why| (repository.to_owned(), why))?;
        let mut old = heads(sides, repository, &refs);
        let mut ends = old.clone();
        ends.extend(BRANCHES.iter().flat_map(|folder| refs.below(folder)));
        old.extend(refs.ids());
        let (mut moved, mut odd) = (Vec::new(), Vec::new());
        let mut new: BTreeMap<(PathBuf, ObjectId), NewPointer> = BTreeMap::new();
        let pointers = changes
            .iter()
            .filter(|(role, _)| *role == PathRole::Pointer);
        for (_, change) in pointers {
            let inner = change.path.strip_prefix(repository).unwrap_or(change.path);
            let before = named(sides, Side::Before, change, inner)?;
            let after = named(sides, Side::After, change, inner)?;
            let known: HashSet<ObjectId> = before.iter().map(|one| one.id).collect();
            let is_end = |one: &&NewPointer| {
                one.name.starts_with("refs/") || one.name == HEAD || one.name.ends_with("/HEAD")
            };
            let moving = before.iter().filter(is_end);
            moved.extend(moving.filter(|one| !is_log(&one.name)).map(|one| one.id));
            let oddity = PointerFile {
                sides,
                repository,
                inner,
            }
            .oddity(change.path);
            odd.extend(oddity.map(|why| (change.path.to_owned(), why)));
            if inner == Path::new(PACKED) {
                let read = Refs::read(sides, Side::After, repository);
                odd.extend(read.err().map(|why| (change.path.to_owned(), why)));
            }
            let last = before.iter().rev().take(MAX_KNOWN_LINES);
            old.extend(last.map(|one| one.id));
            // That of another object is another one.
            let is_same = |one: &NewPointer| match one.replaces() {
                Some(_) => before
                    .iter()
                    .any(|was| (was.id, &was.name) == (one.id, &one.name)),
                None => known.contains(&one.id),
            };
            let fresh = after.into_iter().filter(|one| !is_same(one));
            for one in fresh {
                let key = (change.path.to_owned(), one.id);
                new.entry(key).or_insert(one);
            }
        }
        let known: HashSet<ObjectId> = old.iter().copied().collect();
        let is_new = |one: &NewPointer| !known.contains(&one.id) || one.replaces().is_some();
        Ok(Self {
            new: new.into_values().filter(is_new).collect(),
            old,
            ends,
            moved,
            odd,
        })
    }
}

/// Returns the commits of HEADs before the changes.
fn heads(sides: &ChangeSides<'_>, repository: &Path, refs: &Refs) -> Vec<ObjectId> {
    let parts = [repository.to_owned(), sides.own_part()];
    let heads = parts.iter().map(|part| part.join(HEAD));
    let targets = heads.filter_map(|head| read_target(sides, Side::Before, &head));
    targets.filter_map(|target| refs.resolve(&target)).collect()
}

/// Returns the objects that a file names.
fn named(
    sides: &ChangeSides<'_>,
    side: Side,
    change: &PathChange<'_>,
    inner: &Path,
) -> Result<Vec<NewPointer>, (PathBuf, String)> {
    if change.state(side).is_none() {
        return Ok(Vec::new());
    }
    let text = sides.read(side, change.path, MAX_FILE);
    let text = text.ok_or_else(|| {
        let shown = name(change.path.as_os_str().as_encoded_bytes());
        (
            change.path.to_owned(),
            format!("{shown} cannot be read, or is too long"),
        )
    })?;
    let inner = inner.to_string_lossy();
    let is_log = is_log(&inner);
    let mut found = Vec::new();
    let mut add = |id: Option<ObjectId>, name: &str| {
        found.extend(id.map(|id| NewPointer {
            id,
            path: change.path.to_owned(),
            name: name.to_owned(),
        }));
    };
    let mut packed = String::new();
    for line in text.split(|byte| *byte == b'\n') {
        let id = |at: usize| ObjectId::from_hex(line.get(at..at + HEX)?);
        if is_log {
            add(id(0), &inner);
            add(id(HEX + 1), &inner);
            add(left(line).and_then(ObjectId::from_hex), &inner);
        } else if inner == PACKED {
            // A line with the commit of a tag follows that of the tag.
            if line.first() == Some(&b'^') {
                add(id(1), &packed);
            } else {
                let name = line.get(HEX + 1..).unwrap_or_default();
                String::from_utf8_lossy(name).trim().clone_into(&mut packed);
                add(id(0), &packed);
            }
        } else {
            add(id(0), &inner);
        }
    }
    Ok(found)
}

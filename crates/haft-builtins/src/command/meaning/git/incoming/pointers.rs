//! `Pointers`: the objects that changed refs, logs and HEADs of a repository name, before and after.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::super::id::ObjectId;
use super::super::refs::{Refs, Target, read_target};
use super::PathRole;
use crate::command::meaning::sides::{ChangeSides, PathChange, Side};
use crate::command::meaning::words::name;

/// Maximum size of a file that names objects, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// Number of lines at the end of a log from which commits are taken as known.
const MAX_KNOWN_LINES: usize = 200;
/// The length of an object's name in hex.
const HEX: usize = 40;

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

    /// Returns the object in whose place git reads it.
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
    /// What the changed refs and HEADs among them named.
    pub(super) moved: Vec<ObjectId>,
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
        let mut old = heads(sides, repository);
        let refs = Refs::read(sides, Side::Before, repository);
        let refs = refs.map_err(|why| (repository.to_owned(), why))?;
        old.extend(refs.ids());
        let mut moved = Vec::new();
        let mut new: BTreeMap<(PathBuf, ObjectId), NewPointer> = BTreeMap::new();
        let pointers = changes
            .iter()
            .filter(|(role, _)| *role == PathRole::Pointer);
        for (_, change) in pointers {
            let inner = change.path.strip_prefix(repository).unwrap_or(change.path);
            let before = named(sides, Side::Before, change, inner)?;
            let after = named(sides, Side::After, change, inner)?;
            let known: HashSet<ObjectId> = before.iter().map(|one| one.id).collect();
            if !before.iter().any(|one| is_log(&one.name)) {
                moved.extend(before.iter().map(|one| one.id));
            }
            let last = before.iter().rev().take(MAX_KNOWN_LINES);
            old.extend(last.map(|one| one.id));
            let fresh = after.into_iter().filter(|one| !known.contains(&one.id));
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
            moved,
        })
    }
}

/// Returns the commits of HEADs before the changes that are on no branch.
fn heads(sides: &ChangeSides<'_>, repository: &Path) -> Vec<ObjectId> {
    let parts = [repository.to_owned(), sides.own_part()];
    let heads = parts.iter().map(|part| part.join("HEAD"));
    let targets = heads.filter_map(|head| read_target(sides, Side::Before, &head));
    let ids = targets.filter_map(|target| match target {
        Target::Id(id) => Some(id),
        Target::Ref(to) => match read_target(sides, Side::Before, &repository.join(to))? {
            Target::Id(id) => Some(id),
            Target::Ref(_) => None,
        },
    });
    ids.collect()
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
            add(left(line), &inner);
        } else if inner == "packed-refs" {
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

fn is_log(inner: &str) -> bool {
    inner.starts_with("logs/") || inner.contains("/logs/")
}

/// Returns the commit that HEAD left, by the message of a line in its log: `git checkout -` goes back to it.
fn left(line: &[u8]) -> Option<ObjectId> {
    let at = line.iter().position(|byte| *byte == b'\t')?;
    let from = line
        .get(at + 1..)?
        .strip_prefix(b"checkout: moving from ")?;
    ObjectId::from_hex(from.get(..HEX)?)
}

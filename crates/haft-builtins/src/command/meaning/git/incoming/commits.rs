//! The commits that changed refs bring into a repository, and what each adds to its parents.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::super::headers::Commit;
use super::super::history::exclusive;
use super::super::id::ObjectId;
use super::super::object::{GitObject, ObjectKind};
use super::super::store::ObjectDatabase;
use super::merge_base::merge_bases;
use super::pointers::{NewPointer, Pointers};
use super::trees::{KnownTree, NewEntry, TreeAt, new_entries};
use super::{Carrier, IncomingReader};
use crate::command::meaning::words::name;

/// Number of commits that are followed from a new one to what was known before the whole history is compared.
const MAX_NEAR: usize = 64;
/// Maximum size of an object whose kind is looked at, in bytes.
const MAX_OBJECT: u64 = 1 << 20;

/// The commits that are new, and why there may be more.
#[derive(Default)]
struct NewCommits {
    commits: Vec<Rc<Commit>>,
    failure: Option<String>,
}

impl IncomingReader<'_> {
    /// Reads what changed refs, logs and HEADs bring in.
    pub(super) fn read_commits(&mut self, store: &ObjectDatabase<'_>, pointers: &Pointers) {
        let mut tips = Vec::new();
        for (path, why) in &pointers.odd {
            self.doubt(path, why.clone());
        }
        for pointer in &pointers.new {
            self.read_replacement(pointer);
            match store.object(&pointer.id, MAX_OBJECT) {
                Err(why) => self.doubt(&pointer.path, why.0),
                Ok(object) => match tip(store, &pointer.id, &object) {
                    Ok(Tip::Commit(id)) => tips.push((pointer, id)),
                    Ok(Tip::Tree(tree)) => self.read_tree(store, pointers, pointer, tree),
                    // A file without a name.
                    Ok(Tip::Blob) => {}
                    Err(why) => self.doubt(&pointer.path, why),
                },
            }
        }
        let fetched = tips.iter().filter(|(pointer, _)| pointer.is_fetched());
        let fetched: Vec<ObjectId> = fetched.map(|(_, id)| *id).collect();
        let of_fetched = new_commits(store, &fetched, &pointers.old);
        let theirs: HashSet<ObjectId> = of_fetched.commits.iter().map(|one| one.id).collect();
        // A tag in what was fetched came with it.
        let is_theirs = |(pointer, id): &&(&NewPointer, ObjectId)| {
            pointer.is_fetched() || (pointer.is_tag() && theirs.contains(id))
        };
        let own: Vec<ObjectId> = tips
            .iter()
            .filter(|tip| !is_theirs(tip))
            .map(|(_, id)| *id)
            .collect();
        let of_own = new_commits(store, &own, &pointers.old);
        let carrier_of = |is_fetched: bool| {
            let mut all = tips.iter().filter(|tip| is_theirs(tip) == is_fetched);
            all.next().map(|(pointer, _)| Carrier {
                path: &pointer.path,
                is_fetched,
            })
        };
        if let Some(carrier) = carrier_of(false) {
            self.read_all(store, pointers, &of_own, &carrier);
        }
        if let Some(carrier) = carrier_of(true) {
            let mut rest = of_fetched;
            let own: HashSet<ObjectId> = of_own.commits.iter().map(|one| one.id).collect();
            rest.commits.retain(|commit| !own.contains(&commit.id));
            self.read_all(store, pointers, &rest, &carrier);
        }
    }

    /// An object that git reads in place of another one has no path.
    fn read_replacement(&mut self, pointer: &NewPointer) {
        if let Some(replaced) = pointer.replaces() {
            let shown = name(replaced.as_bytes());
            let why = format!("git is told to read another object in place of {shown}");
            self.doubt(&pointer.path, why);
        }
    }

    fn read_all(
        &mut self,
        store: &ObjectDatabase<'_>,
        pointers: &Pointers,
        new: &NewCommits,
        carrier: &Carrier<'_>,
    ) {
        let path = carrier.path;
        if let Some(why) = &new.failure {
            self.doubt(path, why.clone());
        }
        let mut seen: HashSet<NewEntry> = HashSet::new();
        for commit in &new.commits {
            if self.is_over(path) {
                return;
            }
            let added = self.trees_before(store, commit).and_then(|mut before| {
                if before.is_empty() {
                    before.extend(head_tree(store, pointers).map(KnownTree::only));
                }
                new_entries(store, before, TreeAt::top(commit.tree), self.budget)
            });
            match added {
                Err(why) => self.doubt(path, why),
                Ok(added) => {
                    let is_root = commit.parents.is_empty();
                    for entry in added {
                        // A first commit takes nothing away.
                        let counts = !is_root || entry.file.is_some();
                        if counts && seen.insert(entry.clone()) {
                            self.add(store, carrier, entry);
                        }
                    }
                }
            }
        }
    }

    /// Returns the trees of a commit's parents.
    fn trees_before(
        &self,
        store: &ObjectDatabase<'_>,
        commit: &Commit,
    ) -> Result<Vec<KnownTree>, String> {
        let mut before: Vec<KnownTree> = Vec::new();
        for id in &commit.parents {
            let parent = store.commit(id).map_err(|why| why.0)?;
            let mut known = KnownTree::only(parent.tree);
            if !before.is_empty() {
                let bases = merge_bases(store, commit.parents[0], *id, self.budget);
                // Histories without a common commit begin with nothing.
                let is_apart = bases.as_ref().is_some_and(Vec::is_empty);
                known.bases.extend(is_apart.then_some(None));
                let trees = bases.into_iter().flatten().map(|base| Some(base.tree));
                known.bases.extend(trees);
            }
            before.push(known);
        }
        Ok(before)
    }

    /// Reads a tree that a file of git names by itself.
    fn read_tree(
        &mut self,
        store: &ObjectDatabase<'_>,
        pointers: &Pointers,
        pointer: &NewPointer,
        tree: ObjectId,
    ) {
        let carrier = Carrier {
            path: &pointer.path,
            is_fetched: false,
        };
        let before = head_tree(store, pointers).into_iter();
        let before = before.map(KnownTree::only).collect();
        match new_entries(store, before, TreeAt::top(tree), self.budget) {
            Err(why) => self.doubt(&pointer.path, why),
            Ok(added) => {
                for entry in added.into_iter().filter(|entry| entry.file.is_some()) {
                    self.add(store, &carrier, entry);
                }
            }
        }
    }
}

/// What a ref leads to.
enum Tip {
    Commit(ObjectId),
    Tree(ObjectId),
    Blob,
}

/// Follows tags to what they are on.
fn tip(store: &ObjectDatabase<'_>, id: &ObjectId, object: &GitObject) -> Result<Tip, String> {
    match object.kind {
        ObjectKind::Commit => Ok(Tip::Commit(*id)),
        ObjectKind::Tree => Ok(Tip::Tree(*id)),
        ObjectKind::Blob => Ok(Tip::Blob),
        // One on something else than a commit is rare.
        ObjectKind::Tag => store
            .peel(id)
            .map(|(commit, _)| Tip::Commit(commit.id))
            .map_err(|why| why.0),
    }
}

/// Returns the tree of HEAD as it was.
fn head_tree(store: &ObjectDatabase<'_>, pointers: &Pointers) -> Option<ObjectId> {
    let head = pointers.old.first()?;
    Some(store.peel(head).ok()?.0.tree)
}

/// Returns the commits that are reachable from some and were not from `old`.
fn new_commits(store: &ObjectDatabase<'_>, from: &[ObjectId], old: &[ObjectId]) -> NewCommits {
    if from.is_empty() {
        return NewCommits::default();
    }
    if let Some(commits) = near(store, from, old) {
        let failure = None;
        return NewCommits { commits, failure };
    }
    let range = exclusive(store, from, old);
    let why = "the history cannot be read whole, so there may be more commits";
    NewCommits {
        commits: range.commits,
        failure: range.incomplete.then(|| why.to_owned()),
    }
}

/// Returns the new commits if they are few and all end at known ones, without looking at the other branches.
fn near(
    store: &ObjectDatabase<'_>,
    from: &[ObjectId],
    old: &[ObjectId],
) -> Option<Vec<Rc<Commit>>> {
    let known: HashSet<&ObjectId> = old.iter().collect();
    let mut found: BTreeMap<ObjectId, Rc<Commit>> = BTreeMap::new();
    let mut left: Vec<ObjectId> = from.to_vec();
    while let Some(id) = left.pop() {
        if known.contains(&id) || found.contains_key(&id) {
            continue;
        }
        let commit = store.commit(&id).ok()?;
        // A first commit may be one that the user has, too.
        let is_first = commit.parents.is_empty() && !old.is_empty();
        if is_first || found.len() >= MAX_NEAR {
            return None;
        }
        left.extend(commit.parents.iter().copied());
        found.insert(id, commit);
    }
    Some(found.into_values().collect())
}

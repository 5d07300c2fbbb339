//! The files of a tree that none of the trees before it has: what a commit adds to its parents.

use std::collections::{BTreeMap, BTreeSet};

use super::super::entries::TreeEntry;
use super::super::id::ObjectId;
use super::super::store::ObjectDatabase;
use super::super::tree::TreeFile;
use super::Budget;

/// Maximum depth of folders.
const MAX_DEPTH: usize = 256;

/// A file at a path of a tree, which the trees before have otherwise; `None` if one of them has it and this one does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NewEntry {
    pub(super) path: Vec<u8>,
    pub(super) file: Option<TreeFile>,
}

/// A tree with the path of its folder.
pub(super) struct TreeAt {
    pub(super) path: Vec<u8>,
    pub(super) tree: ObjectId,
}

impl TreeAt {
    /// Returns the tree of the top folder.
    pub(super) fn top(tree: ObjectId) -> Self {
        let path = Vec::new();
        Self { path, tree }
    }
}

/// A tree that the user has, such as that of a parent.
#[derive(Debug, Clone)]
pub(super) struct KnownTree {
    /// The tree; `None` is an empty one.
    pub(super) tree: Option<ObjectId>,
    /// The trees where its history and that of the first one part. None of the first one, and if that cannot be told.
    pub(super) bases: Vec<Option<ObjectId>>,
}

impl KnownTree {
    /// Returns a tree that is compared with by itself.
    pub(super) fn only(tree: ObjectId) -> Self {
        Self {
            tree: Some(tree),
            bases: Vec::new(),
        }
    }
}

/// A folder whose entries are to be compared.
struct TreeFolder {
    path: Vec<u8>,
    depth: usize,
    before: Vec<KnownTree>,
    after: Option<ObjectId>,
}

/// Returns the files that are new in a tree: none of `before` has them, or only one that left them as they were, where another one
/// changed them. A merge takes each file from the side that changed it; with the file of the other side the change is lost.
///
/// # Errors
/// Why the trees cannot be compared, as a clause.
pub(super) fn new_entries(
    store: &ObjectDatabase<'_>,
    before: Vec<KnownTree>,
    after: TreeAt,
    budget: &Budget,
) -> Result<Vec<NewEntry>, String> {
    let TreeAt { path, tree: after } = after;
    let mut found = Vec::new();
    let mut left = vec![TreeFolder {
        path,
        depth: 0,
        before,
        after: Some(after),
    }];
    while let Some(folder) = left.pop() {
        if folder.depth > MAX_DEPTH {
            return Err("a tree has too many folders in each other".to_owned());
        }
        if budget.is_over() || found.len() > super::MAX_FILES {
            return Err("there is too much in what git stores".to_owned());
        }
        compare(store, &folder, &mut found, &mut left)?;
    }
    Ok(found)
}

type Entries = BTreeMap<Vec<u8>, TreeEntry>;

/// The entries of a known tree, and of those where its history parts from the first one's.
struct KnownEntries {
    own: Entries,
    bases: Vec<Entries>,
}

/// What a known tree has at one name.
struct KnownEntry<'e> {
    own: Option<&'e TreeEntry>,
    bases: Vec<Option<&'e TreeEntry>>,
}

impl KnownEntry<'_> {
    fn map(&self, folder: impl Fn(Option<&TreeEntry>) -> Option<ObjectId>) -> KnownTree {
        KnownTree {
            tree: folder(self.own),
            bases: self.bases.iter().map(|base| folder(*base)).collect(),
        }
    }
}

fn compare(
    store: &ObjectDatabase<'_>,
    folder: &TreeFolder,
    found: &mut Vec<NewEntry>,
    left: &mut Vec<TreeFolder>,
) -> Result<(), String> {
    let after = entries(store, folder.after)?;
    let before: Vec<KnownEntries> = folder
        .before
        .iter()
        .map(|known| known_entries(store, known))
        .collect::<Result<_, _>>()?;
    let known = before.iter().flat_map(|known| known.own.keys());
    let names: BTreeSet<&Vec<u8>> = after.keys().chain(known).collect();
    for name in names {
        let is = after.get(name);
        let was: Vec<KnownEntry<'_>> = before.iter().map(|tree| tree.at(name)).collect();
        if is_taken_over(is, &was) {
            continue;
        }
        let path = join(&folder.path, name);
        let is_file = |entry: &&TreeEntry| !entry.is_folder();
        let folder_of = |entry: Option<&TreeEntry>| Some(entry.filter(|one| one.is_folder())?.id);
        let mut had = was.iter().filter_map(|was| was.own);
        let file = is.filter(is_file).map(|entry| (entry.mode, entry.id));
        if file.is_some() || had.clone().any(|had| is_file(&had)) {
            let path = path.clone();
            found.push(NewEntry { path, file });
        }
        let after = folder_of(is);
        if after.is_some() || had.any(TreeEntry::is_folder) {
            let depth = folder.depth + 1;
            left.push(TreeFolder {
                path,
                depth,
                before: was.iter().map(|was| was.map(folder_of)).collect(),
                after,
            });
        }
    }
    Ok(())
}

/// Whether an entry is that of a known tree, and no other known tree changed it.
fn is_taken_over(is: Option<&TreeEntry>, was: &[KnownEntry<'_>]) -> bool {
    let is_unchanged = |other: usize, from: usize| {
        let bases = &was[if other == 0 { from } else { other }].bases;
        !bases.is_empty() && bases.iter().all(|base| *base == was[other].own)
    };
    let gives = |from: usize| {
        let mut others = (0..was.len()).filter(|other| *other != from);
        was[from].own == is && others.all(|other| was[other].own == is || is_unchanged(other, from))
    };
    (0..was.len()).any(gives)
}

impl KnownEntries {
    fn at(&self, name: &[u8]) -> KnownEntry<'_> {
        KnownEntry {
            own: self.own.get(name),
            bases: self.bases.iter().map(|base| base.get(name)).collect(),
        }
    }
}

fn known_entries(store: &ObjectDatabase<'_>, known: &KnownTree) -> Result<KnownEntries, String> {
    let bases = known.bases.iter().map(|base| entries(store, *base));
    Ok(KnownEntries {
        own: entries(store, known.tree)?,
        bases: bases.collect::<Result<_, _>>()?,
    })
}

/// Returns the entries of a tree by their names; `None` is an empty tree.
fn entries(store: &ObjectDatabase<'_>, tree: Option<ObjectId>) -> Result<Entries, String> {
    let Some(tree) = tree else {
        return Ok(Entries::new());
    };
    let all = store.tree(&tree).map_err(|why| why.0)?;
    let each = all.iter();
    Ok(each
        .map(|entry| (entry.name.clone(), entry.clone()))
        .collect())
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
    [folder, slash, name].concat()
}

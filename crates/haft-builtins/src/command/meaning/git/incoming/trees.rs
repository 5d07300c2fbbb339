//! The files of a tree that none of the trees before it has: what a commit adds to its parents.

use std::collections::BTreeMap;

use super::super::id::ObjectId;
use super::super::object::TreeEntry;
use super::super::store::ObjectDatabase;
use super::super::tree::TreeFile;
use super::Budget;

/// Maximum depth of folders.
const MAX_DEPTH: usize = 256;

/// A file at a path of a tree, which the trees before have otherwise; `None` if all of them have it and this one does not.
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

/// A folder whose entries are to be compared.
struct TreeFolder {
    path: Vec<u8>,
    depth: usize,
    before: Vec<Option<ObjectId>>,
    after: Option<ObjectId>,
}

/// Returns the files that are new in a tree; each of `before` is a tree that the user has.
///
/// # Errors
/// Why the trees cannot be compared, as a clause.
pub(super) fn new_entries(
    store: &ObjectDatabase<'_>,
    before: &[ObjectId],
    after: TreeAt,
    budget: &Budget,
) -> Result<Vec<NewEntry>, String> {
    let TreeAt { path, tree: after } = after;
    let mut found = Vec::new();
    let mut left = vec![TreeFolder {
        path,
        depth: 0,
        before: before.iter().copied().map(Some).collect(),
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

fn compare(
    store: &ObjectDatabase<'_>,
    folder: &TreeFolder,
    found: &mut Vec<NewEntry>,
    left: &mut Vec<TreeFolder>,
) -> Result<(), String> {
    let after = entries(store, folder.after)?;
    let before: Vec<Entries> = folder
        .before
        .iter()
        .map(|tree| entries(store, *tree))
        .collect::<Result<_, _>>()?;
    let empty = Entries::new();
    let removable = before.first().unwrap_or(&empty).keys();
    let gone = removable.filter(|name| !after.contains_key(*name));
    for name in after.keys().chain(gone) {
        let is = after.get(name);
        let was: Vec<Option<&TreeEntry>> = before.iter().map(|tree| tree.get(name)).collect();
        if was.contains(&is) {
            continue;
        }
        let path = join(&folder.path, name);
        let is_file = |entry: &&TreeEntry| !entry.is_folder();
        let folder_of = |entry: Option<&TreeEntry>| Some(entry.filter(|one| one.is_folder())?.id);
        let all_had_file =
            !was.is_empty() && was.iter().all(|was| was.is_some_and(|was| is_file(&was)));
        let file = is.filter(is_file).map(|entry| (entry.mode, entry.id));
        if file.is_some() || all_had_file {
            let path = path.clone();
            found.push(NewEntry { path, file });
        }
        let before: Vec<Option<ObjectId>> = was.iter().map(|was| folder_of(*was)).collect();
        let all_had_folder = !before.is_empty() && before.iter().all(Option::is_some);
        let after = folder_of(is);
        if after.is_some() || all_had_folder {
            let depth = folder.depth + 1;
            left.push(TreeFolder {
                path,
                depth,
                before,
                after,
            });
        }
    }
    Ok(())
}

/// Returns the entries of a tree by their names; `None` is an empty tree.
fn entries(store: &ObjectDatabase<'_>, tree: Option<ObjectId>) -> Result<Entries, String> {
    let Some(tree) = tree else {
        return Ok(Entries::new());
    };
    let all = store.tree(&tree).map_err(|why| why.0)?;
    let named: Entries = all
        .iter()
        .map(|entry| (entry.name.clone(), entry.clone()))
        .collect();
    // Git would take one, and haft might judge the other.
    if named.len() != all.len() {
        return Err(format!("the tree {} has a name twice", tree.short()));
    }
    Ok(named)
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
    [folder, slash, name].concat()
}

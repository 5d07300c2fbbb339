//! The differences between two trees.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::entries::TreeEntry;
use super::id::ObjectId;
use super::store::{ObjectDatabase, ObjectError};

/// Maximum number of differences that are collected.
const MAX_DIFFERENCES: usize = 200_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 256;

/// The mode and the object of a file in a tree.
pub(super) type TreeFile = (u32, ObjectId);

/// A file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeDifference {
    pub(super) path: Vec<u8>,
    pub(super) before: Option<TreeFile>,
    pub(super) after: Option<TreeFile>,
    /// The path it was renamed to.
    pub(super) to: Option<Vec<u8>>,
}

/// Returns the files that differ between two trees, sorted by path. `None` is an empty tree.
///
/// # Errors
/// A tree cannot be read, or there are too many differences.
pub(super) fn differences(
    store: &ObjectDatabase<'_>,
    before: Option<&ObjectId>,
    after: Option<&ObjectId>,
) -> Result<Vec<TreeDifference>, ObjectError> {
    let mut found = Vec::new();
    let mut left = vec![(Vec::new(), before.copied(), after.copied(), 0)];
    while let Some((prefix, before, after, depth)) = left.pop() {
        if before == after {
            continue;
        }
        if depth > MAX_DEPTH || found.len() > MAX_DIFFERENCES {
            return Err(ObjectError("there are too many differences".to_owned()));
        }
        let (was, is) = (entries(store, before)?, entries(store, after)?);
        let names: std::collections::BTreeSet<&Vec<u8>> = was.keys().chain(is.keys()).collect();
        for name in names {
            let (was, is) = (was.get(name), is.get(name));
            if was == is {
                continue;
            }
            let mut path = prefix.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            let (file_was, file_is) = (file(was), file(is));
            if file_was != file_is {
                found.push(TreeDifference {
                    path: path.clone(),
                    before: file_was,
                    after: file_is,
                    to: None,
                });
            }
            let (folder_was, folder_is) = (folder(was), folder(is));
            if folder_was != folder_is {
                left.push((path, folder_was, folder_is, depth + 1));
            }
        }
    }
    found.sort_by(|a, b| match a.path.cmp(&b.path) {
        Ordering::Equal => a.after.is_some().cmp(&b.after.is_some()),
        other => other,
    });
    Ok(found)
}

/// Returns the entries of a tree by their names; `None` is an empty tree.
fn entries(
    store: &ObjectDatabase<'_>,
    id: Option<ObjectId>,
) -> Result<BTreeMap<Vec<u8>, TreeEntry>, ObjectError> {
    let Some(id) = id else {
        return Ok(BTreeMap::new());
    };
    let tree = store.tree(&id)?;
    let each = tree.iter();
    Ok(each
        .map(|entry| (entry.name.clone(), entry.clone()))
        .collect())
}

fn folder(entry: Option<&TreeEntry>) -> Option<ObjectId> {
    let entry = entry.filter(|entry| entry.is_folder())?;
    Some(entry.id)
}

fn file(entry: Option<&TreeEntry>) -> Option<TreeFile> {
    let entry = entry.filter(|entry| !entry.is_folder())?;
    Some((entry.mode, entry.id))
}

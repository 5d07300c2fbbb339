//! Searches below a folder that a command traverses for secrets and for links that lead out of the workspace.

use std::collections::{HashSet, VecDeque};

use haft::permission::PathClaim;
use haft::workspace::EntryKind;

use super::Outside;
use super::spot::{PathLocation, spot};

/// Maximum number of entries searched; a command that traverses more is asked about.
const MAX_ENTRIES: usize = 5_000;
/// Maximum number of findings that are named.
const MAX_NAMED: usize = 8;

/// The findings of a search.
#[derive(Debug, Default)]
pub(super) struct FolderFindings {
    /// Secrets, identified by their names.
    pub(super) secrets: Vec<PathClaim>,
    /// Links that lead out of the workspace, with their targets.
    pub(super) outward_links: Vec<PathLocation>,
    /// True if there is more than was searched.
    pub(super) more: bool,
}

/// Searches a folder of the workspace, given by its path from the root.
pub(super) fn walk(outside: &Outside, folder: &str, follows: bool) -> FolderFindings {
    let mut found = FolderFindings::default();
    let names = outside.workspace.secret_names();
    let mut todo = VecDeque::from([folder.to_owned()]);
    // Where links have led; a link may lead back.
    let mut visited = HashSet::from([folder.to_owned()]);
    let mut left = MAX_ENTRIES;
    while let Some(folder) = todo.pop_front() {
        let Ok(entries) = std::fs::read_dir(outside.workspace.root().join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let full = found.secrets.len() + found.outward_links.len() >= MAX_NAMED;
            let Some(rest) = left.checked_sub(1).filter(|_| !full) else {
                found.more = true;
                return found;
            };
            left = rest;
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else {
                continue;
            };
            // What lies below a name that is not UTF-8 cannot be stated.
            let Some(name) = name.to_str() else {
                found.more = true;
                return found;
            };
            let path = match folder.as_str() {
                "." => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
            if kind.is_dir() {
                todo.push_back(path);
            } else if kind.is_symlink() && follows {
                match spot(outside, ".", &path, false) {
                    PathLocation::Inside(claim, _) if covers(outside, &claim) => {
                        found.secrets.push(claim);
                    }
                    PathLocation::Inside(claim, kind) => {
                        let target = claim.target.unwrap_or(claim.path);
                        if kind == Some(EntryKind::Directory) && visited.insert(target.clone()) {
                            todo.push_back(target);
                        }
                    }
                    away => found.outward_links.push(away),
                }
            } else if names.covers(&path) {
                found.secrets.push(PathClaim::plain(path));
            }
        }
    }
    found
}

/// Returns true if a folder of the workspace holds a link, or more than is searched.
pub(super) fn holds_link(outside: &Outside, folder: &str) -> bool {
    let mut todo = vec![outside.workspace.root().join(folder)];
    let mut left = MAX_ENTRIES;
    while let Some(folder) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let kind = entry.file_type().ok();
            let Some(rest) = left.checked_sub(1) else {
                return true;
            };
            left = rest;
            match kind {
                Some(kind) if kind.is_symlink() => return true,
                Some(kind) if kind.is_dir() => todo.push(entry.path()),
                _ => {}
            }
        }
    }
    false
}

/// Returns true if the path is a secret, which its own name or the target of a link may identify.
pub(super) fn covers(outside: &Outside, claim: &PathClaim) -> bool {
    let names = outside.workspace.secret_names();
    names.covers(&claim.path)
        || claim
            .target
            .as_deref()
            .is_some_and(|target| names.covers(target))
}

//! The worktrees of a repository other than the workspace's own: where they lie, and which branch each has checked out.

use std::path::{Path, PathBuf};

use super::refs::{Target, read_target};
use crate::command::git_worktrees::{GIT, WORKTREES};
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::name;

/// Maximum number of worktrees that are looked at.
const MAX_WORKTREES: usize = 1_000;
/// Maximum size of a file that names a work tree, in bytes.
const MAX_POINTER: u64 = 8 << 10;

/// Returns where the work tree lies to which a part of a repository belongs, as the end of a sentence; `None` if that is the workspace's
/// own.
pub(super) fn place_of(sides: &ChangeSides<'_>, repository: &Path, part: &Path) -> Option<String> {
    if part == own_part(sides, repository) {
        return None;
    }
    if part != repository {
        return Some(format!("the worktree {}", linked(sides, part)));
    }
    let folder = sides.host_path(repository);
    let is_git = folder.file_name().is_some_and(|last| last == GIT);
    let tree = folder.parent().filter(|_| is_git);
    Some(match tree {
        Some(tree) => format!("the worktree {}", path_name(tree)),
        None => format!("the repository {}", path_name(&folder)),
    })
}

/// A branch that a worktree has checked out which is not the workspace's own.
#[derive(Debug)]
pub(super) struct CheckedOut {
    /// The ref.
    pub(super) branch: String,
    /// The worktree, as the end of a sentence.
    pub(super) place: String,
}

/// Returns what the other worktrees of a repository had checked out before the changes.
pub(super) fn checked_out(sides: &ChangeSides<'_>, repository: &Path) -> Vec<CheckedOut> {
    let all = repository.join(WORKTREES);
    let names = sides.names(Side::Before, &all, MAX_WORKTREES);
    let linked = names.unwrap_or_default().into_keys();
    let parts = linked.map(|name| all.join(name));
    let parts = parts.chain([repository.to_owned()]);
    let each = parts.filter_map(|part| {
        let place = place_of(sides, repository, &part)?;
        // A bare repository has a branch, and no files of it.
        let has_files = sides.kind(Side::Before, &part.join("index")).is_some();
        match read_target(sides, Side::Before, &part.join("HEAD")) {
            Some(Target::Ref(branch)) if has_files => Some(CheckedOut { branch, place }),
            _ => None,
        }
    });
    each.collect()
}

/// Returns the part of a repository that belongs to the workspace's work tree, or to the one around the repository's folder.
fn own_part(sides: &ChangeSides<'_>, repository: &Path) -> PathBuf {
    if repository == Path::new(GIT) {
        sides.own_part()
    } else {
        repository.to_owned()
    }
}

/// Returns the work tree of a linked worktree's part.
fn linked(sides: &ChangeSides<'_>, part: &Path) -> String {
    let pointer = part.join("gitdir");
    let read = |side| sides.read(side, &pointer, MAX_POINTER);
    let text = read(Side::After).or_else(|| read(Side::Before));
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let file = text.map(|text| sides.host_path(part).join(text.trim_end()));
    let tree = file.as_deref().and_then(Path::parent);
    path_name(tree.or(part.file_name().map(Path::new)).unwrap_or(part))
}

fn path_name(path: &Path) -> String {
    name(path.as_os_str().as_encoded_bytes())
}

//! Which changes in repositories an undo takes back: settings, which no commit has, and a repository as a whole that the run made.
//!
//! What git restores itself (branches, the index, objects) an undo leaves to git: half of it would break the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::change::EntryState;
use crate::change::net::NetChange;
use crate::workspace::{EntryKind, Workspace, is_git};

/// Why a repository that a run made stays.
pub(super) const USED: &str = "the run made it, and it was used since";
/// Maximum depth of folders in a repository that are compared.
const MAX_DEPTH: usize = 64;

/// How an undo treats a change in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitUndo {
    /// Like any other file.
    Undo,
    /// Git restores it.
    LeaveToGit,
    /// Nothing restores it, and it stays for this reason.
    Stay(&'static str),
    /// It stays with all of its repository, of which that is said.
    StayWithAll,
}

/// What an undo knows of the repositories that a run changed.
#[derive(Debug)]
pub(super) struct GitUndoRules {
    /// Repositories, and parts of them, that the run made and that are as it left them.
    made: BTreeSet<PathBuf>,
    /// Those that were used since.
    used: BTreeSet<PathBuf>,
}

impl GitUndoRules {
    /// Looks at the repositories that the changes made. `is_left` says whether a change is as the run left it.
    ///
    /// # Errors
    /// Those of `is_left`.
    pub(super) fn new<E>(
        nets: &[NetChange],
        workspace: &Workspace,
        mut is_left: impl FnMut(&NetChange) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let after: BTreeSet<&Path> = nets
            .iter()
            .filter_map(|net| Some(&*net.after.as_ref()?.path))
            .collect();
        let is_unit = |net: &&NetChange| {
            let is_folder = |state: &EntryState| matches!(state, EntryState::Folder { .. });
            let made = net.after.as_ref().filter(|is| is_folder(&is.state));
            let made = made.filter(|is| net.before.is_none() && is_git(&is.path));
            made.is_some_and(|is| after.contains(&*is.path.join("HEAD")))
        };
        let mut rules = Self {
            made: BTreeSet::new(),
            used: BTreeSet::new(),
        };
        for unit in nets.iter().filter(is_unit).map(NetChange::path) {
            if rules
                .made
                .iter()
                .chain(&rules.used)
                .any(|known| unit.starts_with(known))
            {
                continue;
            }
            let mut is_used = holds_others(workspace, unit, &after, MAX_DEPTH);
            for net in nets.iter().filter(|net| net.path().starts_with(unit)) {
                is_used = is_used || !is_left(net)?;
            }
            let units = if is_used {
                &mut rules.used
            } else {
                &mut rules.made
            };
            units.insert(unit.to_owned());
        }
        Ok(rules)
    }

    /// Returns how a change is treated; `None` if it is not in a repository.
    pub(super) fn of(&self, net: &NetChange) -> Option<GitUndo> {
        let paths = || [&net.before, &net.after].into_iter().flatten();
        let path = &paths().find(|lies| is_git(&lies.path))?.path;
        let has = |units: &BTreeSet<PathBuf>| units.iter().any(|unit| path.starts_with(unit));
        if has(&self.made) {
            return Some(GitUndo::Undo);
        }
        if has(&self.used) {
            return Some(GitUndo::StayWithAll);
        }
        if paths().any(|lies| lies.path != *path) {
            return Some(GitUndo::LeaveToGit);
        }
        Some(of_path(path))
    }

    /// Returns whether a folder holds a repository that stays.
    pub(super) fn holds_used(&self, folder: &Path) -> bool {
        self.used.iter().any(|unit| unit.starts_with(folder))
    }

    /// Returns the repositories that stay.
    pub(super) fn used(&self) -> impl Iterator<Item = &PathBuf> {
        self.used.iter()
    }
}

/// Returns whether a folder has entries that the run did not leave there.
fn holds_others(
    workspace: &Workspace,
    folder: &Path,
    left: &BTreeSet<&Path>,
    depth: usize,
) -> bool {
    let Ok(open) = workspace.folder(folder) else {
        return false;
    };
    let (mut others, mut folders) = (depth == 0, Vec::new());
    let listed = open.entries(|name, kind| {
        let path = folder.join(name);
        others |= !left.contains(&*path);
        if kind == EntryKind::Directory && !others {
            folders.push(path);
        }
    });
    others
        || listed.is_err()
        || folders
            .iter()
            .any(|folder| holds_others(workspace, folder, left, depth - 1))
}

/// How a change in a repository that was there before is treated, by its path.
fn of_path(path: &Path) -> GitUndo {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let git = parts
        .iter()
        .position(|part| part.eq_ignore_ascii_case(".git"));
    let within = git.and_then(|at| parts.get(at + 1..)).unwrap_or_default();
    let is_data = |part: &&str| matches!(*part, "objects" | "refs" | "logs");
    let data = within.iter().position(is_data);
    let before_data = data.unwrap_or(within.len());
    match within {
        // A file that names the repository of a work tree.
        [] | ["worktrees", _, "config.worktree"] => return GitUndo::Undo,
        ["commondir" | "gitdir"] | ["objects", "info", "alternates" | "http-alternates"] => {
            return GitUndo::Stay("what git reads through it could not be read any more");
        }
        _ => {}
    }
    // The name of a submodule may contain slashes.
    let starts = if within.first() == Some(&"modules") {
        1..before_data.max(1)
    } else {
        0..1
    };
    let mut settings = starts.filter_map(|at| within.get(at..));
    if settings.any(is_setting) {
        GitUndo::Undo
    } else {
        GitUndo::LeaveToGit
    }
}

/// Whether a path in a repository's folder is that of settings that stand for themselves.
fn is_setting(within: &[&str]) -> bool {
    matches!(
        within,
        ["config" | "config.worktree"]
            | ["hooks" | "branches" | "remotes", ..]
            | ["info", "attributes" | "exclude" | "grafts"]
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{GitUndo, of_path};

    #[test]
    fn settings_are_undone_and_data_is_left_to_git() {
        for path in [
            ".git/config",
            ".git/config.worktree",
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/info/exclude",
            "sub/.git",
            "sub/.git/config",
            ".git/modules/a/b/config",
            ".git/modules/lib/hooks/x",
            ".git/worktrees/w/config.worktree",
        ] {
            assert_eq!(of_path(Path::new(path)), GitUndo::Undo, "{path}");
        }
        for path in [
            ".git/HEAD",
            ".git/index",
            ".git/refs/heads/config",
            ".git/refs/heads/hooks/x",
            ".git/modules/lib/refs/heads/config",
            ".git/modules/lib/HEAD",
            ".git/worktrees/w/HEAD",
            ".git/rebase-merge/done",
            ".git/info/sparse-checkout",
        ] {
            assert_eq!(of_path(Path::new(path)), GitUndo::LeaveToGit, "{path}");
        }
        for path in [".git/commondir", ".git/objects/info/alternates"] {
            assert!(
                matches!(of_path(Path::new(path)), GitUndo::Stay(_)),
                "{path}"
            );
        }
    }
}

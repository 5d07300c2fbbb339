//! Which files of a repository belong to one worktree, and which all worktrees share.
//!
//! The main worktree's own part lies at the top of the repository's folder, beside what all share. Git's list of what is shared is
//! `common_list` in its `path.c`: everything else at the top is the main worktree's, also what a later git adds.

use std::path::Path;

/// The name of the workspace's repository, wherever it lies.
pub(crate) const GIT: &str = ".git";
/// The folder with the parts of linked worktrees.
pub(crate) const WORKTREES: &str = "worktrees";

/// What all worktrees share at the top of a repository's folder. `lfs` is git-lfs's, `reftable` a form of `refs`.
const SHARED: [&str; 19] = [
    "branches",
    "common",
    "config",
    "gc.pid",
    "hooks",
    "info",
    "lfs",
    "logs",
    "lost-found",
    "modules",
    "objects",
    "packed-refs",
    "packed-refs.new",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "shallow",
    "svn",
];
/// Folders of refs, and of their logs, that each worktree has for itself.
const OWN_REFS: [&str; 3] = ["bisect", "rewritten", "worktree"];

/// Whether a path within a repository's folder belongs to its main worktree alone, or to the use of the folder as a bare repository.
pub(crate) fn is_of_one_worktree(within: &Path) -> bool {
    let parts: Option<Vec<&str>> = within.iter().map(|part| part.to_str()).collect();
    let Some(mut parts) = parts else {
        return true;
    };
    if let Some(last) = parts.last_mut() {
        *last = last.strip_suffix(".lock").unwrap_or(last);
    }
    match &*parts {
        [] | [WORKTREES, ..] => false,
        ["info", "sparse-checkout"] | ["logs", "HEAD"] => true,
        ["refs", folder, ..] | ["logs", "refs", folder, ..] => OWN_REFS.contains(folder),
        [first, ..] => !SHARED.contains(first),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_of_one_worktree;

    #[test]
    fn what_only_one_worktree_has_is_told_from_what_all_share() {
        for path in [
            "HEAD",
            "HEAD.lock",
            "ORIG_HEAD",
            "index",
            "index.lock",
            "MERGE_HEAD",
            "MERGE_MSG",
            "SQUASH_MSG",
            "FETCH_HEAD",
            "BISECT_LOG",
            "logs/HEAD",
            "logs/refs/bisect/bad",
            "refs/bisect/bad",
            "refs/worktree/x",
            "rebase-merge/done",
            "sequencer",
            "info/sparse-checkout",
            "config.worktree",
            "a-file-of-a-later-git",
        ] {
            assert!(is_of_one_worktree(Path::new(path)), "{path}");
        }
        for path in [
            "",
            "refs",
            "refs/heads",
            "refs/heads/bisect",
            "refs/heads/main.lock",
            "refs/stash",
            "logs",
            "logs/refs",
            "logs/refs/heads/main",
            "objects/ab/c",
            "packed-refs",
            "packed-refs.lock",
            "config",
            "config.lock",
            "hooks/pre-commit",
            "info/exclude",
            "modules/lib/HEAD",
            "worktrees/w/HEAD",
            "gc.pid",
            "shallow",
        ] {
            assert!(!is_of_one_worktree(Path::new(path)), "{path}");
        }
    }
}

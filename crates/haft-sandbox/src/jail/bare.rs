//! The level without namespaces: all confinement of files is by Landlock, so it grants little.
//!
//! Landlock can only allow, and what it allows for a folder it allows for everything below. So a workspace
//! with guards is granted piece by piece around them: its top folder can then be listed, but not added to.

use std::fs;
use std::path::{Path, PathBuf};

use super::plan::{LandlockGrant, PathCover};

/// Returns the grants for a workspace around its covers.
pub(crate) fn workspace(
    root: &Path,
    covers: &[(PathBuf, PathCover)],
) -> Vec<(PathBuf, LandlockGrant)> {
    let mut covers = covers.to_vec();
    // A grant on the target of a guarded link would be a grant on what is guarded.
    for (path, cover) in covers.clone() {
        let full = root.join(&path);
        if fs::symlink_metadata(&full).is_ok_and(|meta| meta.is_symlink())
            && let Ok(end) = full.canonicalize()
            && let Ok(inside) = end.strip_prefix(root)
        {
            covers.push((inside.to_owned(), cover));
        }
    }
    let mut grants = Vec::new();
    around(root, Path::new(""), &covers, &mut grants);
    grants
}

fn around(
    root: &Path,
    at: &Path,
    covers: &[(PathBuf, PathCover)],
    grants: &mut Vec<(PathBuf, LandlockGrant)>,
) {
    let full = root.join(at);
    let here = |wanted: PathCover| {
        covers
            .iter()
            .any(|(path, cover)| path == at && *cover == wanted)
    };
    let below = || {
        covers
            .iter()
            .any(|(path, _)| path != at && path.starts_with(at))
    };
    if here(PathCover::Empty) {
        return;
    }
    if here(PathCover::ReadOnly) {
        grants.push((full, LandlockGrant::Execute));
        let open = |(path, cover): &&(PathBuf, PathCover)| {
            *cover == PathCover::Writable && path.starts_with(at)
        };
        let open = covers
            .iter()
            .filter(open)
            .map(|(path, _)| (root.join(path), LandlockGrant::Write));
        grants.extend(open);
        return;
    }
    if !below() {
        grants.push((full, LandlockGrant::Write));
        return;
    }
    let Ok(entries) = fs::read_dir(&full) else {
        return;
    };
    grants.push((full, LandlockGrant::List));
    for entry in entries.flatten() {
        // A link needs no grant of its own: its target is granted at its own path, or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            around(root, &at.join(entry.file_name()), covers, grants);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::plan::{LandlockGrant, PathCover};
    use super::workspace;

    #[test]
    fn a_workspace_is_granted_around_its_guards() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["src/deep", ".git/hooks", "a/b/.git", "real", "secret"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink("real", root.join(".vscode")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        let covers = [
            (".git", PathCover::ReadOnly),
            (".git/hooks", PathCover::Writable),
            ("a/b/.git", PathCover::ReadOnly),
            (".vscode", PathCover::ReadOnly),
            ("secret", PathCover::Empty),
        ]
        .map(|(path, cover)| (PathBuf::from(path), cover));
        let mut got: Vec<_> = workspace(&root, &covers)
            .into_iter()
            .map(|(path, grant)| (path.strip_prefix(&root).unwrap().to_owned(), grant))
            .collect();
        got.sort_by_key(|(path, _)| path.clone());
        let expect = [
            ("", LandlockGrant::List),
            (".git", LandlockGrant::Execute),
            (".git/hooks", LandlockGrant::Write),
            ("a", LandlockGrant::List),
            ("a/b", LandlockGrant::List),
            ("a/b/.git", LandlockGrant::Execute),
            ("file", LandlockGrant::Write),
            ("real", LandlockGrant::Execute),
            ("src", LandlockGrant::Write),
        ]
        .map(|(path, grant)| (PathBuf::from(path), grant));
        assert_eq!(got, expect);
        let open = workspace(&root, &[]);
        assert_eq!(open, [(root.clone(), LandlockGrant::Write)]);
    }
}

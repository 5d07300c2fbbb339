//! Finds changed paths that are protected because of the workspace's contents: settings of repositories in folders of any name.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::policy::{is_git_setting, protected_from_commands};
use haft::workspace::{GitFolders, GitPath, OutsideRepository, Workspace};

use crate::command::git_worktrees::{GIT, WORKTREES, is_of_one_worktree};

/// Maximum size of a file that names a work tree, in bytes.
const MAX_POINTER: u64 = 8 * 1024;

/// Returns the changed paths that are protected by the workspace's contents rather than by their names: settings of repositories
/// in folders not called `.git` (bare ones, those that a `.git` file or a `commondir` names, and those of submodules), files that would
/// turn a folder into a repository, and what the settings of one name. Each is asked about like a protected path.
pub(crate) fn extra_protected<'a, P: AsRef<Path> + ?Sized + 'a>(
    workspace: &'a Workspace,
    changed: impl IntoIterator<Item = &'a P>,
) -> BTreeSet<String> {
    let changed: Vec<&Path> = changed.into_iter().map(AsRef::as_ref).collect();
    let mut folders = GitFolders::find(workspace, changed.iter().copied());
    let is_protected = |path: &Path| protected_from_commands(&path.to_string_lossy()).is_some();
    let unnamed = changed.iter().filter(|path| !is_protected(path));
    let found = unnamed.filter(|path| {
        if is_of_other_worktree(workspace, path) {
            return true;
        }
        // The name alone does not say where a submodule's name ends.
        let is_setting =
            |one: &GitPath| one.is_new || is_git_setting(&one.within.to_string_lossy());
        if folders.in_submodules(path).iter().any(is_setting) {
            return true;
        }
        let name = folders.locate(path).map(|found| found.name());
        name.is_some_and(|name| is_protected(&name))
    });
    found
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// Whether a path belongs to another worktree's part of a repository: no command that works here changes what is checked out there.
/// A worktree that the command itself adds has no part yet.
fn is_of_other_worktree(workspace: &Workspace, path: &Path) -> bool {
    let outside = workspace.repository();
    let own = outside.map_or_else(|| PathBuf::from(GIT), OutsideRepository::own_part);
    let is_of_main = own != Path::new(GIT) && path.strip_prefix(GIT).is_ok_and(is_of_one_worktree);
    let is_others = |part: &Path| {
        part != own
            && is_linked_part(workspace, part)
            && workspace.look(part).is_some()
            && !is_below_workspace(workspace, part)
    };
    is_of_main || path.ancestors().any(is_others)
}

/// Whether a folder has the name and the shape of a linked worktree's part.
fn is_linked_part(workspace: &Workspace, part: &Path) -> bool {
    let Some(all) = part.parent() else {
        return false;
    };
    let is_named = all.file_name().is_some_and(|name| name == WORKTREES);
    is_named
        && (all.parent() == Some(Path::new(GIT))
            || workspace.look(&part.join("commondir")).is_some())
}

/// Whether the work tree of a worktree's part lies in the workspace.
fn is_below_workspace(workspace: &Workspace, part: &Path) -> bool {
    let Ok(open) = workspace.open_file(&part.join("gitdir")) else {
        return false;
    };
    let mut text = String::new();
    let read = open.file.take(MAX_POINTER).read_to_string(&mut text);
    let to = workspace.host_path(part).join(text.trim_end());
    let tree = to.parent().and_then(|tree| tree.canonicalize().ok());
    read.is_ok() && tree.is_some_and(|tree| tree.starts_with(workspace.root()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use haft::workspace::Workspace;

    use super::extra_protected;

    /// Existing files, changed paths, and those of them that are protected.
    type Row = (
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
    );

    const BARE: &[&str] = &[
        "foo.git/HEAD",
        "foo.git/objects/x",
        "foo.git/refs/x",
        "foo.git/config",
    ];

    const ROWS: &[Row] = &[
        (&[], &["foo.git/config", "src/hooks/x", "HEAD"], &[]),
        // f3: the root becomes a repository.
        (
            &[],
            &["HEAD", "objects/x", "refs/x", "config", "src/a"],
            &["HEAD", "config", "objects/x", "refs/x"],
        ),
        (
            BARE,
            &[
                "foo.git/config",
                "foo.git/hooks/update",
                "foo.git/HEAD",
                "foo.git/index",
                "a",
            ],
            &["foo.git/config", "foo.git/hooks/update"],
        ),
        (
            BARE,
            &[
                "foo.git/info/attributes",
                "foo.git/info/exclude",
                "foo.git/refs/heads/config",
            ],
            &["foo.git/info/attributes", "foo.git/info/exclude"],
        ),
        // The objects of a worktree's folder are elsewhere.
        (
            &["w/HEAD", "w/commondir"],
            &["w/commondir", "w/gitdir", "w/config.worktree", "w/index"],
            &["w/commondir", "w/config.worktree", "w/gitdir"],
        ),
        // Folders that a command turns into repositories, at once or by adding the last part.
        (
            &[],
            &[
                "n/HEAD",
                "n/config",
                "n/objects/x",
                "n/refs/heads/main",
                "n/description",
            ],
            &["n/HEAD", "n/config", "n/objects/x", "n/refs/heads/main"],
        ),
        (
            &["n/config", "n/objects/x", "n/refs/x"],
            &["n/HEAD", "n/other"],
            &["n/HEAD"],
        ),
        (
            &["n/config", "n/refs/x", "n/HEAD"],
            &["n/objects"],
            &["n/objects"],
        ),
        (&["n/config", "n/refs/x", "n/HEAD"], &["n/objects2"], &[]),
        (
            &["src/objects/x", "src/refs/x"],
            &["src/hooks/use.ts", "src/config.ts"],
            &[],
        ),
        // Protected by their names already.
        (
            &[],
            &[
                "sub/.git/HEAD",
                "sub/.git/objects/x",
                "sub/.git/refs/x",
                "sub/.git/config",
            ],
            &[],
        ),
        (
            &[".git/HEAD", ".git/objects/x", ".git/refs/x"],
            &[".git/index", ".git/objects/ab/c", ".git/refs/heads/main"],
            &[],
        ),
        // Where a submodule's name ends, its folder says.
        (
            SUBMODULES,
            &[
                ".git/modules/libs/objects/HEAD",
                ".git/modules/libs/objects/config",
                ".git/modules/libs/objects/hooks/post-checkout",
                ".git/modules/libs/objects/index",
                ".git/modules/libs/objects/logs/refs/heads/config",
                ".git/modules/libs/objects/modules/logs/hooks/pre-push",
                ".git/modules/libs/objects/modules/logs/objects/ab/c",
                ".git/modules/libs/objects/objects/ab/c",
                ".git/modules/libs/objects/refs/heads/hooks/x",
                ".git/modules/plain/refs/heads/config",
            ],
            &[
                ".git/modules/libs/objects/config",
                ".git/modules/libs/objects/hooks/post-checkout",
                ".git/modules/libs/objects/modules/logs/hooks/pre-push",
            ],
        ),
        (
            &[],
            &[
                ".git/modules/lib/refs/HEAD",
                ".git/modules/lib/refs/config",
                ".git/modules/lib/refs/objects/x",
                ".git/modules/lib/refs/other",
                ".git/modules/lib/refs/refs/x",
            ],
            &[
                ".git/modules/lib/refs/HEAD",
                ".git/modules/lib/refs/config",
                ".git/modules/lib/refs/objects/x",
                ".git/modules/lib/refs/refs/x",
            ],
        ),
    ];

    /// A submodule `libs/objects`, and one of it that is called `logs`.
    const SUBMODULES: &[&str] = &[
        ".git/modules/libs/objects/HEAD",
        ".git/modules/libs/objects/objects/x",
        ".git/modules/libs/objects/refs/x",
        ".git/modules/libs/objects/modules/logs/HEAD",
        ".git/modules/libs/objects/modules/logs/objects/x",
        ".git/modules/libs/objects/modules/logs/refs/x",
        ".git/modules/plain/HEAD",
        ".git/modules/plain/objects/x",
        ".git/modules/plain/refs/x",
    ];

    #[test]
    fn repositories_in_folders_of_any_name_are_protected() {
        for (before, changed, expect) in ROWS {
            let dir = tempfile::tempdir().unwrap();
            for file in *before {
                let file = dir.path().join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            let workspace = Workspace::open(dir.path()).unwrap();
            let found = extra_protected(&workspace, changed.iter().copied());
            assert!(
                found.iter().eq(*expect),
                "{before:?} {changed:?}: {found:?}"
            );
        }
    }

    #[test]
    fn what_git_files_name_is_protected() {
        let outside = tempfile::tempdir().unwrap();
        let absolute = "gitdir: ROOT/real\n";
        for (pointer, text, protects) in [
            (".git", "gitdir: ./real\n", true),
            (".git", "gitdir: real", true),
            (".git", absolute, true),
            (".git", "gitdir: ../elsewhere\n", false),
            (".git", "gitdir: absent\n", false),
            (".git/commondir", "../real\n", true),
            ("sub/.git", "gitdir: ../real\n", true),
            ("repository/commondir", "../real\n", true),
            ("folder/commondir", "../real\n", false),
            (".git/commondir", "../other\n", false),
        ] {
            let dir = tempfile::tempdir_in(outside.path()).unwrap();
            let root = dir.path().canonicalize().unwrap();
            for folder in ["real", "other", "repository/refs"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            fs::write(root.join("repository/HEAD"), "").unwrap();
            let pointer = root.join(pointer);
            fs::create_dir_all(pointer.parent().unwrap()).unwrap();
            fs::write(&pointer, text.replace("ROOT", root.to_str().unwrap())).unwrap();
            let workspace = Workspace::open(&root).unwrap();
            let found = extra_protected(&workspace, ["real/config", "real/HEAD"]);
            let expect: &[&str] = if protects { &["real/config"] } else { &[] };
            assert!(found.iter().eq(expect), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_settings_name_is_protected() {
        for (config, path, protects) in [
            ("[core]\n\thooksPath = h", "h/pre-commit", true),
            ("[core]\n\thooksPath = h", "hh/pre-commit", false),
            ("[core]\n\thooksPath = .", "pre-commit", true),
            ("[core]\n\thooksPath = .", "main.rs", false),
            ("[core]\n\thooksPath = ROOT/h", "h/pre-commit", true),
            ("[core]\n\thooksPath = link/h", "real/h/x", true),
            (
                "[core]\n\thooksPath = .git/objects/h",
                ".git/objects/h/x",
                true,
            ),
            ("[core]\n\tfsmonitor = 'a b' ./m.sh", "m.sh", true),
            ("[core]\n\tattributesFile = attr", "attr", true),
            ("[include]\n\tpath = more", ".git/more", false),
            ("[include]\n\tpath = ../more", "more", true),
            ("[includeIf \"gitdir:x\"]\n\tpath = ../more", "more", true),
            (
                "[filter \"x\"]\n\tsmudge = \"$HOME/../x; ./y.sh\"",
                "y.sh",
                true,
            ),
            (
                "[filter \"x\"]\n\tclean = git-lfs clean -- %f",
                "clean",
                false,
            ),
            ("[diff \"x\"]\n\ttextconv = node t/x.js", "t/x.js", true),
            ("[merge \"x\"]\n\tdriver = python real", "real/a", true),
            ("[merge \"x\"]\n\tdriver = tool real", "real/a", false),
            ("[alias]\n\tl = !grep -r x real/", "real/a", false),
            (
                "[branch \"m\"]\n\tmerge = refs/heads/m",
                ".git/refs/heads/m",
                false,
            ),
            ("[remote \"o\"]\n\turl = ../real", "real/a", false),
            ("[remote \"o\"]\n\turl = ext::./real/x", "real/x", true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            for folder in [".git/objects", ".git/refs", "real"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            fs::write(root.join(".git/HEAD"), "").unwrap();
            std::os::unix::fs::symlink("real", root.join("link")).unwrap();
            let config = config.replace("ROOT", root.to_str().unwrap());
            fs::write(root.join(".git/config"), &config).unwrap();
            let workspace = Workspace::open(&root).unwrap();
            let found = extra_protected(&workspace, [path]);
            assert_eq!(!found.is_empty(), protects, "{config} {path}");
        }
    }
}

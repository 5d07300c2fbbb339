//! Finds changed paths that are protected because of the workspace's contents: settings of repositories in folders of any name.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::policy::protected_from_commands;
use haft::workspace::{GitFolders, Workspace};

use crate::lexical::normalize_relative;

/// Maximum size of a settings file, in bytes.
const MAX_SETTINGS: u64 = 256 * 1024;

/// Returns the changed paths that are protected by the workspace's contents rather than by their names: settings of repositories
/// in folders not called `.git` (bare ones, and those that a `.git` file or a `commondir` names), and files that would turn a folder
/// into a repository. Each is asked about like a protected path.
pub(crate) fn extra_protected<'a, P: AsRef<Path> + ?Sized + 'a>(
    workspace: &'a Workspace,
    changed: impl IntoIterator<Item = &'a P>,
) -> BTreeSet<String> {
    let changed: Vec<&Path> = changed.into_iter().map(AsRef::as_ref).collect();
    let by_settings = named_by_settings(workspace);
    let mut folders = GitFolders::find(workspace, changed.iter().copied());
    let is_protected = |path: &Path| protected_from_commands(&path.to_string_lossy()).is_some();
    let unnamed = changed.iter().filter(|path| !is_protected(path));
    let found = unnamed.filter(|path| {
        let name = folders.locate(path).map(|found| found.name());
        meets(&by_settings, path) || name.is_some_and(|name| is_protected(&name))
    });
    found
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// Returns the paths below the root that the repository's settings name: every value with a slash, and values of file keys.
pub(super) fn named_by_settings(workspace: &Workspace) -> Vec<PathBuf> {
    const FILE_KEYS: [&str; 4] = ["hookspath", "path", "attributesfile", "excludesfile"];
    let mut text = String::new();
    let read = workspace.open_file(Path::new(".git/config")).ok();
    let read = read.and_then(|open| open.file.take(MAX_SETTINGS).read_to_string(&mut text).ok());
    if read.is_none() {
        return Vec::new();
    }
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let mut found = Vec::new();
    for (key, value) in pairs {
        let key = key.trim().to_ascii_lowercase();
        let words = value.split([' ', '\t', '"', '\'', ';', '|', '&', '!']);
        let is_place =
            |word: &&str| word.contains('/') || (FILE_KEYS.contains(&&*key) && !word.is_empty());
        for word in words.filter(is_place) {
            // Some are relative to the root, others to the settings file.
            found.extend(
                [
                    normalize_relative(Path::new(word)),
                    normalize_relative(&Path::new(".git").join(word)),
                ]
                .into_iter()
                .flatten(),
            );
        }
    }
    found
}

/// Returns true if a path is, holds or lies in one of these.
pub(super) fn meets(named: &[PathBuf], path: &Path) -> bool {
    let mut named = named.iter();
    named.any(|named| path.starts_with(named) || named.starts_with(path))
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
}

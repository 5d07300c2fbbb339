//! What of repositories is guarded in the live workspace.

use std::fs;

use haft::policy::Denials;

use super::super::find;
use super::{check, describe, tree};

const REPOSITORY: &[&str] = &[
    ".git/HEAD",
    ".git/objects/ab/c",
    ".git/refs/",
    ".git/config",
    ".git/info/exclude",
    ".git/index",
];

/// The contents of a folder, and what is read-only in it in the live workspace.
const REPOSITORIES: &[(&[&str], &[&str])] = &[
    (&["a"], &["keep .git/"]),
    (&[".git/"], &["keep .git/"]),
    (
        &[".git/config", "sub/.git/config"],
        &["keep .git/", "keep sub/.git/"],
    ),
    (&[".git -> elsewhere", "elsewhere/"], &["keep .git"]),
    (&["sub/.git"], &["keep .git/", "keep sub/.git"]),
    (
        &[
            ".git/HEAD",
            ".git/objects/",
            ".git/refs/",
            ".git/config.worktree",
            ".git/config.lock",
            ".git/gitdir",
        ],
        &[
            "keep .git/config",
            "keep .git/config.lock",
            "keep .git/config.worktree",
            "keep .git/gitdir",
            "keep .git/hooks/",
            "keep .git/modules/",
            "keep if there .git/commondir",
        ],
    ),
    (
        &["x/y.git/HEAD", "x/y.git/objects/", "x/y.git/refs/"],
        &[
            "keep .git/",
            "keep x/y.git/config",
            "keep x/y.git/config.worktree",
            "keep x/y.git/hooks/",
            "keep x/y.git/modules/",
            "keep if there x/y.git/commondir",
        ],
    ),
    // What is in the folder of submodules' repositories when a command starts may change; nothing may appear beside it.
    (
        &[
            ".git/HEAD",
            ".git/objects/",
            ".git/refs/",
            ".git/commondir",
            "s.git/HEAD",
            "s.git/objects/",
            "s.git/refs/",
            "s.git/modules/a/b/HEAD",
            "s.git/modules/a/b/objects/",
            "s.git/modules/a/b/refs/",
            "s.git/modules/a/x",
        ],
        &[
            "keep .git/commondir",
            "keep .git/config.worktree",
            "close s.git/modules/",
            "close s.git/modules/a/",
            "keep s.git/modules/a/x",
            "keep if there s.git/commondir",
            "keep s.git/config",
            "keep s.git/config.worktree",
            "keep s.git/hooks/",
            "keep if there s.git/modules/a/b/commondir",
            "keep s.git/modules/a/b/config",
            "keep s.git/modules/a/b/config.worktree",
            "keep s.git/modules/a/b/hooks/",
            "keep s.git/modules/a/b/modules/",
        ],
    ),
    // A folder that a worktree uses: what it shares is where `commondir` leads.
    (
        &["w/HEAD", "w/commondir", "w/gitdir"],
        &[
            "keep .git/",
            "keep w/commondir",
            "keep w/gitdir",
            "keep w/config.worktree",
        ],
    ),
];

#[tokio::test]
async fn settings_of_repositories_are_read_only() {
    let whole = [
        "keep .git/config",
        "keep .git/config.worktree",
        "keep .git/hooks/",
        "keep .git/info/attributes",
        "keep .git/modules/",
        "keep if there .git/commondir",
    ];
    check(REPOSITORY, &[], false, &whole).await;
    check(REPOSITORY, &["Read(nothing)"], true, &[]).await;
    let deep = [whole.as_slice(), &["hide .git/objects/ab/"]].concat();
    check(REPOSITORY, &["Read(ab)"], false, &deep).await;
    check(REPOSITORY, &["Edit(/.git/**)"], false, &["keep .git/"]).await;
    for (paths, expect) in REPOSITORIES {
        check(paths, &[], false, expect).await;
    }
}

#[tokio::test]
async fn what_git_files_and_commondirs_name_is_read_only() {
    for (pointer, text) in [
        ("sub/.git", "gitdir: ../real\n"),
        (".git", "gitdir: sub/../real\n"),
        ("w/commondir", "../real\n"),
    ] {
        let (dir, workspace) = tree(&["sub/", "real/x", "w/HEAD"]);
        fs::write(dir.path().join(pointer), text).unwrap();
        let guards = find(Denials::default(), workspace, false)
            .await
            .unwrap()
            .guards;
        assert!(
            describe(&guards).contains("keep real/"),
            "{text}: {guards:?}"
        );
    }
}

#[tokio::test]
async fn what_settings_of_repositories_name_is_read_only() {
    let (dir, workspace) = tree(&["sub/", "tool/run", "out/"]);
    let root = workspace.root().display();
    let config = format!(
        "[core]\n\thooksPath = own/hooks\n\tfsmonitor = ./tool/run --x=1\n[filter \"a\"]\n\tclean = {root}/tool/new.sh\n\
         [include]\n\tpath = ../team\n[remote \"o\"]\n\turl = ./out\n"
    );
    fs::create_dir_all(dir.path().join(".git")).unwrap();
    fs::write(dir.path().join(".git/config"), config).unwrap();
    fs::write(dir.path().join("team"), "[core]\npager = ./sub/page").unwrap();
    let guards = find(Denials::default(), workspace, false)
        .await
        .unwrap()
        .guards;
    let shown = describe(&guards);
    for expect in [
        "keep own/hooks/",
        "keep if there tool/run",
        "keep team",
        "keep if there sub/page",
    ] {
        assert!(shown.contains(expect), "{expect} {shown:?}");
    }
    assert!(!shown.iter().any(|one| one.ends_with(" out/")), "{shown:?}");
}

#[tokio::test]
async fn many_repositories_are_read_only_as_a_whole() {
    let paths: Vec<String> = (0..150)
        .flat_map(|at| ["HEAD", "objects/", "refs/"].map(|name| format!("r{at}/.git/{name}")))
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (_dir, workspace) = tree(&paths);
    let guards = find(Denials::default(), workspace, false)
        .await
        .unwrap()
        .guards;
    let ends = |end: &str| {
        guards
            .iter()
            .filter(|guard| guard.path.ends_with(end))
            .count()
    };
    assert_eq!((ends(".git/hooks"), ends(".git")), (100, 51));
}

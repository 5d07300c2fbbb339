//! What a commit of 100 files means, read from the workspace before and after it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use haft::change::{EntryState, FileHash};
use haft::workspace::Workspace;
use haft_builtins::command::meaning::{
    ChangeSides, PathChange, PathContent, ReadOptions, Side, read,
};
use measure::{Row, interleave, wall_ms};

/// A commit of 100 files of 100 lines, each with one changed line.
const MAKE: &str = "git init -q -b main ws && cd ws && for i in $(seq 100); do seq 100 > f$i; done && git add . && git commit -qm one && \
    cd .. && cp -a ws before && cd ws && sed -i 's/^50$/changed/' f* && git commit -qam two";

pub(crate) fn measure(rounds: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("sh")
        .args(["-c", MAKE])
        .current_dir(folder.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "ada")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "ada@localhost")))
        .status();
    assert!(made.expect("sh").success(), "git");
    let roots = ["before", "ws"].map(|name| folder.path().join(name));
    let workspace = Workspace::open(&roots[1]).expect("a workspace");
    let (was, is) = (files(&roots[0]), files(&roots[1]));
    let of = || {
        let open = |change: &PathChange<'_>, side| {
            let root = &roots[usize::from(side == Side::After)];
            File::open(root.join(change.path)).map(PathContent::File)
        };
        let sides = ChangeSides::new(&workspace, changes(&was, &is), open);
        let (ms, found) = wall_ms(|| read(&sides, ReadOptions::default(), &|_| true));
        assert_eq!(found[0].title, "commit 'two' on main: 100 files, +100 −100");
        ms
    };
    let row = Row::new("haft/meaning/commit of 100 files", "ms");
    interleave(rounds, vec![(row, Box::new(of))]);
}

/// Returns the files that differ.
fn changes<'a>(
    was: &'a BTreeMap<PathBuf, EntryState>,
    is: &'a BTreeMap<PathBuf, EntryState>,
) -> Vec<PathChange<'a>> {
    let all: BTreeSet<&PathBuf> = was.keys().chain(is.keys()).collect();
    let differ = all
        .into_iter()
        .filter(|path| was.get(*path) != is.get(*path));
    differ
        .map(|path| PathChange {
            path,
            before: was.get(path).map(Cow::Borrowed),
            after: is.get(path).map(Cow::Borrowed),
        })
        .collect()
}

/// Returns the files below a folder. Their content decides whether they changed.
fn files(root: &Path) -> BTreeMap<PathBuf, EntryState> {
    let (mut found, mut left) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let content = fs::read(&path).expect("a file");
            let state = EntryState::File {
                bytes: content.len() as u64,
                sha256: Some(FileHash::of(&content)),
                mode: Some(0o644),
            };
            let inside = path.strip_prefix(root).expect("below it");
            found.insert(inside.to_owned(), state);
        }
    }
    found
}

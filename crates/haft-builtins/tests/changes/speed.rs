//! How long it takes to read what a commit means. Measured only if `HAFT_MEASURE` is set, best with `--release`:
//! `HAFT_MEASURE=1 cargo test --release -p haft-builtins --test changes`. The goal is 20 ms for 100 files.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::time::Instant;

use haft::change::State;
use haft::workspace::Workspace;
use haft_builtins::command::meaning::{Content, PathChange, ReadOptions, Side, Sides, read};

use crate::git::host;

/// A commit of 100 files of 100 lines, each with one changed line.
const BEFORE: &str = "git init -q -b main ws && cd ws && for i in $(seq 100); do seq 100 > f$i; done && git add . && git commit -qm one && \
    cd .. && cp -a ws before && cd ws && sed -i 's/^50$/changed/' f* && git commit -qam two";

pub(crate) fn measure() {
    const ROUNDS: usize = 9;
    if std::env::var_os("HAFT_MEASURE").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    host(dir.path(), BEFORE);
    let workspace = Workspace::open(&dir.path().join("ws")).unwrap();
    let sides = [dir.path().join("before"), dir.path().join("ws")];
    let (was, is) = (files(&sides[0]), files(&sides[1]));
    let all: std::collections::BTreeSet<&PathBuf> = was.keys().chain(is.keys()).collect();
    let changes: Vec<PathChange> = all
        .into_iter()
        .filter(|path| was.get(*path) != is.get(*path))
        .map(|path| PathChange {
            path: path.clone(),
            before: was.get(path).cloned(),
            after: is.get(path).cloned(),
        })
        .collect();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let open = |change: &PathChange, side| {
                let root = &sides[usize::from(side == Side::After)];
                File::open(root.join(&change.path)).map(Content::File)
            };
            let sides = Sides::new(&workspace, changes.clone(), open);
            let begin = Instant::now();
            let found = read(&sides, ReadOptions::default(), &|_| true);
            let time = begin.elapsed().as_secs_f64() * 1e3;
            assert_eq!(found[0].title, "commit 'two' on main: 100 files, +100 −100");
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    eprintln!(
        "changes: reading a commit of 100 files takes {:.1} ms",
        times[ROUNDS / 2]
    );
}

/// Returns the files below a folder. Their content decides whether they changed.
fn files(root: &Path) -> BTreeMap<PathBuf, State> {
    let (mut found, mut left) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(root).unwrap().to_owned();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let content = std::fs::read(&path).unwrap();
            let state = State::File {
                bytes: content.len() as u64,
                sha256: Some(
                    BuildHasherDefault::<DefaultHasher>::default()
                        .hash_one(&content)
                        .to_string(),
                ),
                mode: Some(0o644),
            };
            found.insert(inside, state);
        }
    }
    found
}

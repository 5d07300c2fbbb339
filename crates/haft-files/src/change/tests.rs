//! Random changes are recorded, and undone byte for byte unless another program has changed the files since.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::net::{ChangeKind, NetChange, net_changes};
use super::undo::{LaterChangePolicy, UndoSteps, plan};
use super::*;
use crate::workspace::{ResolvedPath, Workspace, WriteMode};
use haft_types::call::{CallId, RunId};

mod force;

/// A workspace, and the log of its changes.
struct Scene {
    home: TempDir,
    work: TempDir,
    workspace: Workspace,
    log: Arc<ChangeLog>,
}

impl Scene {
    fn new() -> Self {
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for run in ["r1", "r2", "r3"] {
            fs::create_dir_all(home.path().join("runs").join(run)).unwrap();
        }
        for (path, text) in [
            ("a", "one\n"),
            ("b", "two\n"),
            ("d/x", "three\n"),
            ("d/e/y", ""),
        ] {
            let path = work.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::set_permissions(work.path().join("b"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::set_permissions(work.path().join("d/e"), fs::Permissions::from_mode(0o1700)).unwrap();
        symlink("../a", work.path().join("d/l")).unwrap();
        fs::create_dir(work.path().join("empty")).unwrap();
        Self {
            workspace: Workspace::open(work.path()).unwrap(),
            log: Arc::new(ChangeLog::new(home.path())),
            home,
            work,
        }
    }

    fn changer(&self, run: &str) -> Changer {
        Changer::of(
            &self.workspace,
            &self.log,
            &RunId::new(run),
            &CallId::new("call-1"),
        )
    }

    fn entry(&self, path: &str) -> ResolvedPath {
        self.workspace.entry(path).unwrap()
    }

    fn nets(&self, run: &str) -> Vec<NetChange> {
        net_changes(&self.log.read(&RunId::new(run)).unwrap())
    }

    fn plan(&self, run: &str) -> UndoSteps {
        self.plan_with(run, LaterChangePolicy::Refuse)
    }

    fn plan_with(&self, run: &str, changed: LaterChangePolicy) -> UndoSteps {
        let (nets, run) = (self.nets(run), RunId::new(run));
        plan(&nets, &self.workspace, &self.log, &run, changed).unwrap()
    }

    /// Returns every path with its kind; files with their mode and text.
    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut todo = vec![self.work.path().to_owned()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let what = if meta.is_dir() {
                    todo.push(path.clone());
                    format!("folder {:o}", meta.permissions().mode() & 0o7777)
                } else if meta.is_symlink() {
                    format!("link {:?}", fs::read_link(&path).unwrap())
                } else {
                    let mode = meta.permissions().mode() & 0o777;
                    format!("{mode:o} {:?}", fs::read_to_string(&path).unwrap())
                };
                let path = path.strip_prefix(self.work.path()).unwrap();
                all.insert(path.to_owned(), what);
            }
        }
        all
    }
}

/// An operation of a call; impossible ones do nothing.
#[derive(Debug, Clone)]
enum Does {
    Write(&'static str, &'static str),
    Remove(&'static str),
    Move(&'static str, &'static str),
}

impl Does {
    fn it(&self, scene: &Scene, changer: &Changer) {
        match self {
            Self::Write(path, text) => {
                let Ok(place) = scene.workspace.place(path) else {
                    return;
                };
                let _ = changer.write(&place, text.as_bytes(), WriteMode::Overwrite, None);
            }
            Self::Remove(path) => {
                if let Ok(place) = scene.workspace.entry(path) {
                    let _ = changer.remove(&place, true);
                }
            }
            Self::Move(from, to) => {
                let places = (scene.workspace.entry(from), scene.workspace.entry(to));
                if let (Ok(from), Ok(to)) = places {
                    let _ = changer.rename(&from, &to, true);
                }
            }
        }
    }
}

const PATHS: [&str; 10] = [
    "a", "b", "c", "d", "d/x", "d/e", "d/e/y", "d/l", "n/m/k", "empty",
];

fn does() -> impl Strategy<Value = Does> {
    let path = || prop::sample::select(&PATHS[..]);
    let text = prop::sample::select(&["one\n", "new\n", "", "four\nfive\n"][..]);
    prop_oneof![
        3 => (path(), text).prop_map(|(path, text)| Does::Write(path, text)),
        2 => path().prop_map(Does::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Does::Move(from, to)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_calls_changed_is_taken_back_and_brought_back(all in prop::collection::vec(does(), 1..8)) {
        let scene = Scene::new();
        let before = scene.tree();
        let changer = scene.changer("r1");
        for one in &all {
            one.it(&scene, &changer);
        }
        let after = scene.tree();
        let undo = scene.plan("r1");
        prop_assert!(undo.conflicts.is_empty(), "{:?}", undo.conflicts);
        undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
        prop_assert_eq!(&scene.tree(), &before, "{:?}", undo);
        let again = scene.plan("r2");
        prop_assert!(again.conflicts.is_empty(), "{:?}", again.conflicts);
        again.apply(&scene.workspace, &scene.changer("r3")).unwrap();
        prop_assert_eq!(scene.tree(), after);
    }
}

#[test]
fn what_was_changed_is_told_in_one_word() {
    type Row = (&'static [Does], &'static [(&'static str, ChangeKind)]);
    let rows: [Row; 8] = [
        (&[Does::Write("a", "new\n")], &[("a", ChangeKind::Modify)]),
        (&[Does::Write("c", "new\n")], &[("c", ChangeKind::Create)]),
        (&[Does::Remove("a")], &[("a", ChangeKind::Delete)]),
        (&[Does::Move("a", "c")], &[("c", ChangeKind::Move)]),
        (&[Does::Write("c", "x"), Does::Remove("c")], &[]),
        (&[Does::Write("a", "x"), Does::Write("a", "one\n")], &[]),
        (
            &[Does::Remove("a"), Does::Write("a", "new\n")],
            &[("a", ChangeKind::Modify)],
        ),
        (
            &[Does::Remove("d/l"), Does::Write("d/l", "")],
            &[("d/l", ChangeKind::Replace)],
        ),
    ];
    for (all, expect) in rows {
        let scene = Scene::new();
        let changer = scene.changer("r1");
        for one in all {
            one.it(&scene, &changer);
        }
        let nets = scene.nets("r1");
        let found: Vec<_> = nets.iter().map(|net| (net.path(), net.action())).collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(path, a)| (Path::new(*path), *a))
            .collect();
        assert_eq!(found, expect, "{all:?}");
    }
}

#[test]
fn what_another_program_changed_is_undone_if_it_was_saved_before() {
    type Row = (&'static [&'static str], fn(&Path), usize);
    let rows: [Row; 6] = [
        (&["a"], |work| fs::write(work.join("a"), "new").unwrap(), 1),
        (&["a"], |_| {}, 0),
        (&["a"], |work| fs::remove_file(work.join("a")).unwrap(), 1),
        (
            &["n/m/c"],
            |work| {
                fs::create_dir_all(work.join("n/m")).unwrap();
                fs::write(work.join("n/m/c"), "new").unwrap();
            },
            3,
        ),
        (
            &["a", "c"],
            |work| fs::rename(work.join("a"), work.join("c")).unwrap(),
            2,
        ),
        (&["c"], |work| fs::write(work.join("c"), "new").unwrap(), 1),
    ];
    for (paths, change, count) in rows {
        let scene = Scene::new();
        let before = scene.tree();
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let saved = scene.changer("r1").foreign_change(&paths).unwrap();
        change(scene.work.path());
        assert_eq!(saved.record().unwrap(), count, "{paths:?}");
        let undo = scene.plan("r1");
        assert!(undo.conflicts.is_empty(), "{paths:?}: {undo:?}");
        undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
        assert_eq!(scene.tree(), before, "{paths:?}");
    }
}

#[test]
fn what_somebody_else_changed_is_not_touched() {
    type Row = (&'static str, fn(&Path));
    let foreign: [Row; 5] = [
        ("it was changed after the run", |work| {
            fs::write(work.join("a"), "mine").unwrap();
        }),
        ("it was changed after the run", |work| {
            fs::remove_file(work.join("a")).unwrap();
        }),
        ("something else is there now", |work| {
            fs::write(work.join("b"), "mine").unwrap();
        }),
        ("it was changed after the run", |work| {
            fs::write(work.join("c"), "mine").unwrap();
        }),
        ("it was changed after the run", |work| {
            fs::remove_file(work.join("c")).unwrap();
            fs::create_dir(work.join("c")).unwrap();
        }),
    ];
    for (why, change) in foreign {
        let scene = Scene::new();
        let changer = scene.changer("r1");
        for one in [
            Does::Write("a", "new\n"),
            Does::Remove("b"),
            Does::Write("c", ""),
        ] {
            one.it(&scene, &changer);
        }
        change(scene.work.path());
        let plan = scene.plan("r1");
        let found: Vec<_> = plan.conflicts.iter().map(|conflict| conflict.why).collect();
        assert_eq!(found, [why]);
    }
    // Something else was created where something was moved from.
    for (from, to, made) in [("a", "c", "a"), ("d", "c", "d/x")] {
        let scene = Scene::new();
        Does::Move(from, to).it(&scene, &scene.changer("r1"));
        let made = scene.work.path().join(made);
        fs::create_dir_all(made.parent().unwrap()).unwrap();
        fs::write(made, "mine").unwrap();
        let plan = scene.plan("r1");
        let found: Vec<_> = plan.conflicts.iter().map(|conflict| conflict.why).collect();
        assert_eq!(found, ["something else is there now"], "{from}");
    }
    // A change between two calls.
    let scene = Scene::new();
    Does::Write("a", "new\n").it(&scene, &scene.changer("r1"));
    fs::write(scene.work.path().join("a"), "mine").unwrap();
    Does::Write("a", "newer\n").it(&scene, &scene.changer("r1"));
    let plan = scene.plan("r1");
    assert_eq!(
        plan.conflicts[0].why,
        "another program changed it between these changes"
    );
}

#[test]
fn an_undo_replaces_no_file_that_it_did_not_compare() {
    // In a folder that moves back.
    let scene = Scene::new();
    for one in [Does::Remove("d/x"), Does::Move("d", "c")] {
        one.it(&scene, &scene.changer("r1"));
    }
    fs::write(scene.work.path().join("c/x"), "mine").unwrap();
    let plan = scene.plan("r1");
    assert_eq!(plan.conflicts[0].path, Path::new("c/x"), "{plan:?}");
    // After the undo was planned.
    for (path, text) in [("a", "mine"), ("b", "mine"), ("c", "mine")] {
        let scene = Scene::new();
        let changer = scene.changer("r1");
        for one in [
            Does::Write("a", "new\n"),
            Does::Remove("b"),
            Does::Write("c", ""),
        ] {
            one.it(&scene, &changer);
        }
        let undo = scene.plan("r1");
        fs::write(scene.work.path().join(path), text).unwrap();
        let before = scene.tree();
        undo.apply(&scene.workspace, &scene.changer("r2"))
            .unwrap_err();
        assert_eq!(scene.tree(), before, "{path}");
    }
}

#[test]
fn what_a_killed_process_noted_is_compared_with_what_lies_there() {
    // Recorded but not done, recorded and done, and an incomplete line.
    for (does, text) in [(false, "one\n"), (true, "new\n")] {
        let scene = Scene::new();
        Does::Write("a", "new\n").it(&scene, &scene.changer("r1"));
        let log = scene.home.path().join("runs/r1/changes/log.jsonl");
        let lines = fs::read_to_string(&log).unwrap();
        let (set, end) = lines.split_once('\n').unwrap();
        fs::write(&log, format!("{set}\n{}", &end[..10])).unwrap();
        if !does {
            fs::write(scene.work.path().join("a"), "one\n").unwrap();
        }
        let undo = scene.plan("r1");
        assert_eq!(
            (undo.conflicts.len(), undo.is_empty()),
            (0, !does),
            "{undo:?}"
        );
        assert_eq!(
            fs::read_to_string(scene.work.path().join("a")).unwrap(),
            text
        );
        undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
        assert_eq!(
            fs::read_to_string(scene.work.path().join("a")).unwrap(),
            "one\n"
        );
        // The next record follows a complete line.
        Does::Write("b", "new\n").it(&scene, &scene.changer("r1"));
        assert_eq!(scene.log.read(&RunId::new("r1")).unwrap().len(), 2);
    }
}

#[test]
fn what_is_kept_is_a_plain_file_and_its_size_is_not_believed() {
    let scene = Scene::new();
    Does::Write("a", "new\n").it(&scene, &scene.changer("r1"));
    let (run, changes) = (RunId::new("r1"), scene.home.path().join("runs/r1/changes"));
    let kept = fs::read_dir(changes.join("files"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let undo = |scene: &Scene| {
        let nets = scene.nets("r1");
        plan(
            &nets,
            &scene.workspace,
            &scene.log,
            &run,
            LaterChangePolicy::Refuse,
        )
    };
    let log = fs::read_to_string(changes.join("log.jsonl")).unwrap();
    let huge = log.replacen("\"bytes\":4,", "\"bytes\":18446744073709551615,", 1);
    assert_ne!(huge, log);
    fs::write(changes.join("log.jsonl"), huge).unwrap();
    assert_eq!(undo(&scene).unwrap().conflicts.len(), 1);
    fs::write(changes.join("log.jsonl"), log).unwrap();
    fs::remove_file(kept.path()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        kept.path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let error = undo(&scene).unwrap_err().to_string();
    assert!(error.contains("not a file that was kept"), "{error}");
}

#[test]
fn what_is_kept_already_is_kept_once_and_anew_where_it_is_damaged() {
    let scene = Scene::new();
    let files = scene.home.path().join("runs/r1/changes/files");
    let kept = || fs::read_dir(&files).unwrap().map(|kept| kept.unwrap());
    let mut first: Option<PathBuf> = None;
    // As it was saved, as a crash may leave it, and with different bytes of the same length.
    for (left, again) in [("one\n", false), ("", true), ("two\n", true)] {
        fs::write(scene.work.path().join("a"), "one\n").unwrap();
        if let Some(path) = &first {
            fs::write(path, left).unwrap();
        }
        let before: Vec<u64> = first.iter().map(|path| inode(path)).collect();
        Does::Write("a", "new\n").it(&scene, &scene.changer("r1"));
        let all: Vec<PathBuf> = kept().map(|kept| kept.path()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(fs::read_to_string(&all[0]).unwrap(), "one\n", "{left:?}");
        let other = before
            .first()
            .is_some_and(|before| *before != inode(&all[0]));
        assert_eq!(other, again, "{left:?}");
        first = all.into_iter().next();
    }
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
}

#[test]
fn what_cannot_be_noted_is_not_done() {
    let scene = Scene::new();
    fs::remove_dir_all(scene.home.path().join("runs/r1")).unwrap();
    let changer = scene.changer("r1");
    let write = changer.write(&scene.entry("a"), b"new", WriteMode::Overwrite, None);
    assert!(write.is_err(), "{write:?}");
    let error = changer.remove(&scene.entry("b"), false).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    assert_eq!(
        fs::read_to_string(scene.work.path().join("a")).unwrap(),
        "one\n"
    );
    assert!(scene.work.path().join("b").exists());
}

#[test]
fn names_and_links_that_are_not_text_are_kept_as_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    for bytes in [&b"plain/\xc3\xbc"[..], b"\xff\n\x80", b""] {
        let path = PathText(std::ffi::OsStr::from_bytes(bytes).into());
        let json = serde_json::to_string(&path).unwrap();
        assert_eq!(
            serde_json::from_str::<PathText>(&json).unwrap(),
            path,
            "{json}"
        );
    }
}

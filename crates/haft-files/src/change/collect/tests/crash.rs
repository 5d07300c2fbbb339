//! Processes killed while they apply changes: another run completes the work, or an undo restores what was before.

use std::process::Stdio;

use super::*;

/// The variable that tells the child which scene to apply.
const SCENE: &str = "HAFT_TEST_CRASH_SCENE";
/// Number of files for each kind of change.
const FILES: usize = 100;

fn prepare() -> Scene {
    let mut scene = Scene::new();
    let folder = |name: &str| {
        fs::create_dir(scene.work(name)).unwrap();
        for number in 0..FILES {
            fs::write(
                scene.work(&format!("{name}/{number}")),
                format!("old {number}"),
            )
            .unwrap();
        }
    };
    for name in ["changed", "deleted", "replaced"] {
        folder(name);
    }
    scene.begin();
    for name in ["changed", "new"] {
        fs::create_dir(scene.upper(name)).unwrap();
        for number in 0..FILES {
            fs::write(
                scene.upper(&format!("{name}/{number}")),
                format!("new {number}"),
            )
            .unwrap();
        }
    }
    let device = rustix::fs::FileType::CharacterDevice;
    let (path, mode) = (scene.upper("deleted"), rustix::fs::Mode::empty());
    rustix::fs::mknodat(rustix::fs::CWD, path, device, mode, 0).unwrap();
    fs::write(scene.upper("replaced"), "a file").unwrap();
    scene
}

/// The test that the killed process runs.
#[test]
#[ignore = "only as a child of the test below"]
fn child_that_applies() {
    let Some(base) = std::env::var_os(SCENE).map(PathBuf::from) else {
        return;
    };
    let workspace = Workspace::open(&base.join("work")).unwrap();
    let log = Arc::new(ChangeLog::new(base.join("home")));
    let since = fs::read(base.join("home/since")).unwrap();
    let since = serde_json::from_slice(&since).unwrap();
    let collected = CollectedChanges::collect(&workspace, &base.join("view/upper"), since).unwrap();
    let changer = Changer::of(&workspace, &log, &RunId::new("r1"), &CallId::new("call-1"));
    collected.apply(&workspace, &changer, &|_| true).unwrap();
}

/// Runs the child and kills it when a file exists, or with `-` when it is deleted.
fn kill_at(scene: &Scene, moment: &str) {
    let base = scene.base.path();
    let since = serde_json::to_vec(&scene.since.unwrap()).unwrap();
    fs::write(base.join("home/since"), since).unwrap();
    let name = "change::collect::tests::crash::child_that_applies";
    let mut child = program(std::env::current_exe().unwrap().to_str().unwrap());
    let child = child.args(["--exact", name, "--ignored"]).env(SCENE, base);
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let reached = || match moment.strip_prefix('-') {
        Some(gone) => !scene.work(gone).exists(),
        None => scene.work(moment).exists(),
    };
    while !reached() && child.try_wait().unwrap().is_none() {}
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns when to kill processes; with `HAFT_SOAK` at every file, 600 times in total.
fn moments() -> Vec<String> {
    if std::env::var_os("HAFT_SOAK").is_some() {
        let at = |number| ["-deleted", "-replaced", "new"].map(|step| format!("{step}/{number}"));
        return (0..FILES).flat_map(at).collect();
    }
    let few = [
        "-deleted/0",
        "-deleted/60",
        "-replaced/0",
        "-replaced",
        "new",
        "new/0",
        "new/60",
    ];
    few.map(str::to_owned).to_vec()
}

#[test]
fn what_a_killed_process_left_is_completed_or_undone() {
    for moment in moments() {
        is_completed_or_undone(&moment, true);
        is_completed_or_undone(&moment, false);
    }
}

fn is_completed_or_undone(moment: &str, undone: bool) {
    let scene = prepare();
    let before = scene.tree();
    kill_at(&scene, moment);
    // Undone from the record made before the first change, or completed by another process.
    if undone {
        let undo = scene.plan("r1");
        assert_eq!(
            undo.conflicts.len(),
            0,
            "{moment}: {:?}",
            undo.conflicts.first()
        );
        undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
        let drafts = scene.tree();
        let drafts = drafts
            .keys()
            .filter(|path| path.to_string_lossy().contains(".haft-"));
        drafts.for_each(|path| fs::remove_file(scene.work("").join(path)).unwrap());
        assert!(scene.tree() == before, "{moment}");
        return;
    }
    let again = scene.collect_again();
    let conflicts = again
        .changes
        .iter()
        .filter(|change| change.conflict.is_some());
    assert_eq!(conflicts.count(), 0, "{moment}");
    again
        .apply(&scene.workspace, &scene.changer("r3"), &|_| true)
        .unwrap();
    assert!(scene.collect().changes.is_empty());
    assert_eq!(
        fs::read_to_string(scene.work("replaced")).unwrap(),
        "a file"
    );
    assert_eq!(fs::read_dir(scene.work("new")).unwrap().count(), FILES);
    assert!(!scene.work("deleted").exists());
}

/// Applying that is stopped before its Nth step leaves whole steps; the rest follows, or what was made is undone.
#[test]
fn applying_when_stopped_says_so_and_is_completed_or_undone() {
    for (steps, undone) in [0, 1, 2, 3, 4, 5].map(|steps| (steps, steps % 2 == 0)) {
        let scene = prepare();
        let before = scene.tree();
        let collected = scene.collect();
        let left = std::cell::Cell::new(steps);
        let go_on = || match left.get() {
            0 => Err(WorkspaceError::Stopped("the time is over")),
            more => {
                left.set(more - 1);
                Ok(())
            }
        };
        let (changer, all) = (scene.changer("r1"), |_: &Path| true);
        let stopped = collected.apply_within(&scene.workspace, &changer, &all, &go_on);
        assert!(
            matches!(stopped, Err(WorkspaceError::Stopped(_))),
            "{steps}"
        );
        let made = collected.applied(&scene.workspace, &all).len();
        assert!(made < collected.changes.len(), "{steps}: {made}");
        assert_eq!(scene.tree() == before, made == 0, "{steps}: {made}");
        if undone {
            let undo = scene.plan("r1");
            assert_eq!(undo.conflicts.len(), 0, "{steps}");
            undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
            assert!(scene.tree() == before, "{steps}");
        } else {
            let again = scene.collect_again();
            again
                .apply(&scene.workspace, &scene.changer("r3"), &all)
                .unwrap();
            assert!(scene.collect().changes.is_empty(), "{steps}");
        }
    }
}

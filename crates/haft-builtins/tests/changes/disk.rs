//! Full disks: small file systems for haft's state and for the workspace, in a mount namespace of their own. The result
//! reports exactly what was applied, nothing is lost, and nothing is left half-made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use haft::policy::Profile;
use haft::{ErrorKind, Outcome};
use haft_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::scene::{Scene, Settings, data};

/// Names the folder of the scenes for the process in the namespace.
const FOLDER: &str = "HAFT_TEST_DISKS";

/// Runs all cases in a process that may mount.
pub(crate) fn all() {
    let folder = tempfile::tempdir().unwrap();
    let mut unshare = program("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("-r");
    }
    let try_first = "mount -t tmpfs disk \"$0\" && umount \"$0\"";
    let mut probe = program("unshare");
    probe.args(unshare.get_args());
    let probe = probe.args(["-m", "sh", "-c", try_first]).arg(folder.path());
    if !probe.status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no small file systems can be mounted here");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let child = unshare.arg("-m").arg(own).env(FOLDER, folder.path());
    assert!(child.status().unwrap().success(), "in the namespace");
}

/// Runs the cases if this is the process in the namespace, and returns whether it is.
pub(crate) async fn inside(sandbox: &Sandbox) -> bool {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return false;
    };
    let disks = Disks { sandbox, folder };
    disks.the_view_is_full().await;
    disks.what_is_replaced_cannot_be_saved().await;
    disks.what_is_asked_about_cannot_be_kept().await;
    disks.the_workspace_is_full().await;
    disks.the_workspace_has_no_room_for_names().await;
    disks.what_cannot_be_saved_is_moved().await;
    disks.something_is_mounted_in_the_workspace().await;
    disks.the_state_is_on_an_overlay().await;
    eprintln!("changes: 6 full and 2 odd disks: ok");
    true
}

#[expect(
    clippy::disallowed_methods,
    reason = "mounting takes a process of its own"
)]
fn program(name: &str) -> Command {
    Command::new(name)
}

struct Disks<'a> {
    sandbox: &'a Sandbox,
    folder: PathBuf,
}

impl Disks<'_> {
    /// Creates a scene under `profile` with a small file system at `place`.
    fn scene(&self, profile: Profile, place: &str, options: &str) -> Scene {
        let settings = Settings {
            profile,
            ..Settings::default()
        };
        Scene::placed(self.sandbox, &settings, &self.folder, |scene| {
            mount(&["-t", "tmpfs", "-o", options, "disk"], &scene.join(place));
        })
    }

    async fn the_view_is_full(&self) {
        let scene = self.scene(Profile::Trusted, "home", "size=4m");
        scene.put("tracked", "before\n");
        let before = scene.tree();
        let outcome = scene.run("head -c 20M /dev/zero > tracked; true").await;
        // As much as there was room for, or nothing if there was no room for the note.
        check_report(&scene, &before, &outcome);
        assert!(scene.views_left() == 0, "{outcome:?}");
    }

    async fn what_is_replaced_cannot_be_saved(&self) {
        let scene = self.scene(Profile::Trusted, "home", "size=6m");
        for name in ["one", "two"] {
            fs::write(scene.at(name), name.repeat(4 << 18)).unwrap();
        }
        let before = scene.tree();
        let outcome = scene.run("echo new > other; rm one two").await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Failed), "{outcome:?}");
        assert!(scene.tree() == before, "{outcome:?}");
        check_report(&scene, &before, &outcome);
        assert_eq!(scene.views_left(), 0);
        assert_eq!(not_applied(&outcome), ["one", "other", "two"]);
        // A partial copy is not taken for a complete file.
        for saved in scene.saved_files() {
            assert!(
                !saved.to_string_lossy().contains("draft"),
                "{}",
                saved.display()
            );
        }
    }

    async fn what_is_asked_about_cannot_be_kept(&self) {
        let scene = self.scene(Profile::Workspace, "home", "size=4m");
        scene.put(".gitignore", "/out/\n");
        scene.put("tracked", "before\n");
        let before = scene.tree();
        let line = "mkdir out; echo after > tracked; head -c 20M /dev/zero > out/x; true";
        let outcome = scene.run(line).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Failed), "{outcome:?}");
        check_report(&scene, &before, &outcome);
        assert_eq!(scene.views_left(), 0);
        assert!(scene.questions().is_empty());
    }

    async fn the_workspace_is_full(&self) {
        let scene = self.scene(Profile::Trusted, "ws", "size=4m");
        scene.put("tracked", "before\n");
        let before = scene.tree();
        let line = "rm tracked; for i in 1 2 3; do head -c 2500k /dev/zero > $i; done";
        let outcome = scene.run(line).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Failed), "{outcome:?}");
        check_report(&scene, &before, &outcome);
    }

    /// The file system runs out of inodes in the middle.
    async fn the_workspace_has_no_room_for_names(&self) {
        let scene = self.scene(Profile::Trusted, "ws", "nr_inodes=20");
        for name in ["a", "b", "y"] {
            scene.put(name, "before\n");
        }
        let before = scene.tree();
        let line = "rm a b y; ln -s a y; mkdir b; for i in $(seq 30); do echo $i > b/$i; done";
        let outcome = scene.run(line).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Failed), "{outcome:?}");
        check_report(&scene, &before, &outcome);
        let left = not_applied(&outcome);
        // Its old file is deleted, and the link is not made.
        let shown = serde_json::to_string(&outcome).unwrap();
        assert!(left.contains(&"y".to_owned()), "{shown}");
        assert!(shown.contains("what was there is deleted"), "{shown}");
        assert_eq!(scene.views_left(), 1, "{shown}");
        let call = json!({"run": outcome.run.as_str(), "call": outcome.call.as_str()});
        let undone = scene.call("undo_changes", call).await;
        assert!(undone.is_ok(), "{undone:?}");
        assert!(scene.tree() == before, "{undone:?}");
    }

    async fn something_is_mounted_in_the_workspace(&self) {
        let scene = Scene::placed(self.sandbox, &trusted(), &self.folder, |scene| {
            fs::create_dir(scene.join("ws/sub")).unwrap();
            mount(&["-t", "tmpfs", "disk"], &scene.join("ws/sub"));
        });
        let why = scene.changes.usable().unwrap_err();
        assert!(why.ends_with("sub is a mount point"), "{why}");
        is_direct(&scene, "echo new > sub/a; cat sub/a > b", "b").await;
    }

    /// Commands work with whatever this kernel supports there, and leave nothing behind.
    async fn the_state_is_on_an_overlay(&self) {
        let scene = Scene::placed(self.sandbox, &trusted(), &self.folder, |scene| {
            let of = |part: &str| scene.join(part).display().to_string();
            for part in ["lower", "upper", "work"] {
                fs::create_dir(scene.join(part)).unwrap();
            }
            let (lower, upper, work) = (of("lower"), of("upper"), of("work"));
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr");
            mount(&["-t", "overlay", "-o", &options, "o"], &scene.join("home"));
        });
        if let Err(why) = scene.changes.usable() {
            assert!(!why.is_empty());
            return is_direct(&scene, "echo new > b", "b").await;
        }
        let before = scene.tree();
        let outcome = scene.run("echo new > b").await;
        assert!(outcome.is_ok(), "{outcome:?}");
        check_report(&scene, &before, &outcome);
        assert_eq!(scene.views_left(), 0);
    }

    /// A file that is too large for an undo and cannot be moved anywhere.
    async fn what_cannot_be_saved_is_moved(&self) {
        let scene = self.scene(Profile::Trusted, "ws", "size=90m,nr_inodes=8");
        fs::write(scene.at("big"), vec![b'x'; 66 << 20]).unwrap();
        let before = scene.tree();
        let line = "mv big later; for i in 1 2 3 4 5 6 7 8; do echo $i > $i; done";
        let outcome = scene.run(line).await;
        check_report(&scene, &before, &outcome);
        let kept = scene
            .views()
            .into_iter()
            .map(|view| view.join("upper/later"));
        let there = kept.chain([scene.at("big")]);
        let lengths = there.filter_map(|path| Some(fs::metadata(path).ok()?.len()));
        assert_eq!(lengths.max(), Some(66 << 20), "{outcome:?}");
    }
}

fn trusted() -> Settings {
    Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    }
}

fn mount(options: &[&str], at: &Path) {
    let mounted = program("mount").args(options).arg(at).status();
    assert!(mounted.unwrap().success(), "{options:?}");
}

/// Asserts that a command changes a file in the workspace itself, and that its strength says so.
async fn is_direct(scene: &Scene, line: &str, made: &str) {
    let outcome = scene.run(line).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(fs::read_to_string(scene.at(made)).unwrap(), "new\n");
    let strength = outcome.strength.clone().unwrap_or_default();
    assert!(strength.contains("changes direct"), "{outcome:?}");
    assert_eq!(scene.views_left(), 0);
}

fn kind(outcome: &Outcome) -> Option<ErrorKind> {
    outcome.error.as_ref().map(|error| error.kind)
}

fn not_applied(outcome: &Outcome) -> Vec<String> {
    let all = data(outcome)["not_applied"].as_array().cloned();
    let path = |one: Value| one["path"].as_str().unwrap().to_owned();
    let mut paths: Vec<_> = all.unwrap_or_default().into_iter().map(path).collect();
    paths.sort();
    paths
}

/// Asserts that the result reports exactly what changed in the workspace.
fn check_report(
    scene: &Scene,
    before: &std::collections::BTreeMap<PathBuf, String>,
    outcome: &Outcome,
) {
    let data = data(outcome);
    let paths = |list: &str, half_made: bool| -> BTreeSet<PathBuf> {
        let all = data[list].as_array().cloned().unwrap_or_default();
        let says = |one: &Value| {
            let why = one["why"].as_str().unwrap_or_default();
            let half = ["what was there is deleted", "the folder is made"];
            !half_made || half.iter().any(|half| why.starts_with(half))
        };
        let named = all.iter().filter(|one| says(one));
        named
            .map(|one| one["path"].as_str().unwrap().into())
            .collect()
    };
    let mut said = paths("changes", false);
    said.extend(paths("not_applied", true));
    let after = scene.tree();
    let all: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let changed = all
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path));
    let changed: BTreeSet<PathBuf> = changed.cloned().collect();
    assert_eq!(changed, said, "{}", serde_json::to_string(outcome).unwrap());
}

//! The user's caches as commands see them, and the removal of unused views and caches.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::clock;
use haft_sandbox::Sandbox;
use rustix::fs::{FlockOperation, flock};

use crate::scene::{Scene, Settings};

const HOUR: Duration = Duration::from_hours(1);

pub(crate) async fn all(sandbox: &Sandbox) {
    shared_by_a_run(sandbox).await;
    used_at_once(sandbox).await;
    denied(sandbox).await;
    linked(sandbox).await;
    swept(sandbox).await;
    swept_without_links(sandbox).await;
    eprintln!("changes: caches and what is swept: ok");
}

fn with_cache() -> Settings {
    Settings {
        home: &[(".npm/_cacache/old", "old\n"), (".npmrc", "secret\n")],
        ..Settings::default()
    }
}

/// Returns what a command printed; it must succeed, need no approval and change nothing.
async fn stdout_of(scene: &Scene, line: &str) -> String {
    let outcome = scene.run(line).await;
    assert!(outcome.error.is_none(), "{line}: {:?}", outcome.error);
    let data: serde_json::Value =
        serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap();
    assert!(
        scene.questions().is_empty() && data.get("changes").is_none(),
        "{data}"
    );
    data["stdout"].as_str().unwrap_or_default().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn shared_by_a_run(sandbox: &Sandbox) {
    let scene = Scene::with(sandbox, &with_cache());
    let line = "cat ~/.npm/_cacache/old; echo new > ~/.npm/_cacache/new; echo x > ~/.npmrc; cat ~/.npm/_cacache/new";
    assert_eq!(stdout_of(&scene, line).await, "old\nnew\n");
    // The next command sees the cache, and nothing else of the home or of the first command's.
    let line = "echo start > /tmp/x; ls ~/.npm/_cacache; ls -A ~ | grep npmrc; true";
    assert_eq!(stdout_of(&scene, line).await, "new\nold\n");
    let user = scene.dir.path().join("user");
    assert_eq!(names(&user.join(".npm/_cacache")), ["old"]);
    assert_eq!(fs::read_to_string(user.join(".npmrc")).unwrap(), "secret\n");
}

fn caches(scene: &Scene) -> PathBuf {
    let runs = scene.dir.path().join("home/runs");
    let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap();
    run.path().join("changes/caches")
}

async fn used_at_once(sandbox: &Sandbox) {
    let scene = Scene::with(sandbox, &with_cache());
    stdout_of(&scene, "echo new > ~/.npm/_cacache/new").await;
    let other = File::open(caches(&scene)).unwrap();
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    let line = "echo alone > ~/.npm/_cacache/alone; ls ~/.npm/_cacache";
    assert_eq!(stdout_of(&scene, line).await, "alone\nold\n");
    drop(other);
    let line = "echo > /tmp/x; ls ~/.npm/_cacache";
    assert_eq!(stdout_of(&scene, line).await, "new\nold\n");
    assert_eq!(scene.views_left(), 0);
}

async fn denied(sandbox: &Sandbox) {
    for (rule, seen) in [
        ("Read(//**/.npm/**)", "False\n"),
        ("Read(*.pem)", "old\n\n"),
    ] {
        let mut settings = with_cache();
        settings.deny = Box::leak(Box::new([rule]));
        let scene = Scene::with(sandbox, &settings);
        // The command line contains no path that a rule could match.
        let line = "python3 -c 'import os; os.chdir(os.environ[\"HOME\"]); p = \".npm/_cacache/old\"; print(os.path.exists(p) and open(p).read())'";
        assert_eq!(stdout_of(&scene, line).await, seen, "{rule}");
    }
}

/// Rules hold under every name of a cache, and a cache that links to another place of the home is not shown.
async fn linked(sandbox: &Sandbox) {
    let line = "python3 -c 'import os; os.chdir(os.environ[\"HOME\"]); p = \".npm/_cacache/old\"; print(os.path.exists(p) and open(p).read())'";
    for (rule, to, seen) in [
        ("Read(*.pem)", "disk", "old\n\n"),
        ("Read(//**/.npm/**)", "disk", "False\n"),
        ("Read(//**/disk/**)", "disk", "False\n"),
        ("Read(*.pem)", "user/.ssh", "False\n"),
    ] {
        let mut settings = with_cache();
        settings.deny = Box::leak(Box::new([rule]));
        let scene = Scene::with(sandbox, &settings);
        let (cache, to) = (
            scene.dir.path().join("user/.npm/_cacache"),
            scene.dir.path().join(to),
        );
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(&cache, &to).unwrap();
        std::os::unix::fs::symlink(&to, &cache).unwrap();
        assert_eq!(
            stdout_of(&scene, line).await,
            seen,
            "{rule} {}",
            to.display()
        );
    }
}

/// The daily cleanup deletes nothing behind a link.
async fn swept_without_links(sandbox: &Sandbox) {
    let scene = Scene::with(sandbox, &with_cache());
    stdout_of(&scene, "echo new > ~/.npm/_cacache/new").await;
    let run = caches(&scene).join("../..").canonicalize().unwrap();
    let victim = scene.dir.path().join("victim");
    fs::create_dir_all(victim.join("changes/views/a1-b1/work/work")).unwrap();
    fs::create_dir_all(victim.join("changes/caches")).unwrap();
    let link = |to: &Path, at: &Path| {
        let _ = fs::rename(at, at.with_extension("moved"));
        std::os::unix::fs::symlink(to, at).unwrap();
    };
    link(&victim, &run.with_file_name("linked"));
    link(&victim.join("changes/views"), &run.join("changes/views"));
    link(&victim.join("changes/caches"), &run.join("changes/caches"));
    let removed = scene.changes.sweep(clock::wall() + 1000 * HOUR).unwrap();
    assert_eq!(removed, 0);
    assert!(victim.join("changes/views/a1-b1/work/work").exists());
    assert!(victim.join("changes/caches").exists());
}

async fn swept(sandbox: &Sandbox) {
    let scene = Scene::with(sandbox, &with_cache());
    stdout_of(&scene, "echo new > ~/.npm/_cacache/new").await;
    let views = caches(&scene).with_file_name("views");
    for (name, file) in [
        ("a1-b1", "work"),
        ("a2-b2", "view.json"),
        ("a3-b3", "work"),
        ("a4-b4", "begun"),
    ] {
        fs::create_dir_all(views.join(name).join("upper/folder")).unwrap();
        fs::write(views.join(name).join(file), "{}").unwrap();
    }
    let used = File::open(views.join("a3-b3")).unwrap();
    flock(&used, FlockOperation::NonBlockingLockExclusive).unwrap();
    let now = clock::wall();
    for (hours, removed, left) in [
        (0, 0, vec!["a1-b1", "a2-b2", "a3-b3", "a4-b4"]),
        (2, 1, vec!["a2-b2", "a3-b3", "a4-b4"]),
        (26, 1, vec!["a2-b2", "a3-b3", "a4-b4"]),
        (7 * 24 + 2, 1, vec!["a3-b3", "a4-b4"]),
    ] {
        let at = now + HOUR * hours;
        assert_eq!(scene.changes.sweep(at).unwrap(), removed, "after {hours} h");
        assert_eq!(names(&views), left, "after {hours} h");
    }
    assert!(!caches(&scene).exists());
    drop(used);
    let day = 24 * HOUR;
    assert_eq!(
        scene.changes.sweep_if_due(now + HOUR * 2, day).unwrap(),
        Some(1)
    );
    assert_eq!(
        scene.changes.sweep_if_due(now + HOUR * 3, day).unwrap(),
        None
    );
    assert_eq!(
        scene.changes.sweep_if_due(now + HOUR * 27, day).unwrap(),
        Some(0)
    );
}

//! Commands that leave unexpected files: every kind of file in the place of every other, odd names, many files, and
//! concurrent changes by others.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use haft::policy::Profile;
use haft::{ErrorKind, Outcome};
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::scene::{Scene, Settings, data};

/// Kinds of files before the command, and after it.
const KINDS: [&str; 6] = ["nothing", "file", "folder", "link", "pipe", "socket"];

/// Signals that the changes before it are made, and waits. A view shows what is written to a file in its place.
const WAITS: &str = "touch out/ready; until read -r said < out/x && [ \"$said\" = go ]; do :; done";

pub(crate) async fn all(sandbox: &Sandbox) {
    kinds(sandbox).await;
    folders_that_are_stood_in(sandbox).await;
    odd_files(sandbox).await;
    at_the_same_time(sandbox).await;
    many_files(sandbox).await;
    too_many_files(sandbox).await;
}

fn trusted(sandbox: &Sandbox) -> Scene {
    let settings = Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    };
    Scene::with(sandbox, &settings)
}

fn describe(line: &str, outcome: &Outcome) -> String {
    format!("{line}: {}", serde_json::to_string(outcome).unwrap())
}

fn kind(outcome: &Outcome) -> Option<ErrorKind> {
    outcome.error.as_ref().map(|error| error.kind)
}

fn not_applied(outcome: &Outcome) -> BTreeMap<String, String> {
    let all = data(outcome)["not_applied"].as_array().cloned();
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap().to_owned();
    let all = all.unwrap_or_default();
    all.iter()
        .map(|one| (text(one, "path"), text(one, "why")))
        .collect()
}

/// Undoes the changes of a call, then undoes the undo, which must restore the applied changes.
async fn undo_and_redo(scene: &Scene, outcome: &Outcome, before: &BTreeMap<PathBuf, String>) {
    let after = scene.tree();
    if after == *before {
        return;
    }
    let mut last = json!({"run": outcome.run.as_str(), "call": outcome.call.as_str()});
    for expected in [before, &after] {
        let undone = scene.call("undo_changes", last).await;
        assert!(undone.is_ok(), "{undone:?}");
        assert!(scene.tree() == *expected, "{undone:?}");
        last = json!({"run": undone.run.as_str(), "call": undone.call.as_str()});
    }
}

/// Returns a command line that makes a kind at `p`.
fn make(kind: &str, text: &str) -> String {
    match kind {
        "nothing" => "true".to_owned(),
        "file" => format!("echo {text} > p"),
        "folder" => format!("mkdir p; echo {text} > p/{text}; mkdir p/sub; echo s > p/sub/s"),
        "link" => format!("ln -s {text} p"),
        "pipe" => "mkfifo p".to_owned(),
        "socket" => {
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"p\")'".to_owned()
        }
        other => panic!("no line makes a {other}"),
    }
}

/// Makes a kind at `p` without a command.
fn put(scene: &Scene, kind: &str) {
    match kind {
        "nothing" => {}
        "file" => scene.put("p", "old\n"),
        "folder" => {
            scene.put("p/old", "old\n");
            scene.put("p/sub/s", "s\n");
        }
        "link" => std::os::unix::fs::symlink("old", scene.at("p")).unwrap(),
        "pipe" => {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
            rustix::fs::mknodat(rustix::fs::CWD, scene.at("p"), kind, mode, 0).unwrap();
        }
        _ => drop(std::os::unix::net::UnixListener::bind(scene.at("p")).unwrap()),
    }
}

async fn kinds(sandbox: &Sandbox) {
    let mut made = BTreeMap::new();
    for is in KINDS {
        let scene = trusted(sandbox);
        let outcome = scene.run(&make(is, "new")).await;
        assert!(outcome.is_ok(), "{}", describe(is, &outcome));
        made.insert(is, scene.tree());
    }
    for was in KINDS {
        for is in KINDS {
            let scene = trusted(sandbox);
            put(&scene, was);
            let before = scene.tree();
            let line = format!("rm -rf p; {}", make(is, "new"));
            let outcome = scene.run(&line).await;
            let told = describe(&format!("{was} {is}"), &outcome);
            assert!(outcome.is_ok(), "{told}");
            let special = ["pipe", "socket"].contains(&is);
            let left = not_applied(&outcome);
            let left: Vec<_> = left.keys().map(String::as_str).collect();
            assert_eq!(left, vec!["p"; usize::from(special)], "{told}");
            if special {
                assert_eq!(scene.tree(), before, "{told}");
            } else {
                assert_eq!(scene.tree(), made[is], "{told}");
            }
            // An undo cannot restore these kinds: they stay deleted.
            if !["pipe", "socket"].contains(&was) {
                undo_and_redo(&scene, &outcome, &before).await;
            }
            assert_eq!(scene.views_left(), 0, "{told}");
        }
    }
    eprintln!(
        "changes: {} kinds in each other's place: ok",
        KINDS.len().pow(2)
    );
}

async fn folders_that_are_stood_in(sandbox: &Sandbox) {
    for (line, left) in [
        ("cd d/e && rm -rf ../../d && true", 1),
        ("cd d && rm -rf \"$PWD\"; true", 1),
        (
            "rm -rf \"$PWD\"; rm -rf \"$PWD\"/..?* \"$PWD\"/.[!.]*; true",
            0,
        ),
        (
            "cd d; rm -r e; mkdir e; cd e; echo new > x; rm -rf ../../d; true",
            1,
        ),
    ] {
        let scene = trusted(sandbox);
        scene.put("d/e/x", "x\n");
        scene.put("other", "o\n");
        let before = scene.tree();
        let outcome = scene.run(line).await;
        let told = describe(line, &outcome);
        assert_eq!(kind(&outcome), None, "{told}");
        assert_eq!(scene.tree().len(), left, "{told}");
        undo_and_redo(&scene, &outcome, &before).await;
        assert_eq!(scene.views_left(), 0, "{told}");
    }
}

async fn odd_files(sandbox: &Sandbox) {
    let scene = trusted(sandbox);
    let line = r#"python3 -c '
import os
for name in (b"new\nline", b" -rf *", b"\xff", "\u202eevil".encode(), b"\x1b[31m", b"a" * 255):
    open(name, "w").write("x")
os.mkdir("farm")
for i in range(500): os.symlink("../farm/%d" % (i + 1), "farm/%d" % i)
os.link("a" * 255, "second"); os.mkfifo("pipe")
os.close(os.open("sparse", os.O_CREAT | os.O_WRONLY)); os.truncate("sparse", 1 << 30)
fd = os.open("sparse", os.O_WRONLY); os.pwrite(fd, b"end", (1 << 30) - 3); os.close(fd)
'"#;
    let outcome = scene.run(line).await;
    let told = describe("odd files", &outcome);
    let left = not_applied(&outcome);
    let paths: Vec<_> = left.keys().map(String::as_str).collect();
    assert_eq!(paths, ["pipe", "\u{fffd}"], "{told}");
    assert!(outcome.is_ok(), "{told}");
    for name in [
        "new\nline",
        " -rf *",
        "\u{202e}evil",
        "\x1b[31m",
        "second",
        "farm/499",
    ] {
        assert!(
            fs::symlink_metadata(scene.at(name)).is_ok(),
            "{name:?} {told}"
        );
    }
    let sparse = fs::metadata(scene.at("sparse")).unwrap();
    assert_eq!(sparse.len(), 1 << 30);
    assert!(sparse.blocks() < 1 << 10, "{} blocks", sparse.blocks());
    assert_eq!(
        fs::metadata(scene.at("second")).unwrap().nlink(),
        1,
        "{told}"
    );
    assert_eq!(scene.views_left(), 0, "{told}");
}

/// Runs `act` in the workspace itself while a command waits for it.
async fn meanwhile(scene: &Scene, line: &str, act: impl FnOnce(&Path) + Send) -> Outcome {
    let waits = format!("{line}; {WAITS}");
    let root = scene.at("");
    let command = scene.run(&waits);
    let other = async {
        let view = || scene.views().into_iter().next();
        while !view().is_some_and(|view| view.join("upper/out/ready").exists()) {
            tokio::task::yield_now().await;
        }
        act(&root);
        fs::write(root.join("out/x"), "go\n").unwrap();
    };
    tokio::join!(command, other).0
}

fn save(root: &Path, name: &str, text: &str) {
    fs::write(root.join(".save"), text).unwrap();
    fs::rename(root.join(".save"), root.join(name)).unwrap();
}

/// The user edits a file before approving its diff: nothing is applied, and nothing is lost.
async fn before_the_answer(sandbox: &Sandbox) {
    let scene = Scene::with(
        sandbox,
        &Settings {
            acts: Some(|root| fs::write(root.join("a"), "mine\n").unwrap()),
            ..Settings::default()
        },
    );
    scene.put("a", "a\n");
    scene.put("b", "b\n");
    let outcome = scene
        .run("echo theirs > a; echo theirs > b; echo said")
        .await;
    let told = describe("before the answer", &outcome);
    assert_eq!(kind(&outcome), Some(ErrorKind::Conflict), "{told}");
    assert_eq!(data(&outcome)["stdout"], "said\n", "{told}");
    assert!(not_applied(&outcome).keys().eq(["a", "b"]), "{told}");
    assert_eq!(outcome.artifacts.len(), 1, "the same text twice: {told}");
    let read = |name| fs::read_to_string(scene.at(name)).unwrap();
    assert_eq!((&*read("a"), &*read("b")), ("mine\n", "b\n"));
}

async fn at_the_same_time(sandbox: &Sandbox) {
    type Act = fn(&Path);
    let rows: [(&str, &str, Act, Option<&str>); 6] = [
        (
            "an edit",
            "echo theirs > a",
            |root| fs::write(root.join("a"), "mine\n").unwrap(),
            Some("mine\n"),
        ),
        (
            "an atomic save",
            "echo theirs > a",
            |root| save(root, "a", "mine\n"),
            Some("mine\n"),
        ),
        (
            "a deletion",
            "echo theirs > a",
            |root| fs::remove_file(root.join("a")).unwrap(),
            None,
        ),
        (
            "a move",
            "echo theirs > a",
            |root| fs::rename(root.join("a"), root.join("z")).unwrap(),
            None,
        ),
        (
            "an edit of what is deleted",
            "rm a",
            |root| fs::write(root.join("a"), "mine\n").unwrap(),
            Some("mine\n"),
        ),
        (
            "a file of the same name",
            "echo theirs > new",
            |root| fs::write(root.join("new"), "mine\n").unwrap(),
            Some("a\n"),
        ),
    ];
    for (name, line, act, expected) in rows {
        let scene = trusted(sandbox);
        scene.put("a", "a\n");
        scene.put("out/x", "x\n");
        let outcome = meanwhile(&scene, line, act).await;
        let told = describe(name, &outcome);
        assert_eq!(kind(&outcome), Some(ErrorKind::Conflict), "{told}");
        let is = fs::read_to_string(scene.at("a")).ok();
        assert_eq!(is.as_deref(), expected, "{told}");
        assert_eq!(not_applied(&outcome).len(), 1, "{told}");
        assert_eq!(scene.views_left(), 0, "{told}");
        // Neither version is lost.
        let kept = &data(&outcome)["not_applied"][0]["kept"];
        let artifact = outcome.artifacts.first();
        assert_eq!(kept.as_str(), artifact.map(|one| &*one.reference), "{told}");
        assert_eq!(kept.is_string(), line.contains("theirs"), "{told}");
    }
    two_commands(sandbox).await;
    before_the_answer(sandbox).await;
    eprintln!("changes: {} changes at the same time: ok", rows.len() + 2);
}

/// One of them is applied, and the other is reported.
async fn two_commands(sandbox: &Sandbox) {
    let scene = trusted(sandbox);
    scene.put("a", "a\n");
    scene.put("out/x", "x\n");
    let second = async {
        let view = || scene.views().into_iter().next();
        while !view().is_some_and(|view| view.join("upper/out/ready").exists()) {
            tokio::task::yield_now().await;
        }
        let outcome = scene.run_beside("echo second > a; echo second > b").await;
        fs::write(scene.at("out/x"), "go\n").unwrap();
        outcome
    };
    let line = format!("echo first > a; echo first > c; {WAITS}");
    let (first, second) = tokio::join!(scene.run(&line), second);
    assert!(second.is_ok(), "{}", describe("second", &second));
    let told = describe("first", &first);
    assert_eq!(kind(&first), Some(ErrorKind::Conflict), "{told}");
    assert_eq!(
        not_applied(&first).into_keys().collect::<Vec<_>>(),
        ["a"],
        "{told}"
    );
    let read = |path: &str| fs::read_to_string(scene.at(path)).unwrap();
    assert_eq!(
        [read("a"), read("b"), read("c")],
        ["second\n", "second\n", "first\n"]
    );
    assert_eq!(scene.views_left(), 0, "{told}");
}

/// Returns a command line that makes `count` empty files in folders of 1,000.
fn many(count: usize) -> String {
    format!(
        "python3 -c 'import os\nfor i in range({count}):\n    d = \"n/%d\" % (i // 1000)\n    \
         if i % 1000 == 0: os.makedirs(d)\n    open(\"%s/%d\" % (d, i), \"w\").close()'"
    )
}

async fn many_files(sandbox: &Sandbox) {
    let scene = trusted(sandbox);
    let outcome = run_long(&scene, &many(10_000)).await;
    let told = describe("10,000 files", &outcome);
    assert!(outcome.is_ok(), "{told}");
    let more = data(&outcome)["more_changes"].as_u64();
    assert_eq!(more, Some(10_000 + 11 - 200), "{told}");
    assert_eq!(scene.tree().len(), 10_011);
    // The overlay copies each file of a part; those in the workspace keep their inodes.
    let inode = |scene: &Scene| fs::metadata(scene.at("n/3/3456")).unwrap().ino();
    let before = inode(&scene);
    let outcome = run_long(&scene, "chmod -R u=rwX,go=X n/3; true").await;
    let told = describe("chmod", &outcome);
    assert!(outcome.is_ok(), "{told}");
    let closed = |what: &String| what.starts_with("600 ") || what.starts_with("711/");
    let tree = scene.tree();
    assert_eq!(tree.values().filter(|what| closed(what)).count(), 1_001);
    assert_eq!(inode(&scene), before);
    let outcome = run_long(&scene, "rm -r n").await;
    assert!(outcome.is_ok(), "{}", describe("rm", &outcome));
    assert!(scene.tree().is_empty());
    assert_eq!(scene.views_left(), 0);
    eprintln!("changes: 10,000 files: ok");
}

async fn run_long(scene: &Scene, line: &str) -> Outcome {
    let args = json!({"command": line, "timeout_s": 300});
    scene.call("run_command", args).await
}

/// A result that is rejected as a whole. Runs only with `HAFT_SOAK`: making so many files takes long.
async fn too_many_files(sandbox: &Sandbox) {
    if std::env::var_os("HAFT_SOAK").is_none() {
        return;
    }
    let scene = trusted(sandbox);
    let outcome = run_long(&scene, &many(200_001)).await;
    let told = describe("200,001 files", &outcome);
    assert_eq!(kind(&outcome), Some(ErrorKind::Failed), "{told}");
    let message = &outcome.error.as_ref().unwrap().message;
    assert!(message.contains("more than 200,000"), "{message}");
    assert!(scene.tree().is_empty());
    assert_eq!(scene.views_left(), 0);
    eprintln!("changes: 200,001 files: ok");
}

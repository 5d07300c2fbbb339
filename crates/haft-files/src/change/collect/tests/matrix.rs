//! Every kind of file in place of every other.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, XattrFlags};

use super::*;

/// What was there, and what the command leaves.
const KINDS: [&str; 7] = [
    "nothing", "file", "folder", "link", "fifo", "device", "socket",
];

/// Whether a kind can be created here: devices require root.
fn possible(kind: &str) -> bool {
    kind != "device" || rustix::process::geteuid().is_root()
}

/// Returns the commands that create each kind at `$p`.
fn make(kind: &str, text: &str) -> String {
    match kind {
        "nothing" => ":".to_owned(),
        "file" => format!("echo {text} > $p"),
        "folder" => {
            format!("mkdir $p && echo {text} > $p/{text} && mkdir $p/sub && echo s > $p/sub/s")
        }
        "link" => format!("ln -s {text} $p"),
        "fifo" => "mkfifo $p".to_owned(),
        "device" => "mknod $p c 1 3".to_owned(),
        other => panic!("no line makes a {other}"),
    }
}

/// Returns the actions at `p` and below when `was` is replaced by `is`.
fn expected(was: &str, is: &str) -> Vec<&'static str> {
    let mut all = match (was, is) {
        (_, "fifo" | "device" | "socket") | ("nothing", "nothing") => return Vec::new(),
        ("folder", "folder") => Vec::new(),
        (_, "nothing") => vec!["delete p"],
        ("nothing", _) => vec!["create p"],
        (was, is) if was == is => vec!["modify p"],
        _ => vec!["replace p"],
    };
    match (was, is) {
        ("folder", "folder") => all.extend(["create p/new", "delete p/old"]),
        ("folder", _) => all.extend(["delete p/old", "delete p/sub", "delete p/sub/s"]),
        (_, "folder") => all.extend(["create p/new", "create p/sub", "create p/sub/s"]),
        _ => {}
    }
    all
}

fn check(scene: &Scene, was: &str, is: &str) {
    let before = scene.tree();
    let collected = scene.collect();
    assert_eq!(actions(&collected), expected(was, is), "{was} {is}");
    let special = ["fifo", "device", "socket"].contains(&is);
    assert_eq!(collected.dropped.len(), usize::from(special), "{was} {is}");
    assert_eq!(
        collected.sha256(&|_| true),
        scene.collect().sha256(&|_| true)
    );
    let applied = scene.apply(&collected);
    assert!(applied.is_ok(), "{was} {is}: {applied:?}");
    assert_eq!(
        actions(&scene.collect()),
        Vec::<String>::new(),
        "{was} {is}"
    );
    if special {
        assert_eq!(scene.tree(), before);
    } else if !collected.changes.is_empty() {
        scene.undo_and_redo(&before);
    }
}

#[test]
fn every_kind_may_become_every_other_on_a_view() {
    for was in &KINDS[..4] {
        for is in KINDS[..6].iter().filter(|is| possible(is)) {
            let mut scene = Scene::new();
            scene.prepare(&format!("p=p; {}", make(was, "old")));
            let command = format!("p=p; rm -rf $p; {}", make(is, "new"));
            if !scene.run(&command) {
                return;
            }
            check(&scene, was, is);
            if KINDS[..4].contains(is) {
                assert_eq!(scene.tree(), scene.copy(), "{was} {is}");
            }
        }
    }
}

/// The two forms of a whiteout.
#[derive(Debug, Clone, Copy)]
enum Whiteout {
    Device,
    Attribute,
}

fn whiteout(path: &Path, form: Whiteout) {
    match form {
        Whiteout::Device => {
            let device = FileType::CharacterDevice;
            rustix::fs::mknodat(CWD, path, device, Mode::empty(), 0).unwrap();
        }
        Whiteout::Attribute => {
            fs::write(path, "").unwrap();
            set_mark(path, "user.overlay.whiteout");
        }
    }
}

fn set_mark(path: &Path, name: &str) {
    rustix::fs::setxattr(path, name, b"y", XattrFlags::empty()).unwrap();
}

#[test]
fn upper_folders_made_by_hand_are_read_in_both_forms() {
    for form in [Whiteout::Device, Whiteout::Attribute] {
        for was in &KINDS[..4] {
            for is in KINDS.into_iter().filter(|is| possible(is)) {
                let mut scene = Scene::new();
                scene.prepare(&format!("p=p; {}", make(was, "old")));
                scene.begin();
                let path = scene.upper("p");
                match is {
                    "nothing" => whiteout(&path, form),
                    "socket" => drop(UnixListener::bind(&path).unwrap()),
                    "link" => symlink("new", &path).unwrap(),
                    other => assert!(shell(
                        &scene.upper(""),
                        &format!("p=p; {}", make(other, "new"))
                    )),
                }
                if is == "folder" {
                    set_mark(&path, "user.overlay.opaque");
                }
                check(&scene, was, is);
            }
        }
    }
}

#[test]
fn deletions_in_a_folder_that_is_not_opaque_are_read_in_both_forms() {
    for form in [Whiteout::Device, Whiteout::Attribute] {
        let mut scene = Scene::new();
        scene.prepare("mkdir d; echo 1 > d/a; echo 2 > d/b");
        scene.begin();
        fs::create_dir(scene.upper("d")).unwrap();
        whiteout(&scene.upper("d/a"), form);
        // Below a folder that is now deleted, and for something that never existed.
        whiteout(&scene.upper("d/never"), form);
        fs::create_dir(scene.upper("gone")).unwrap();
        whiteout(&scene.upper("gone/a"), form);
        assert_eq!(
            actions(&scene.collect()),
            ["delete d/a", "create gone"],
            "{form:?}"
        );
    }
}

#[test]
fn a_folder_that_is_redirected_is_not_guessed_at() {
    let mut scene = Scene::new();
    scene.begin();
    fs::create_dir(scene.upper("d")).unwrap();
    set_mark(&scene.upper("d"), "user.overlay.redirect");
    let upper = scene.upper("");
    let error =
        CollectedChanges::collect(&scene.workspace, &upper, scene.since.unwrap()).unwrap_err();
    assert!(matches!(error, CollectError::Incomplete { .. }), "{error}");
}

#[test]
fn modes_and_content_are_compared_and_nothing_else() {
    let mut scene = Scene::new();
    scene.prepare("for f in a b c d; do echo $f > $f; done; mkdir e f; chmod 755 e f; chmod 644 ?");
    scene.prepare("chmod 755 e f");
    let command =
        "touch a; chmod 755 b; echo d >> c; echo d > d; chmod 4644 d; touch e; chmod 700 f";
    if !scene.run(command) {
        return;
    }
    let before = scene.tree();
    let collected = scene.collect();
    assert_eq!(actions(&collected), ["chmod b", "modify c", "chmod f"]);
    scene.apply(&collected).unwrap();
    assert_eq!(scene.tree(), scene.copy());
    scene.undo_and_redo(&before);
}

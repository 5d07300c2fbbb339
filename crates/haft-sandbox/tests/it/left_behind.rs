//! What a command leaves that ends with its jail, and what a folder below its HOME keeps.

use std::fs;
use std::path::PathBuf;

use haft_sandbox::{HomeFolder, LeftBehind, OverlayFolders, Strength};

use crate::levels::at_most;
use crate::runner::Test;
use crate::{jail, line, run};

pub(crate) const TESTS: &[Test] = &[
    ("what_a_command_leaves_is_looked_at_within_bounds", leaves),
    (
        "a_folder_that_the_user_does_not_have_is_kept_for_the_next_command",
        keeps,
    ),
];

fn left(script: &str) -> LeftBehind {
    let folder = tempfile::tempdir().unwrap();
    let (exit, out, err) = run(jail(), line(script, folder.path()));
    assert!(exit.code.is_some(), "{script}: {out}{err}");
    exit.left
}

fn leaves() {
    // script, files and folders of HOME, programs
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("true", &[], &[]),
        (
            "touch ~/plain; mkdir -p ~/.empty/folder; mkfifo ~/.pipe",
            &[],
            &[],
        ),
        ("touch ~/.file; ln -s / ~/.link", &[".file", ".link"], &[]),
        (
            "mkdir -p ~/.a/b/c ~/.local/share/x ~/go/bin; touch ~/.a/b/c/d ~/.local/share/x/y ~/go/bin/z",
            &[".a/b", ".local/share/x", "go/bin"],
            &[],
        ),
        // What cannot be listed, and what is too deep, is passed over.
        (
            "mkdir -p ~/.closed/x; touch ~/.closed/x/y; chmod 0 ~/.closed",
            &[],
            &[],
        ),
        (
            "mkdir -p ~/.d/1/2/3/4/5/6/7; touch ~/.d/1/2/3/4/5/6/7/x",
            &[],
            &[],
        ),
        ("ln -s . ~/.loop; exit 3", &[".loop"], &[]),
        ("sleep 600 >/dev/null 2>&1 & disown", &[], &["sleep"]),
        ("setsid sleep 600 >/dev/null 2>&1 & true", &[], &["sleep"]),
        // What exits by itself is not left.
        ("yes | head -1 >/dev/null", &[], &[]),
    ];
    for (script, home, programs) in rows {
        let found = left(script);
        let home: Vec<PathBuf> = home.iter().map(PathBuf::from).collect();
        assert_eq!(
            (found.home, found.processes),
            (home, programs.iter().map(ToString::to_string).collect()),
            "{script}"
        );
    }
    let many = left("cd ~; for n in $(seq 3000); do : > .file-with-a-long-name-$n; done");
    assert!((1..=24).contains(&many.home.len()), "{many:?}");
    let name = "n".repeat(200);
    let long = left(&format!("cd ~; for n in $(seq 20); do : > .{name}$n; done"));
    assert!((1..=10).contains(&long.home.len()), "{long:?}");
    // Without namespaces HOME is the host's, and nothing is looked at.
    let weak = at_most(Strength::LandlockSeccomp, Strength::LandlockSeccomp);
    let folder = tempfile::tempdir().unwrap();
    let (exit, ..) = run(&weak, line("touch ~/.file", folder.path()));
    assert_eq!(exit.left, LeftBehind::default());
}

fn keeps() {
    let (work, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spec = |script: &str| {
        let mut spec = line(script, work.path());
        for at in [".cache", ".cache/mine"] {
            let folder = own.path().join(at.replace('/', "-"));
            let view = OverlayFolders {
                upper: folder.join("upper"),
                work: folder.join("work"),
            };
            fs::create_dir_all(&view.upper).unwrap();
            fs::create_dir_all(&view.work).unwrap();
            let of_user = own.path().join("user");
            fs::create_dir_all(&of_user).unwrap();
            spec.mounts.home.push(HomeFolder {
                folder: (at != ".cache").then_some(of_user),
                at: at.into(),
                view,
            });
        }
        spec
    };
    let (exit, out, err) = run(
        jail(),
        spec("echo 1 > ~/.cache/x; echo 2 > ~/.cache/mine/y"),
    );
    assert!(exit.success(), "{out}{err}");
    assert_eq!(exit.left, LeftBehind::default());
    let (_, out, err) = run(jail(), spec("cat ~/.cache/x ~/.cache/mine/y"));
    assert_eq!(out, "1\n2\n", "{err}");
    assert_eq!(fs::read_dir(own.path().join("user")).unwrap().count(), 0);
}

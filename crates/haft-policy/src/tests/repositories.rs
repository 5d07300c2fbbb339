//! Repositories that are found by their shape, and settings of git that name files.

use haft_files::workspace::Workspace;

use super::guards::everything;
use super::*;

/// Creates repositories in folders of other names than `.git`, and folders that are not quite one.
fn repositories() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in [
        "bare/HEAD",
        "bare/objects/x",
        "bare/refs/x",
        "bare/tree/.git",
        "n/objects/x",
        "n/refs/x",
        "like/objects/x",
        "sub/.git",
        "real/config",
    ] {
        let at = dir.path().join(file);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        let text = if file.ends_with("config") {
            "[core]\n\thooksPath = ../own"
        } else {
            "gitdir: ../real"
        };
        std::fs::write(at, text).unwrap();
    }
    dir
}

#[test]
fn a_repository_in_a_folder_of_any_name_is_judged_like_git() {
    let dir = repositories();
    let workspace = Workspace::open(dir.path()).unwrap();
    let policy = builder(Profile::Trusted, everything().set()).workspace(&workspace);
    let policy = policy.build().unwrap();
    // The path, its name as git's, the folder that a denial names, and the verdict on another program's tool.
    for (path, name, folder, of_other) in [
        ("bare/config", Some("bare/.git/config"), "bare", ASK),
        ("bare/objects/y", Some("bare/.git/objects/y"), "bare", ALLOW),
        ("bare", Some("bare/.git"), "bare", ASK),
        ("n/HEAD", Some("n/.git"), "n", ASK),
        ("real/hooks/x", Some("real/.git/hooks/x"), "real", ASK),
        ("n/x", None, "", ALLOW),
        ("bare/tree/src/a", None, "", ALLOW),
        ("like/config", None, "", ALLOW),
        ("own", Some("real/.git/config"), "", ASK),
        ("owner", None, "", ALLOW),
    ] {
        for is_other in [false, true] {
            let mut scene = write(path);
            if is_other {
                scene.spec.source = "hook:agent".into();
            }
            let more = policy.linked_effects(&scene.call(), Some(&workspace));
            scene.permissions.extend(more);
            let ruling = policy.judge(&scene.call());
            let names: Vec<&str> = scene.permissions[1..]
                .iter()
                .map(|one| one.effect.value())
                .collect();
            let expect = match (name, is_other) {
                (None, _) => ALLOW,
                (_, true) => of_other,
                (_, false) => DENY,
            };
            assert_eq!(ruling.verdict, expect, "{path} {is_other} {names:?}");
            if expect != ALLOW {
                assert_eq!(names, [name.unwrap()], "{path}");
                let says = match folder {
                    "" => format!("{path} is protected like .git, for git's settings in "),
                    _ => {
                        format!("{path} is protected like .git, for git takes the folder {folder} ")
                    }
                };
                assert!(ruling.reason.contains(&says), "{ruling:?}");
            }
        }
    }
}

#[test]
fn settings_of_git_that_cannot_be_read_make_every_change_ask() {
    for (text, reads) in [
        ("[core]\n\thooksPath = h\n", true),
        ("[core]\n\thooksPath = \"h\n", false),
        (&*"#".repeat(300 << 10), false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for folder in [".git/objects", ".git/refs"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join(".git/HEAD"), "").unwrap();
        std::fs::write(dir.path().join(".git/config"), text).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let policy = builder(Profile::Trusted, everything().set()).workspace(&workspace);
        let policy = policy.build().unwrap();
        let mut scene = write("a.txt");
        let more = policy.linked_effects(&scene.call(), Some(&workspace));
        scene.permissions.extend(more);
        let ruling = policy.judge(&scene.call());
        let expect = if reads { ALLOW } else { ASK };
        assert_eq!(ruling.verdict, expect, "{ruling:?}");
        // By its whole path: the settings of the user and the machine are named alike.
        let file = dir.path().canonicalize().unwrap().join(".git/config");
        let says = format!("git's settings in {} cannot be read", file.display());
        assert_eq!(ruling.reason.contains(&says), !reads, "{ruling:?}");
    }
}

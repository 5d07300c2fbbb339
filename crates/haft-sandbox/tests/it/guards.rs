//! Guards of the workspace: protected and hidden paths, absent ones, links, exceptions; nothing left behind.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_sandbox::{PathGuard, StartError, Strength};

use crate::levels::at_most;
use crate::runner::Test;
use crate::{jail, line, run, soon, wait, wait_for_output};

pub(crate) const TESTS: &[Test] = &[
    ("protected_paths_are_read_and_not_changed", protected),
    ("absent_protected_paths_are_not_made", absent),
    ("protection_follows_links", links),
    (
        "j4_no_folder_above_a_protected_path_is_renamed",
        renamed_parent,
    ),
    (
        "j4_a_folder_that_cannot_be_listed_is_not_opened_up",
        unlisted,
    ),
    ("j4_a_path_too_long_to_cover_is_not_changed", too_long),
    (
        "j10_the_end_of_a_dangling_protected_link_is_not_made",
        dangling,
    ),
    ("the_parents_of_a_protected_path_stay", pinned_parents),
    (
        "an_approved_path_is_changed_and_nothing_beside_it",
        approved,
    ),
    ("hidden_paths_are_not_read", hidden),
    ("placeholders_go_also_when_the_command_is_killed", killed),
    ("placeholders_are_shared_and_go_with_the_last", shared),
    ("j20_a_placeholder_left_by_a_crash_is_taken_over", left_over),
    ("a_guard_outside_the_workspace_is_refused", outside),
    ("folders_that_are_no_workspace_are_refused", no_workspace),
    ("further_folders_are_read_only", read_only),
    (
        "a_workspace_that_is_only_read_is_neither_changed_nor_executed",
        only_reads,
    ),
];

/// Returns all paths below a folder with the content of files and the targets of links.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            let held = if kind.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if kind.is_dir() {
                folders.push(path.clone());
                "/".into()
            } else {
                fs::read_to_string(&path).unwrap()
            };
            all.insert(path.strip_prefix(folder).unwrap().to_owned(), held);
        }
    }
    all
}

/// Creates files (`path` or `path/`), runs a script under guards, and compares the whole tree with its
/// previous state plus the changes in `expect` (path, content).
fn check(
    made: &[&str],
    guards: &[PathGuard],
    writable: &[&str],
    script: &str,
    expect: &[(&str, &str)],
) {
    let folder = tempfile::tempdir().unwrap();
    for path in made {
        let full = folder.path().join(path);
        fs::create_dir_all(if path.ends_with('/') {
            &full
        } else {
            full.parent().unwrap()
        })
        .unwrap();
        if !path.ends_with('/') {
            fs::write(full, "before").unwrap();
        }
    }
    let mut after = tree(folder.path());
    after.extend(
        expect
            .iter()
            .map(|(path, held)| (PathBuf::from(path), (*held).to_owned())),
    );
    let mut spec = line(script, folder.path());
    spec.mounts.guards = guards.to_vec();
    spec.mounts.writable = writable.iter().map(PathBuf::from).collect();
    let (exit, out, err) = run(jail(), spec);
    assert!(exit.success(), "{script}: {out}{err}");
    assert_eq!(tree(folder.path()), after, "{script}: {out}{err}");
}

pub(crate) fn usual() -> Vec<PathGuard> {
    vec![
        PathGuard::protect_dir(".git").at_any_depth(),
        PathGuard::protect_dir(".vscode"),
        PathGuard::protect_file(".envrc"),
        PathGuard::protect_file("haft.toml"),
        PathGuard::protect_dir(".agents/skills"),
    ]
}

fn protected() {
    let made = [
        ".git/config",
        ".git/hooks/",
        ".envrc",
        "sub/.git/config",
        "src/main",
    ];
    for script in [
        "echo x > .git/config",
        "echo x > .git/hooks/pre-commit",
        "echo x >> .envrc",
        "rm .envrc",
        "mv .envrc moved",
        "rm -rf .git",
        "mv .git moved",
        "chmod 777 .git/config",
        "touch .git",
        "ln .git/config linked",
        "ln -sf /dev/null .envrc",
        "mv src .git",
        "echo new > new && mv -f new .envrc",
        "cp src/main sub/.git/config",
        "sed -i s/before/after/ .git/config",
        "truncate -s 0 .envrc",
        "rmdir .git/hooks",
        "python3 -c 'import os; os.rename(\".git\", \"x\")'",
    ] {
        let refused = format!(
            "! {{ {script}; }} && [ \"$(cat .git/config .envrc)\" = beforebefore ]; \
                               ok=$?; rm -f new; exit $ok"
        );
        check(&made, &usual(), &[], &refused, &[]);
    }
    check(
        &made,
        &usual(),
        &[],
        "echo x > src/main; echo y > new",
        &[("src/main", "x\n"), ("new", "y\n")],
    );
}

fn absent() {
    for script in [
        "mkdir .git",
        "echo x > .git",
        "mkdir -p .git/hooks",
        "mkdir .agents/skills",
        "ln -s /tmp .vscode",
        "echo x > haft.toml",
        "echo x > .envrc",
        "mkdir .envrc",
        "rmdir .git",
        "mv .git other",
        "mkdir d && mv -T d .git",
        "echo n > n && mv -f n haft.toml",
    ] {
        let refused = format!("! {{ {script}; }}; ok=$?; rm -rf d n; exit $ok");
        check(&["src/main"], &usual(), &[], &refused, &[]);
    }
}

fn links() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("real/git")).unwrap();
    fs::write(root.join("real/git/config"), "before").unwrap();
    fs::write(root.join("real/envrc"), "before").unwrap();
    symlink("real/git", root.join(".git")).unwrap();
    symlink("real/envrc", root.join(".envrc")).unwrap();
    symlink("nowhere", root.join("haft.toml")).unwrap();
    symlink(root.join("real"), root.join("alias")).unwrap();
    let before = tree(root);
    for script in [
        "echo x > .git/config",
        "echo x > real/git/config",
        "echo x > alias/git/config",
        "echo x > .envrc",
        "echo x > real/envrc",
        "rm .git && mkdir .git",
        "ln -sfn /tmp .git",
        "mv .envrc moved",
        "rm .envrc",
        "echo x > haft.toml",
        "rm haft.toml",
        "mv real/git real/x",
        "! echo x > nowhere",
    ] {
        let mut spec = line(
            &format!("{script}; rm -f nowhere; cat .git/config .envrc"),
            root,
        );
        spec.mounts.guards = usual();
        let (exit, out, err) = run(jail(), spec);
        assert!(exit.success(), "{script}: {out}{err}");
        assert_eq!(out, "beforebefore", "{script}: {err}");
        assert_eq!(tree(root), before, "{script}: {err}");
    }
}

fn renamed_parent() {
    let made = ["a/b/.git/config", "a/file"];
    for script in [
        "mv a c",
        "mv a/b a/c",
        "mv a/b c",
        "rm -rf a/b",
        "mkdir c; mv -T c a/b",
        "python3 -c 'import os; os.mkdir(\"c\"); os.rename(\"c\", \"a/b\")'",
        "echo x > a/b/.git/config",
    ] {
        let refused = format!("! {{ {script}; }}; ok=$?; rm -rf c; exit $ok");
        check(&made, &usual(), &[], &refused, &[]);
    }
    let free = "echo x > a/file; mv a/file a/b/f; mv a/b/f a/file";
    check(&made, &usual(), &[], free, &[("a/file", "x\n")]);
}

fn unlisted() {
    let folder = tempfile::tempdir().unwrap();
    let (sub, config) = (
        folder.path().join("sub"),
        folder.path().join("sub/.git/config"),
    );
    fs::create_dir_all(sub.join(".git")).unwrap();
    fs::write(&config, "before").unwrap();
    let allow = |mode| fs::set_permissions(&sub, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o300);
    let script = "chmod 755 sub; echo x > sub/.git/config; mv sub other; cp -r other sub; true";
    let mut spec = line(script, folder.path());
    spec.mounts.guards = usual();
    let (exit, out, err) = run(jail(), spec);
    allow(0o755);
    assert!(exit.success(), "{out}{err}");
    assert_eq!(fs::read_to_string(config).unwrap(), "before", "{out}{err}");
}

fn too_long() {
    use std::os::unix::fs::OpenOptionsExt;

    const DEPTH: usize = 25;
    let folder = tempfile::tempdir().unwrap();
    let part = "d".repeat(200);
    let mut at: std::os::fd::OwnedFd = fs::File::open(folder.path()).unwrap().into();
    let enter = |at: &std::os::fd::OwnedFd, name: &str| {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        mkdirat(at, name, Mode::RWXU).unwrap();
        openat(at, name, OFlags::DIRECTORY, Mode::empty()).unwrap()
    };
    for _ in 0..DEPTH {
        at = enter(&at, &part);
    }
    let git = enter(&at, ".git");
    let config = PathBuf::from(format!(
        "/proc/self/fd/{}/config",
        std::os::fd::AsRawFd::as_raw_fd(&git)
    ));
    let mut options = fs::File::options();
    options.write(true).create_new(true).mode(0o644);
    drop(options.open(&config).unwrap());
    let script = format!(
        "for _ in $(seq {DEPTH}); do cd {part} || exit 9; done; ! echo x > .git/config && ! mv .git x && ! mkdir y"
    );
    let mut spec = line(&script, folder.path());
    spec.mounts.guards = usual();
    let (exit, out, err) = run(jail(), spec);
    assert!(exit.success(), "{out}{err}");
    assert_eq!(fs::read_to_string(config).unwrap(), "", "{out}{err}");
}

fn dangling() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("real")).unwrap();
    symlink("build/deep/vscode", root.join(".vscode")).unwrap();
    symlink("real/envrc", root.join(".envrc")).unwrap();
    symlink("alias", root.join("haft.toml")).unwrap();
    symlink(root.join("real/./toml"), root.join("alias")).unwrap();
    let before = tree(root);
    for script in [
        "mkdir -p build/deep/vscode/x",
        "mkdir .vscode/x",
        "echo x > build/deep/vscode/settings.json",
        "mv build b",
        "mv build/deep b",
        "rm -r build",
        "rm .vscode",
        "echo x > .envrc",
        "echo x > real/envrc",
        "echo x > new && mv -f new real/envrc",
        "mv real b",
        "echo x > haft.toml",
        "echo x > real/toml",
        "rm alias",
    ] {
        let mut spec = line(
            &format!("! {{ {script}; }}; ok=$?; rm -rf new b; exit $ok"),
            root,
        );
        spec.mounts.guards = usual();
        let (exit, out, err) = run(jail(), spec);
        assert!(exit.success(), "{script}: {out}{err}");
        assert_eq!(tree(root), before, "{script}: {err}");
    }
    // Next to it, a build may create anything.
    let mut spec = line(
        "echo x > build/made && echo y > build/deep/made && echo z > real/made",
        root,
    );
    spec.mounts.guards = usual();
    let (exit, out, err) = run(jail(), spec);
    assert!(exit.success(), "{out}{err}");
    let made = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert_eq!(
        (&*made("build/made"), &*made("build/deep/made")),
        ("x\n", "y\n")
    );
    assert!(!root.join("build/deep/vscode").exists());
}

fn pinned_parents() {
    let script =
        "! mv .agents x && ! rm -r .agents && ! mkdir .agents/skills && touch .agents/other";
    check(
        &[".agents/skills/one"],
        &usual(),
        &[],
        script,
        &[(".agents/other", "")],
    );
    check(
        &[".agents/"],
        &usual(),
        &[],
        script,
        &[(".agents/other", "")],
    );
}

fn approved() {
    let made = [".git/config", ".git/hooks/old", ".envrc"];
    let guards = usual();
    let script = "echo x > .git/config; echo x > .envrc; echo x > .git/hooks/old; true";
    check(&made, &guards, &[], script, &[]);
    check(&made, &guards, &[".envrc"], script, &[(".envrc", "x\n")]);
    check(
        &made,
        &guards,
        &[".git/config"],
        script,
        &[(".git/config", "x\n")],
    );
    check(
        &made,
        &guards,
        &[".git"],
        script,
        &[(".git/config", "x\n"), (".git/hooks/old", "x\n")],
    );
    check(
        &made,
        &guards,
        &["haft.toml"],
        "echo x > haft.toml",
        &[("haft.toml", "x\n")],
    );
    // One that is absent below a protected folder: only it is created; nothing is left if it is not.
    let new = [".git/hooks/new"];
    let script = "echo x > .git/hooks/new; ! echo x > .git/hooks/other";
    check(&made, &guards, &new, script, &[(".git/hooks/new", "x\n")]);
    check(&made, &guards, &new, "true", &[]);
    let hide = [PathGuard::hide_dir("state")];
    check(
        &["state/a"],
        &hide,
        &["state", "state/a"],
        "echo x > state/a; true",
        &[],
    );
}

fn hidden() {
    let guards = [
        PathGuard::hide_dir(".haft"),
        PathGuard::hide_file(".env"),
        PathGuard::hide_dir("later"),
    ];
    for script in [
        "! cat .haft/secret",
        "! grep -r before .",
        "[ -z \"$(ls .haft)\" ]",
        "! echo x > .env",
        "! mv .haft x",
        "! rm .env",
        "! mkdir .haft/new",
        "! mkdir later/x",
        "! ln .env y",
        "! find . -newer /etc/passwd -name secret | grep .",
    ] {
        check(
            &[".haft/secret", ".env", ".haft/deep/.git/x"],
            &guards,
            &[],
            script,
            &[],
        );
    }
}

/// Waits until no placeholder is left: the task drops the guards after it has published the exit.
async fn cleared(folder: &Path) {
    let late = soon();
    while !tree(folder).is_empty() {
        assert!(Instant::now() < late, "{:?}", tree(folder));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn killed() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        let mut spec = line("echo ready; sleep 60", folder.path());
        spec.mounts.guards = usual();
        let running = jail().start(spec).await.unwrap();
        wait_for_output(&running, "ready").await;
        assert!(folder.path().join(".git").is_dir());
        running.kill();
        running.wait().await;
        cleared(folder.path()).await;
    });
}

fn shared() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        let spec = |script: &str| {
            let mut spec = line(script, folder.path());
            spec.mounts.guards = usual();
            spec
        };
        let first = jail().start(spec("echo ready; sleep 60")).await.unwrap();
        wait_for_output(&first, "ready").await;
        let script = "echo ready; sleep 0.5; ! mkdir -p .git/hooks && ! echo x > .envrc";
        let second = jail().start(spec(script)).await.unwrap();
        wait_for_output(&second, "ready").await;
        first.kill();
        first.wait().await;
        let exit = second.wait().await;
        assert!(exit.success(), "{}", crate::text(second.stderr()));
        cleared(folder.path()).await;
    });
}

/// Leaves in `folder` what a killed host leaves: placeholders with their mark, and no holder.
fn leave_placeholders(folder: &Path) {
    let other = tempfile::tempdir().unwrap();
    wait(async {
        let mut spec = line("echo ready; sleep 60", other.path());
        spec.mounts.guards = usual();
        let running = jail().start(spec).await.unwrap();
        wait_for_output(&running, "ready").await;
        for name in [".git", ".envrc"] {
            let (from, to) = (other.path().join(name), folder.join(name));
            let date = fs::metadata(&from).unwrap().modified().unwrap();
            if from.is_dir() {
                fs::create_dir(&to)
            } else {
                fs::write(&to, "")
            }
            .unwrap();
            let times = fs::FileTimes::new().set_modified(date);
            fs::File::open(&to).unwrap().set_times(times).unwrap();
        }
    });
}

fn left_over() {
    let folder = tempfile::tempdir().unwrap();
    leave_placeholders(folder.path());
    // An empty folder of the user's own is not ours to remove.
    fs::create_dir(folder.path().join(".vscode")).unwrap();
    let names = || tree(folder.path()).into_keys().collect::<Vec<_>>();
    let spec = |script: &str| {
        let mut spec = line(script, folder.path());
        spec.mounts.guards = usual();
        spec
    };
    let (exit, out, err) = run(jail(), spec("! echo x > .envrc && ! mkdir .git/x"));
    assert!(exit.success(), "{out}{err}");
    assert_eq!(names(), [PathBuf::from(".vscode")]);
    // Also by a command that needs none itself.
    leave_placeholders(folder.path());
    let mut reads = spec("true");
    reads.mounts.only_reads = true;
    assert!(run(jail(), reads).0.success());
    leave_placeholders(folder.path());
    let changes = tempfile::tempdir().unwrap();
    let [upper, work] = ["upper", "work"].map(|name| changes.path().join(name));
    for made in [&upper, &work] {
        fs::create_dir(made).unwrap();
    }
    let mut viewed = spec("true");
    viewed.mounts.view = Some(haft_sandbox::OverlayFolders { upper, work });
    assert!(run(jail(), viewed).0.success());
    assert_eq!(names(), [PathBuf::from(".vscode")]);
}

fn outside() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["../x", "/etc", "", ".", "a/../../b"] {
        let mut spec = line("true", folder.path());
        spec.mounts.guards = vec![PathGuard::protect_dir(path)];
        let error = wait(jail().start(spec)).unwrap_err();
        assert!(matches!(error, StartError::Spec(_)), "{path}: {error:?}");
    }
}

fn only_reads() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data"), "before").unwrap();
    fs::write(folder.path().join("run"), "#!/bin/sh\necho ran\n").unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path().join("run"), executable).unwrap();
    let before = tree(folder.path());
    let script =
        "cat data; ./run; echo x > data; touch made; rm data; mkdir -p .git/hooks; ls -a; true";
    for strength in [Strength::Full, Strength::NoProc, Strength::LandlockSeccomp] {
        let mut spec = line(script, folder.path());
        spec.mounts.guards = usual();
        spec.mounts.only_reads = true;
        let (exit, out, err) = run(&at_most(strength, strength), spec);
        assert!(exit.success(), "{out}{err}");
        assert!(out.contains("before"), "{out}{err}");
        assert!(!out.contains("ran") && !out.contains(".git"), "{out}{err}");
        assert_eq!(tree(folder.path()), before, "{out}{err}");
    }
}

fn no_workspace() {
    for path in [
        "/",
        "/proc",
        "/proc/self",
        "/dev",
        "/sys",
        "/usr",
        "/etc",
        "/root",
        "/home",
        "/tmp",
        "/run",
    ] {
        let mut spec = line("true", Path::new(path));
        spec.cwd = "/tmp".into();
        let error = wait(jail().start(spec)).unwrap_err();
        assert!(matches!(error, StartError::Refused(_)), "{path}: {error:?}");
    }
}

fn read_only() {
    let (folder, tool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(tool.path().join("data"), "before").unwrap();
    let path = tool.path().display().to_string();
    let mut spec = line(
        &format!("cat {path}/data && ! echo x > {path}/data && ! touch {path}/x"),
        folder.path(),
    );
    assert!(!run(jail(), spec.clone()).0.success());
    spec.mounts.read_only.push(tool.path().to_owned());
    let (exit, out, err) = run(jail(), spec);
    assert!(exit.success() && out == "before", "{out}{err}");
    let mut spec = line("true", folder.path());
    spec.mounts.read_only.push(folder.path().to_owned());
    assert!(wait(jail().start(spec)).is_err());
}

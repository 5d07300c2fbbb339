//! git shows no placeholders while a command works in the workspace itself, and its file of excluded names is as before afterwards.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use haft_sandbox::{CommandSpec, PathGuard, RunningCommand};

use crate::runner::Test;
use crate::{jail, line, run, wait, wait_for_output};

pub(crate) const TESTS: &[Test] = &[
    ("git_shows_no_placeholder_while_a_command_runs", hidden),
    ("what_a_killed_host_left_for_git_is_removed", left_over),
    ("a_file_for_git_that_is_none_is_left_alone", other_files),
];

/// Runs git in a folder; `None` where there is no git.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's own git, outside of any jail"
    )]
    let mut git = Command::new("git");
    git.current_dir(folder).args(args);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ] {
        git.env(name, value);
    }
    let Ok(out) = git.output() else {
        println!("SKIPPED: there is no git");
        return None;
    };
    assert!(out.status.success(), "{args:?}: {out:?}");
    Some(String::from_utf8(out.stdout).unwrap())
}

fn guarded(folder: &Path, script: &str) -> CommandSpec {
    let mut spec = line(script, folder);
    for name in [".mcp.json", ".tool/settings.json", "odd name"] {
        spec.mounts.guards.push(PathGuard::protect_file(name));
    }
    spec
}

/// A repository in a folder of its own, with its file of excluded names.
fn repository() -> Option<(tempfile::TempDir, std::path::PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q"])?;
    let info = folder.path().join(".git/info");
    fs::create_dir_all(&info).unwrap();
    let exclude = info.join("exclude");
    fs::write(&exclude, "*.o\n").unwrap();
    Some((folder, exclude))
}

async fn begin(spec: CommandSpec) -> RunningCommand {
    let running = jail().start(spec).await;
    let running = running.unwrap_or_else(|error| panic!("{error}"));
    wait_for_output(&running, "ready").await;
    running
}

fn hidden() {
    let Some((folder, exclude)) = repository() else {
        return;
    };
    let status = || git(folder.path(), &["status", "--porcelain"]).unwrap();
    wait(async {
        let first = begin(guarded(folder.path(), "echo ready; sleep 600")).await;
        let second = begin(guarded(folder.path(), "echo ready; sleep 600")).await;
        assert!(folder.path().join(".mcp.json").exists());
        // Only a name that git's patterns write otherwise is shown.
        assert_eq!(status(), "?? \"odd name\"\n");
        // What the user writes meanwhile stays.
        let text = fs::read_to_string(&exclude).unwrap();
        fs::write(&exclude, format!("{text}*.a\n")).unwrap();
        first.kill();
        first.wait().await;
        assert_eq!(status(), "?? \"odd name\"\n");
        // A placeholder with content is a file.
        fs::write(folder.path().join(".mcp.json"), "{}").unwrap();
        second.kill();
        second.wait().await;
    });
    assert_eq!(fs::read_to_string(&exclude).unwrap(), "*.o\n*.a\n");
    assert_eq!(status(), "?? .mcp.json\n");
}

fn left_over() {
    let Some((folder, exclude)) = repository() else {
        return;
    };
    wait(async {
        let running = begin(guarded(folder.path(), "echo ready; sleep 600")).await;
        let text = fs::read_to_string(&exclude).unwrap();
        assert!(text.contains("\n/.mcp.json\n"), "{text}");
        running.kill();
        running.wait().await;
        // As a killed host leaves it.
        fs::write(&exclude, &text).unwrap();
    });
    let (exit, ..) = run(jail(), line("true", folder.path()));
    assert!(exit.success());
    assert_eq!(fs::read_to_string(&exclude).unwrap(), "*.o\n");
}

fn other_files() {
    let Some((folder, exclude)) = repository() else {
        return;
    };
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    for make in [
        &(|| symlink(&target, &exclude).unwrap()) as &dyn Fn(),
        &|| fs::hard_link(&target, &exclude).unwrap(),
        &|| fs::create_dir(&exclude).unwrap(),
        &|| {
            let info = exclude.parent().unwrap();
            fs::remove_dir_all(info).unwrap();
            fs::write(outside.path().join("exclude"), "mine\n").unwrap();
            symlink(outside.path(), info).unwrap();
        },
    ] {
        let _ = fs::remove_file(&exclude).or_else(|_| fs::remove_dir(&exclude));
        fs::write(&target, "mine\n").unwrap();
        make();
        let (exit, out, err) = run(jail(), guarded(folder.path(), "true"));
        assert!(exit.success(), "{out}{err}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
    }
    assert_eq!(
        fs::read_to_string(outside.path().join("exclude")).unwrap(),
        "mine\n"
    );
}

//! What the jail covers for commands in the live workspace: settings of repositories, and paths that rules deny.

use std::fs;

use haft_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::{Scene, scene, scene_under};

/// command → whether it succeeds in a workspace with a repository in `repo`
const GIT: &[(&str, bool)] = &[
    (
        "cd repo && echo 1 > f && git add f && git commit -q -m one",
        true,
    ),
    (
        "cd repo && git switch -q -c two && echo 2 > f && git commit -q -a -m two && git gc -q",
        true,
    ),
    (
        "cd repo && echo 3 > f && git stash -q && git stash pop -q && git restore f",
        true,
    ),
    (
        "cd repo && git tag v1 && git log --oneline v1 | grep two",
        true,
    ),
    (
        "cd repo && echo ref: refs/heads/two > .git/HEAD && git rev-parse HEAD",
        true,
    ),
    ("git -C repo config core.fsmonitor ./x", false),
    ("git -C repo remote add origin https://example.com/x", false),
    ("sh -c 'echo x > repo/.git/hooks/pre-commit'", false),
    ("cp a.txt repo/.git/hooks/post-checkout", false),
    ("tee repo/.git/info/attributes < a.txt", false),
    ("tee repo/.git/config.worktree < a.txt", false),
    ("rm repo/.git/config", false),
    ("mv repo/.git/hooks repo/.git/h", false),
    ("mv repo/.git repo/g", false),
    ("mv repo other", false),
    ("mkdir -p repo/.git/modules/evil", false),
    (
        "git -C repo submodule --quiet add --name evil ./. sub",
        false,
    ),
];

/// git works in the live workspace, and the files that hold its settings stay unchanged.
pub(crate) async fn git_works_and_its_settings_stay(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let made =
        "git init -q repo && cd repo && git config user.email a@b.c && git config user.name a";
    let outcome = scene.call("run_command", json!({"command": made})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let settings = || {
        let config = scene.text("ws/repo/.git/config");
        let hooks = fs::read_dir(scene.dir.path().join("ws/repo/.git/hooks")).unwrap();
        let hooks: Vec<_> = hooks.map(|hook| hook.unwrap().file_name()).collect();
        (config, hooks.len())
    };
    let before = settings();
    for (line, succeeds) in GIT {
        let outcome = scene.call("run_command", json!({"command": line})).await;
        assert_eq!(outcome.is_ok(), *succeeds, "{line}: {outcome:?}");
        assert_eq!(settings(), before, "{line}");
    }
    // git sees no placeholder as a change.
    let line = "cd repo && git status --porcelain --ignored";
    let outcome = scene.call("run_command", json!({"command": line})).await;
    assert_eq!(stdout(&outcome), "", "{outcome:?}");
    let outcome = scene
        .call(
            "write_file",
            json!({"path": "repo/.git/HEAD", "content": ""}),
        )
        .await;
    assert_eq!(outcome.status.as_str(), "denied", "{outcome:?}");
}

/// Empty files hold the places of protected names while a command works in the workspace directly; they are not files of the project.
#[expect(
    clippy::disallowed_methods,
    reason = "the host's own git sets the scene"
)]
pub(crate) async fn git_adds_no_placeholder(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let made = "git init -q . && git config user.email a@b.c && git config user.name a";
    let root = scene.dir.path().join("ws");
    let made = std::process::Command::new("sh")
        .args(["-c", made])
        .current_dir(root)
        .status();
    assert!(made.is_ok_and(|made| made.success()));
    let line = "git add -A && git commit -q -m all";
    let outcome = scene.call("run_command", json!({"command": line})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    for (line, expect) in [
        ("echo 1 > a.txt; ls -a | grep -c '^.mcp.json$'", "1\n"),
        ("echo 2 > a.txt; git status --porcelain", " M a.txt\n"),
        ("git ls-files | grep -c '^\\.' || true", "0\n"),
        ("git clean -nd | grep -c ' [.]' || true", "0\n"),
    ] {
        let outcome = scene.call("run_command", json!({"command": line})).await;
        assert_eq!(stdout(&outcome), expect, "{line}: {outcome:?}");
    }
}

fn stdout(outcome: &haft::Outcome) -> String {
    let data: Value = serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap();
    data["stdout"].as_str().unwrap().to_owned()
}

/// Reads all that rules deny reading and changes all that they deny changing, without any of it on the command line.
const SCRIPT: &str = "cat .env sub/.env copy link vault/key; ls vault; \
    echo evil > config/new; echo evil >> config/x; rm -f config/x; mv config c2; mv vault v2; mv sub s2; \
    echo evil >> sub/fixed; rm -f sub/fixed; echo fine > sub/other; echo end";

fn denying(sandbox: &Sandbox) -> Scene {
    let rules = [
        "Read(.env)",
        "Read(/vault/**)",
        "Edit(/config/**)",
        "Edit(fixed)",
    ];
    let scene = scene_under(sandbox, &rules);
    let at = |path: &str| scene.dir.path().join("ws").join(path);
    for folder in ["vault", "config"] {
        fs::create_dir(at(folder)).unwrap();
    }
    for path in [".env", "sub/.env", "vault/key", "config/x", "sub/fixed"] {
        fs::write(at(path), "RULE-SECRET").unwrap();
    }
    fs::hard_link(at(".env"), at("copy")).unwrap();
    std::os::unix::fs::symlink("sub/.env", at("link")).unwrap();
    fs::write(at("s.sh"), SCRIPT).unwrap();
    scene
}

fn unchanged(scene: &Scene, what: &str) {
    for path in [".env", "sub/.env", "vault/key", "config/x", "sub/fixed"] {
        let text = scene.text(format!("ws/{path}"));
        assert_eq!(text, "RULE-SECRET", "{what}: {path}");
    }
    assert!(!scene.dir.path().join("ws/config/new").exists(), "{what}");
}

/// Commands in the foreground and background, read-only ones, and checkers.
pub(crate) async fn what_rules_deny_stays_covered(sandbox: &Sandbox) {
    let scene = denying(sandbox);
    for (line, says) in [
        ("sh s.sh", "end"),
        ("grep -rl RULE-SECRET . ; echo end", "config/x"),
        ("cat copy", ""),
        ("wc -c copy", "0 copy"),
        ("cd sub && sh ../s.sh; true", "end"),
    ] {
        let outcome = scene.call("run_command", json!({"command": line})).await;
        let out = stdout(&outcome);
        assert!(out.contains(says), "{line}: {outcome:?}");
        assert!(
            !out.contains("RULE-SECRET") && !out.contains("key"),
            "{line}: {out}"
        );
        assert!(!out.contains(".env"), "{line}: {out}");
        unchanged(&scene, line);
        assert_eq!(scene.text("ws/sub/other"), "fine\n", "{line}");
    }
    let task = json!({"command": "sh s.sh", "background": true});
    let outcome = scene.call("run_command", task).await;
    let data: Value = serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap();
    let task = json!({"task": data["task"], "timeout_s": 60});
    let outcome = scene.call("await_command", task).await;
    let shown = serde_json::to_string(&outcome).unwrap();
    assert!(shown.contains("end"), "{shown}");
    assert!(!shown.contains("RULE-SECRET"), "{shown}");
    unchanged(&scene, "a task");
    let leak = json!({"path": "x.leak", "content": format!("{SCRIPT}; exit 1")});
    let outcome = scene.call("write_file", leak).await;
    let data: Value = serde_json::from_str(outcome.data.unwrap().get()).unwrap();
    let said = data["check"]["message"].as_str().unwrap();
    assert!(
        said.contains("end") && !said.contains("RULE-SECRET"),
        "{data}"
    );
    unchanged(&scene, "a checker");
}

//! Commands in the jail: a path that a tool must not reach must not be reachable by a program either.
//!
//! Its own `main`, because the jail executes this program again.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test whose scene cannot be set has failed; what was skipped is said aloud"
)]

#[path = "jailed/covers.rs"]
mod covers;
#[path = "jailed/secrets.rs"]
mod secrets;
#[path = "jailed/terminals.rs"]
mod terminals;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::call::ToolCall;
use haft::policy::{Policy, Profile, RuleSet};
use haft::session::Activation;
use haft::testing::ConsentingPerson;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Outcome, Session};
use haft_builtins::Builtins;
use haft_builtins::files::FileOptions;
use haft_sandbox::{Config, Sandbox, Strength};
use serde_json::{Value, json};

/// command → whether it succeeds, and a part of its output
const ROWS: &[(&str, bool, &str)] = &[
    ("echo hello", true, "hello"),
    ("cat a.txt", true, "inside"),
    ("echo new > made.txt && cat made.txt", true, "new"),
    ("cat .git/config", true, "[core]"),
    ("tee .git/config < a.txt", false, ""),
    ("tee sub/.git/config < a.txt", false, ""),
    ("cd . && cd sub && echo x > .git/config", false, ""),
    ("echo x > .git/other && tee .git/config < a.txt", false, ""),
    ("mv .git git", false, ""),
    ("mkdir .claude && cp a.txt .claude/settings.json", false, ""),
    ("tee haft.toml < a.txt", false, ""),
    ("tee .envrc < a.txt", false, ""),
    // The policy denies commands that name them; it cannot see a pattern, but then the jail has no such file.
    ("test -s stat*/token && cat stat*/token", false, ""),
    ("test -s own.se* && cat own.se*", false, ""),
    ("cat ../outside.txt", false, ""),
    // The folder beside the workspace is a private one of the jail.
    ("echo x > ../outside.txt", true, ""),
];

struct Scene {
    dir: tempfile::TempDir,
    executor: Executor,
    session: Session,
}

fn scene(sandbox: &Sandbox) -> Scene {
    scene_under(sandbox, &[])
}

/// Returns a scene with these deny rules.
fn scene_under(sandbox: &Sandbox, deny: &[&str]) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for folder in ["ws/.git", "ws/sub/.git", "ws/state"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::write(at("outside.txt"), "OUTSIDE-SECRET").unwrap();
    fs::write(at("ws/a.txt"), "inside").unwrap();
    for file in ["ws/.git/config", "ws/sub/.git/config"] {
        fs::write(at(file), "[core]").unwrap();
    }
    for file in ["ws/state/token", "ws/own.secret"] {
        fs::write(at(file), "OWN-SECRET").unwrap();
    }
    let workspace = Workspace::open(&at("ws")).unwrap();
    let own = ["state", "own.secret"].map(PathBuf::from);
    let workspace = workspace.with_hidden(own);
    let rules = RuleSet {
        deny: deny.iter().map(|rule| (*rule).into()).collect(),
        ..RuleSet::default()
    };
    let policy = Policy::builder(Profile::Trusted).workspace(&workspace);
    let policy = policy.rules(rules).build();
    let mut builtins = Builtins::new(workspace);
    builtins.sandbox = Some(sandbox.clone());
    builtins.memory_mb = Some(300);
    builtins.files = FileOptions {
        check: vec![
            (
                "*.check".into(),
                ["grep", "-q", "good", "{path}"].map(Into::into).into(),
            ),
            ("*.leak".into(), ["sh", "{path}"].map(Into::into).into()),
        ],
        ..FileOptions::default()
    };
    let registry = ToolRegistry::new();
    let tools = builtins.tools().unwrap();
    registry
        .replace_all("builtin", tools.into_iter().map(|t| t.tool))
        .unwrap();
    Scene {
        executor: Executor::new(policy.unwrap()).with_approver(ConsentingPerson),
        session: Session::builder(Arc::new(registry)).build().unwrap(),
        dir,
    }
}

impl Scene {
    async fn call(&self, tool: &str, args: Value) -> Outcome {
        let call = ToolCall::new(tool, args.to_string());
        self.executor.execute(&self.session, call).await
    }

    /// Asserts that no protected file was made: the jail occupies their names only while a command runs.
    async fn nothing_made(&self, line: &str) {
        let made = |name: &str| self.dir.path().join("ws").join(name).is_file();
        let names = [".claude/settings.json", "haft.toml", ".envrc"];
        for _ in 0..100 {
            if !names.iter().any(|name| made(name)) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("{line} made one of {names:?}");
    }

    fn text(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.dir.path().join(path)).unwrap()
    }
}

async fn commands(sandbox: &Sandbox) {
    for (line, succeeds, holds) in ROWS {
        let scene = scene(sandbox);
        let outcome = scene.call("run_command", json!({"command": line})).await;
        let shown = serde_json::to_string(&outcome).unwrap();
        assert_eq!(outcome.is_ok(), *succeeds, "{line}: {shown}");
        let data = outcome
            .data
            .as_ref()
            .unwrap_or_else(|| panic!("{line}: {shown}"));
        assert!(data.get().contains(holds), "{line}: {shown}");
        assert!(!shown.contains("-SECRET"), "{line}: {shown}");
        assert!(outcome.strength.is_some_and(|s| s != "none"), "{line}");
        assert_eq!(scene.text("ws/.git/config"), "[core]", "{line}");
        assert_eq!(scene.text("ws/sub/.git/config"), "[core]", "{line}");
        assert_eq!(scene.text("ws/state/token"), "OWN-SECRET", "{line}");
        assert_eq!(scene.text("outside.txt"), "OUTSIDE-SECRET", "{line}");
        scene.nothing_made(line).await;
    }
}

/// A redirection to a protected path needs an approval, after which the jail lets this one command write this one path.
async fn approved(sandbox: &Sandbox) {
    for (line, path, denied) in [
        ("echo x > .git/config", ".git/config", "ws/sub/.git/config"),
        (
            "echo x >> sub/.git/config",
            "sub/.git/config",
            "ws/.git/config",
        ),
        ("echo x > .envrc", ".envrc", "ws/.git/config"),
        (
            "echo x > .claude/settings.json",
            ".claude/settings.json",
            "ws/.git/config",
        ),
    ] {
        let scene = scene(sandbox);
        fs::create_dir_all(scene.dir.path().join("ws/.claude")).unwrap();
        let outcome = scene.call("run_command", json!({"command": line})).await;
        assert!(outcome.is_ok(), "{line}: {outcome:?}");
        let text = scene.text(Path::new("ws").join(path));
        assert!(text.ends_with("x\n"), "{line}: {text:?}");
        assert_eq!(scene.text(denied), "[core]", "{line}");
        let again = format!("tee {path} < a.txt");
        let outcome = scene.call("run_command", json!({"command": again})).await;
        assert!(!outcome.is_ok(), "{line}, then {again}");
        assert_eq!(scene.text(Path::new("ws").join(path)), text);
    }
}

/// No approval gives access to haft's own files.
async fn own(sandbox: &Sandbox) {
    for path in ["own.secret", "state/token", "sub/../own.secret"] {
        let scene = scene(sandbox);
        let line = format!("echo x > {path}");
        let outcome = scene.call("run_command", json!({"command": line})).await;
        assert_eq!(outcome.status.as_str(), "denied", "{line}: {outcome:?}");
        assert_eq!(scene.text("ws/own.secret"), "OWN-SECRET", "{line}");
        assert_eq!(scene.text("ws/state/token"), "OWN-SECRET", "{line}");
    }
}

/// Seed fault 18: the network was open, and a memory limit was stored but never applied.
async fn limits(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'");
    let outcome = scene.call("run_command", json!({"command": line})).await;
    assert!(!outcome.is_ok(), "a command reached the host's network");
    let line = "head -c 400000000 /dev/zero | tail -c 400000000 | wc -c";
    let outcome = scene.call("run_command", json!({"command": line})).await;
    let shown = serde_json::to_string(&outcome).unwrap();
    assert!(
        !shown.contains("400000000\\n"),
        "300 MiB were to be the limit: {shown}"
    );
}

async fn checkers(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    for (text, ok) in [("good", true), ("bad", false)] {
        let args = json!({"path": "x.check", "content": text});
        let outcome = scene.call("write_file", args).await;
        let data: Value = serde_json::from_str(outcome.data.unwrap().get()).unwrap();
        assert_eq!(data["check"]["ok"], ok, "{data}");
    }
}

/// Commands can read and execute the folders of active skills, but not change them; those of others are not visible.
async fn skills(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let root = scene.dir.path().canonicalize().unwrap();
    for skill in ["skills/out", "ws/team/in", "skills/other"] {
        let folder = root.join(skill);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("x.sh"), format!("echo from {skill}\n")).unwrap();
    }
    for (name, folder) in [
        ("out", "skills/out"),
        ("in", "ws/team/in"),
        ("gone", "skills/gone"),
    ] {
        let folder = root.join(folder);
        let skill = Activation {
            name,
            folder: Some(&folder),
            ..Activation::default()
        };
        scene.executor.activate(&scene.session, &skill);
    }
    let out = root.join("skills/out").display().to_string();
    for (line, succeeds, holds) in [
        (format!("sh {out}/x.sh"), true, "from skills/out"),
        (format!("echo x > {out}/new"), false, ""),
        (format!("echo x > {out}/x.sh"), false, ""),
        (format!("rm {out}/x.sh"), false, ""),
        (
            format!("cat {}/x.sh", root.join("skills/other").display()),
            false,
            "",
        ),
        (
            "sh \"$HAFT_SKILL_DIR/x.sh\"".to_owned(),
            true,
            "from ws/team/in",
        ),
        ("echo x > team/in/x.sh".to_owned(), false, ""),
        ("echo x > team/in/new".to_owned(), false, ""),
        ("echo x > team/new && cat team/new".to_owned(), true, "x"),
    ] {
        let outcome = scene.call("run_command", json!({"command": line})).await;
        let shown = serde_json::to_string(&outcome).unwrap();
        assert_eq!(outcome.is_ok(), succeeds, "{line}: {shown}");
        assert!(shown.contains(holds), "{line}: {shown}");
    }
    assert_eq!(scene.text("skills/out/x.sh"), "echo from skills/out\n");
    assert!(!root.join("skills/out/new").exists());
}

fn main() {
    haft_sandbox::enter();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let sandbox = Sandbox::new(Config::default());
        let strength = sandbox.probe().await.strength;
        if strength < Strength::NoProc {
            eprintln!("SKIPPED: the jail's strength here is {strength}");
            return;
        }
        commands(&sandbox).await;
        approved(&sandbox).await;
        own(&sandbox).await;
        limits(&sandbox).await;
        checkers(&sandbox).await;
        skills(&sandbox).await;
        covers::git_works_and_its_settings_stay(&sandbox).await;
        covers::git_adds_no_placeholder(&sandbox).await;
        covers::what_rules_deny_stays_covered(&sandbox).await;
        terminals::command_when_on_a_terminal_has_one_stream_of_text(&sandbox).await;
        terminals::repl_when_typed_into_answers(&sandbox).await;
        terminals::shell_when_typed_into_is_judged_line_by_line(&sandbox).await;
        terminals::input_when_it_cannot_be_read_is_refused(&sandbox).await;
        secrets::stay_out_of_sight(&sandbox).await;
        secrets::are_seen_once_reading_is_approved(&sandbox).await;
        eprintln!("jailed: {} commands, 2 checkers: ok", ROWS.len());
    });
}

//! Commands on a terminal (`tty`), and what is typed into those in the background (`command_input`).

use std::path::Path;

use haft::Outcome;
use haft_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::{Scene, scene, scene_under};

fn data(outcome: &Outcome) -> Value {
    let data = outcome
        .data
        .as_ref()
        .unwrap_or_else(|| panic!("{outcome:?}"));
    serde_json::from_str(data.get()).unwrap()
}

fn stdout(outcome: &Outcome) -> String {
    data(outcome)["stdout"].as_str().unwrap().to_owned()
}

/// Returns what a call that failed says.
fn failure(outcome: &Outcome) -> String {
    let error = outcome
        .error
        .as_ref()
        .unwrap_or_else(|| panic!("{outcome:?}"));
    format!("{}: {}", outcome.status.as_str(), error.message)
}

/// A task in the background.
struct Task<'a> {
    scene: &'a Scene,
    id: String,
}

impl<'a> Task<'a> {
    async fn start(scene: &'a Scene, args: Value) -> Self {
        let mut args = args;
        args["background"] = json!(true);
        let started = scene.call("run_command", args).await;
        let id = data(&started)["task"].as_str().unwrap().to_owned();
        Self { scene, id }
    }

    async fn call(&self, tool: &str, args: Value) -> Outcome {
        let mut args = args;
        args["task"] = json!(self.id);
        self.scene.call(tool, args).await
    }

    async fn type_in(&self, args: Value) -> Outcome {
        self.call("command_input", args).await
    }
}

pub(crate) async fn command_when_on_a_terminal_has_one_stream_of_text(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let rows = [
        (json!({}), "stty size; echo err >&2", "24 80\nerr\n"),
        (json!({"rows": 3, "cols": 500}), "stty size", "3 500\n"),
        (
            json!({}),
            r"printf '\033[31mred\033[0m\r\n1%%\r2%%\r3%%\n'",
            "red\n3%\n",
        ),
        (json!({}), "test -t 0 && test -t 1 && tty", "/dev/pts/0\n"),
    ];
    for (tty, line, expect) in rows {
        let args = json!({"command": line, "tty": tty});
        let outcome = scene.call("run_command", args).await;
        assert_eq!(stdout(&outcome), expect, "{line}: {outcome:?}");
        assert!(
            outcome
                .notes
                .iter()
                .any(|note| note.contains("stdout has all output")),
            "{line}"
        );
    }
    for tty in [
        json!({"rows": 0}),
        json!({"cols": 100_000}),
        json!({"x": 1}),
        json!(true),
    ] {
        let outcome = scene
            .call("run_command", json!({"command": "true", "tty": tty}))
            .await;
        assert!(failure(&outcome).contains("tty"), "{tty}: {outcome:?}");
    }
}

pub(crate) async fn repl_when_typed_into_answers(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    if !Path::new("/usr/bin/python3").exists() {
        eprintln!("SKIPPED: no python3 here");
        return;
    }
    let repl = Task::start(&scene, json!({"command": "python3 -q", "tty": {}})).await;
    let prompt = json!({"text": "", "pattern": ">>> "});
    let outcome = repl.type_in(prompt).await;
    assert!(failure(&outcome).contains("text"), "{outcome:?}");
    let outcome = repl
        .call("await_command", json!({"pattern": ">>> ", "timeout_s": 60}))
        .await;
    assert_eq!(data(&outcome)["matched_pattern"], true, "{outcome:?}");
    let rows = [
        (json!({"text": "6*7\n", "pattern": "42"}), "42"),
        (
            json!({"text": "def f():\n  return 'fu' + 'n'\n\nf()\n", "pattern": "'fun'"}),
            "'fun'",
        ),
        (
            json!({"text": "import time; time.sleep(600)\n", "timeout_s": 1}),
            "sleep",
        ),
        (
            json!({"keys": ["ctrl-c"], "pattern": "KeyboardInterrupt"}),
            "KeyboardInterrupt",
        ),
        (
            json!({"text": "ni", "keys": ["backspace", "backspace", "enter"]}),
            ">>>",
        ),
    ];
    for (args, expect) in rows {
        let mut args = args;
        args["timeout_s"] = args.get("timeout_s").cloned().unwrap_or(json!(60));
        let outcome = repl.type_in(args.clone()).await;
        assert!(stdout(&outcome).contains(expect), "{args}: {outcome:?}");
        assert!(!stdout(&outcome).contains('\u{1b}'), "{args}: {outcome:?}");
    }
    let outcome = repl.type_in(json!({"close": true})).await;
    let outcome = match data(&outcome).get("exit_code") {
        Some(_) => outcome,
        None => repl.call("await_command", json!({"timeout_s": 60})).await,
    };
    assert_eq!(data(&outcome)["exit_code"], 0, "{outcome:?}");
    let outcome = repl.type_in(json!({"text": "1\n"})).await;
    let said = failure(&outcome);
    assert!(
        said.contains("has ended (exit code 0): nothing was typed"),
        "{said}"
    );
}

pub(crate) async fn shell_when_typed_into_is_judged_line_by_line(sandbox: &Sandbox) {
    let scene = scene_under(sandbox, &["Bash(rm *)"]);
    let shell = Task::start(&scene, json!({"command": "bash --norc", "tty": {}})).await;
    let denied = [
        "rm a.txt\n",
        "echo one; rm a.txt\n",
        "cd sub && rm ../a.txt\n",
        "$(rm a.txt)\n",
    ];
    for text in denied {
        let outcome = shell.type_in(json!({"text": text})).await;
        assert_eq!(outcome.status.as_str(), "denied", "{text}: {outcome:?}");
    }
    for (args, says) in [
        (json!({"text": "rm a.t"}), "does not end with a newline"),
        (json!({"text": "r\u{7f}rm a.txt\n"}), "edits the line"),
        (json!({"text": "rm a\t\n"}), "edits the line"),
        (json!({"keys": ["up", "enter"]}), "\"up\""),
    ] {
        let said = failure(&shell.type_in(args.clone()).await);
        assert!(said.contains(says), "{args}: {said}");
    }
    let outcome = shell
        .type_in(json!({"text": "echo $((6*7))\n", "pattern": "(?m)^42"}))
        .await;
    assert!(stdout(&outcome).contains("42"), "{outcome:?}");
    // What does not complete a command is asked about, and what follows is judged alone and behind it.
    let outcome = shell
        .type_in(json!({"text": "echo 'one\n", "pattern": "> "}))
        .await;
    assert!(outcome.is_ok(), "{outcome:?}");
    for text in ["rm a.txt\n", "'; rm a.txt\n"] {
        let outcome = shell.type_in(json!({"text": text})).await;
        assert_eq!(outcome.status.as_str(), "denied", "{text}: {outcome:?}");
    }
    let outcome = shell.type_in(json!({"keys": ["ctrl-c"]})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(scene.text("ws/a.txt"), "inside");
    let outcome = shell.call("kill_command", json!({})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
}

pub(crate) async fn input_when_it_cannot_be_read_is_refused(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let plain = Task::start(&scene, json!({"command": "sleep 600"})).await;
    let said = failure(&plain.type_in(json!({"text": "x\n"})).await);
    assert!(said.contains("does not run on a terminal"), "{said}");
    let deaf = Task::start(&scene, json!({"command": "sleep 600", "tty": {}})).await;
    let said = failure(&deaf.type_in(json!({"text": "x".repeat(5000)})).await);
    assert!(said.contains("a line of 5000 bytes"), "{said}");
    let said = failure(&deaf.type_in(json!({"keys": ["hyper-x"]})).await);
    assert!(said.contains("unknown key \"hyper-x\""), "{said}");
    let lines = "0123456789\n".repeat(1_400);
    let mut said = String::new();
    for _ in 0..20 {
        let outcome = deaf.type_in(json!({"text": lines, "timeout_s": 0})).await;
        if outcome.error.is_some() {
            said = failure(&outcome);
            break;
        }
    }
    assert!(said.contains("does not read its input"), "{said}");
    let unknown = scene
        .call("command_input", json!({"task": "task-0", "text": "x"}))
        .await;
    assert!(failure(&unknown).contains("no task"), "{unknown:?}");
    for task in [plain, deaf] {
        task.call("kill_command", json!({})).await;
    }
}

//! The agents that work for a day: how to start them, and by which calls of their own tools they do a deed.

use serde_json::{Value, json};

use crate::steps::{Deed, FILES};

/// An agent that works for a day.
pub(crate) struct Worker {
    /// Its name in haft.
    pub(crate) agent: &'static str,
    /// Its name for `haft init --client`.
    pub(crate) client: &'static str,
    /// Its path below `HAFT_NEEDS`.
    pub(crate) program: &'static str,
    pub(crate) args: &'static [&'static str],
    /// The calls by which it does a deed, one after another; `@WORK@` stands for its folder.
    pub(crate) to_calls: fn(Deed) -> Vec<Value>,
}

pub(crate) const CLAUDE: Worker = Worker {
    agent: "claude",
    client: "claude-code",
    program: "agents/node_modules/.bin/claude",
    args: &[
        "-p",
        "add the tax",
        "--allowedTools",
        "Bash,Edit,Read",
        "--model",
        "claude-sonnet-4-5",
    ],
    to_calls: of_claude,
};

pub(crate) const CODEX: Worker = Worker {
    agent: "codex",
    client: "codex",
    program: "agents/node_modules/.bin/codex",
    args: &[
        "exec",
        "--sandbox",
        "danger-full-access",
        "-m",
        "gpt-5.5",
        "add the tax",
    ],
    to_calls: of_codex,
};

pub(crate) const GEMINI: Worker = Worker {
    agent: "gemini",
    client: "gemini",
    program: "agents/node_modules/.bin/gemini",
    args: &[
        "-p",
        "add the tax",
        "--yolo",
        "--skip-trust",
        "-m",
        "gemini-2.5-pro",
    ],
    to_calls: of_gemini,
};

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"call": {"tool": tool, "arguments": arguments}})
}

fn of_claude(deed: Deed) -> Vec<Value> {
    let bash = |line: &str, background: bool| {
        let mut arguments = json!({"command": line, "description": "Work"});
        if background {
            arguments["run_in_background"] = json!(true);
        }
        call("Bash", &arguments)
    };
    match deed {
        Deed::Line(line) => vec![bash(line, false)],
        Deed::Background(line) => vec![bash(line, true)],
        // It edits only what it has read.
        Deed::Edit {
            file,
            find,
            replace,
        } => {
            let path = format!("@WORK@/{file}");
            vec![
                call("Read", &json!({"file_path": path})),
                call(
                    "Edit",
                    &json!({"file_path": path, "old_string": find, "new_string": replace}),
                ),
            ]
        }
    }
}

fn of_codex(deed: Deed) -> Vec<Value> {
    let shell = |line: &str, yield_ms: u32| {
        vec![call(
            "exec_command",
            &json!({"cmd": line, "yield_time_ms": yield_ms}),
        )]
    };
    match deed {
        Deed::Line(line) => shell(line, 30_000),
        // It goes on after this time while the command runs.
        Deed::Background(line) => shell(line, 1_000),
        Deed::Edit {
            file,
            find,
            replace,
        } => {
            let (_, text) = FILES.iter().find(|(name, _)| *name == file).unwrap();
            let old = text.lines().find(|line| line.contains(find)).unwrap();
            let diff = format!("@@\n-{old}\n+{}\n", old.replace(find, replace));
            vec![json!({"patch": {"action": "update", "path": file, "diff": diff}})]
        }
    }
}

fn of_gemini(deed: Deed) -> Vec<Value> {
    match deed {
        Deed::Line(line) => vec![call(
            "run_shell_command",
            &json!({"command": line, "description": "Work"}),
        )],
        Deed::Background(line) => vec![call(
            "run_shell_command",
            &json!({"command": line, "description": "Work", "is_background": true}),
        )],
        Deed::Edit {
            file,
            find,
            replace,
        } => vec![call(
            "replace",
            &json!({"file_path": format!("@WORK@/{file}"), "old_string": find, "new_string": replace, "instruction": "Add"}),
        )],
    }
}

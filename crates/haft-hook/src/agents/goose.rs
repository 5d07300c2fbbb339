//! goose.

use std::time::Duration;

use serde::Serialize;

use crate::action::{Action, Change};
use crate::agent::Agent;
use crate::decision::Decision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{Dialect, Event};
use crate::input::Input;
use crate::limits::Limits;
use crate::mcp;
use crate::setup::{
    Content, OWN_FILE, Place, REPORT_SECONDS, Scope, SettingsFile, Setup, command_line, group,
};
use crate::shape::Shape;
use crate::tools;
use crate::verdict::Reply;
use serde_json::json;

pub(crate) const LIMITS: Limits = Limits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call runs when the hook crashes, is missing or is late, unless the entry says `on_failure: \"block\"`, which goose \
              honours since 1.48; haft's entry says so",
    can_ask: false,
    can_rewrite: false,
    allow_skips_prompt: false,
    has_call_ids: true,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "versions before 1.48 ignore `on_failure`, so the call runs when the hook fails; versions before 1.38 have no hooks",
    "the user's prompt can be seen and not stopped",
];

/// Where haft is registered: a plugin in a folder of its own.
pub(crate) fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Goose);
    let decides = json!({
        "type": "command",
        "command": command,
        "timeout": LIMITS.wait.as_secs(),
        "on_failure": "block",
    });
    let reports = json!({"type": "command", "command": command, "timeout": REPORT_SECONDS});
    let hooks = json!({"hooks": {
        "PreToolUse": [group(&decides)],
        "PostToolUse": [group(&reports)],
        "PostToolUseFailure": [group(&reports)],
        "SessionStart": [group(&reports)],
        "SessionEnd": [group(&reports)],
    }});
    let plugin = json!({"name": "haft", "version": "1.0.0", "description": OWN_FILE});
    let file = |path, text: &serde_json::Value| {
        let content = Content::Own {
            text: format!("{text:#}\n"),
            executable: false,
        };
        SettingsFile::new(path, content)
    };
    let files = vec![
        file(".agents/plugins/haft/plugin.json", &plugin),
        file(".agents/plugins/haft/hooks/hooks.json", &hooks),
    ];
    Setup::new(
        vec![
            Place::new(Scope::User, files.clone()),
            Place::new(Scope::Project, files),
        ],
        &[
            "another agent that reads `.agents/plugins` may run these hooks, too; haft reads its events as goose's then",
        ],
    )
}

/// Reads an event. The events for one kind of tool (`BeforeReadFile`, `BeforeShellExecution`) decide nothing and are not registered.
pub(crate) fn read(event: &Envelope<'_>) -> Result<Event, ReadError> {
    let shape = Shape {
        name: "event",
        id: &["tool_call_id"],
        result: &["tool_response", "tool_output", "tool_result"],
        ..Shape::new(Agent::Goose, Dialect::Block, actions)
    };
    shape.read(event)
}

/// States what a call of a tool would do. Every tool belongs to an extension, which goose treats as a server.
fn actions(tool: &str, input: &Input<'_>, _: &Envelope<'_>) -> Vec<Action> {
    match tool {
        "developer__shell" => tools::command(input, &["command"], &[]),
        "developer__write" | "developer__edit" => tools::edit(input, Change::Write),
        "developer__text_editor" => match input.text("command").as_deref() {
            Some("view") => tools::read(input, &tools::PATHS),
            _ => tools::edit(input, Change::Write),
        },
        "developer__tree" => tools::search(input, &["path"]),
        "developer__read_image" => image(input),
        "todo__todo_write" => tools::note(input, &["content", "todos"]),
        _ if tool.contains("__") => mcp::double_underscore(tool, None),
        _ => tools::unknown(),
    }
}

/// A tool that reads an image from a file or a URL.
fn image(input: &Input<'_>) -> Vec<Action> {
    match input.text("source") {
        Some(url) if url.contains("://") && !url.starts_with("file:") => {
            vec![Action::Fetch { url }]
        }
        _ => tools::read(input, &["source", "path"]),
    }
}

#[derive(Debug, Serialize)]
struct Answer<'d> {
    decision: &'static str,
    reason: &'d str,
}

/// Returns the answer. Empty output allows.
pub(crate) fn answer(decision: &Decision<'_>) -> Reply {
    match decision {
        Decision::Nothing | Decision::Allow(_) => Reply::silent(),
        Decision::Ask(reason) | Decision::Deny(reason) => Reply::json(&Answer {
            decision: "block",
            reason,
        }),
    }
}

/// Returns a denial: exit code 2 with its text, and an object for agents that read the output at any exit code.
pub(crate) fn refusal(reason: String) -> Reply {
    Reply {
        stdout: answer(&Decision::Deny(reason.clone())).stdout,
        stderr: reason,
        exit: 2,
    }
}

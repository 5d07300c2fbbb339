//! The Gemini CLI.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::{Action, Change};
use crate::agent::Agent;
use crate::decision::Decision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{Dialect, Event, Kind, Status};
use crate::input::Input;
use crate::limits::Limits;
use crate::mcp;
use crate::setup::{
    Entry, Format, Place, REPORT_SECONDS, Scope, SettingsFile, Setup, command_line, group,
};
use crate::shape::Shape;
use crate::tools;
use crate::verdict::Reply;
use serde_json::json;

pub(crate) const LIMITS: Limits = Limits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call is denied when the hook is missing and runs when the hook is late or exits with 1, and no setting of Gemini CLI \
              closes that",
    can_ask: true,
    can_rewrite: true,
    allow_skips_prompt: false,
    has_call_ids: false,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "a project's settings can switch haft's hook off by its name (`hooksConfig.disabled`), without a word",
    "an answer of `ask` makes Gemini CLI ask even where its own policy says deny; it is not documented and was read in version 0.61",
    "in a headless run (`gemini -p`) an answer of `ask` waits without an end for a user who is not there; asking in haft's inbox is for \
     such runs",
    "a call has no id, so the same call made twice at once cannot be told apart",
    "a call that haft denies has no event afterwards",
    "Antigravity CLI, its successor, has other hooks; haft does not read them",
];

/// Where haft is registered. Gemini's timeouts are in milliseconds.
pub(crate) fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Gemini);
    let handler = |seconds: u64| {
        group(
            &json!({"name": "haft", "type": "command", "command": command, "timeout": seconds * 1000}),
        )
    };
    let mut entries = vec![Entry::new("BeforeTool", handler(LIMITS.wait.as_secs()))];
    for event in ["AfterTool", "SessionStart", "SessionEnd"] {
        entries.push(Entry::new(event, handler(REPORT_SECONDS)));
    }
    let file = SettingsFile::shared(".gemini/settings.json", Format::Jsonc, entries);
    Setup::new(
        vec![
            Place::new(
                Scope::User,
                vec![file.clone().moved_by("GEMINI_CLI_HOME", "")],
            ),
            Place::new(Scope::Project, vec![file]),
        ],
        &["hooks of a project run only in a trusted folder"],
    )
}

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<Event, ReadError> {
    let mut read = Shape::new(Agent::Gemini, Dialect::Gemini, actions).read(event)?;
    if let Kind::After(report) = &mut read.kind
        && let Some(response) = event.object("tool_response").ok().flatten()
        && let Some(error) = response.raw("error")
    {
        let message = Envelope::read(Agent::Gemini, error.get())
            .ok()
            .and_then(|error| error.text("message"));
        report.status = Status::Failed;
        report.error = message.or_else(|| response.text("error"));
    }
    Ok(read)
}

/// States what a call of a tool would do. A server's tool is recognized by `mcp_context`, since its name alone is ambiguous.
fn actions(tool: &str, input: &Input<'_>, event: &Envelope<'_>) -> Vec<Action> {
    if event.has("mcp_context") {
        let context = event.object("mcp_context").ok().flatten();
        let name = |name| context.as_ref().and_then(|context| context.text(name));
        return match (name("server_name"), name("tool_name")) {
            (Some(server), Some(own)) => vec![mcp::tool_of(Some(&server), &own)],
            (server, _) => vec![mcp::tool_of(server.as_deref(), tool)],
        };
    }
    match tool {
        "run_shell_command" => tools::command(input, &["command"], &["dir_path", "directory"]),
        "read_file" => tools::read(input, &tools::PATHS),
        "read_many_files" => tools::read_patterns(input, &["include", "paths"]),
        "list_directory" | "grep_search" | "search_file_content" => {
            tools::search(input, &["dir_path"])
        }
        "glob" => tools::glob(input, &["dir_path"]),
        "write_file" | "replace" | "edit" => tools::edit(input, Change::Write),
        "web_fetch" => web_fetch(input),
        "write_todos" => tools::note(input, &["todos"]),
        "ask_user" => tools::note(input, &["questions"]),
        "update_topic" => tools::note(input, &["title", "summary", "strategic_intent"]),
        "exit_plan_mode" => tools::note(input, &["plan_filename", "plan_path"]),
        // A subagent reports its result with it.
        "complete_task" => tools::note(input, &["result", "output", "response"]),
        "google_web_search" | "activate_skill" | "invoke_agent" | "save_memory" => {
            tools::ungoverned()
        }
        _ => tools::unknown(),
    }
}

/// A tool that fetches the URLs in its prompt, which is for the model that reads the pages.
fn web_fetch(input: &Input<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    if let Some(prompt) = input.text("prompt") {
        actions.extend(tools::addresses(&prompt));
    }
    if input.get("url").is_some() {
        actions.extend(tools::fetch(input, &["url"]));
    }
    tools::or_other(actions, "it fetches a page that it does not name")
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'d> {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Changed<'d>>,
}

#[derive(Debug, Serialize)]
struct Changed<'d> {
    #[serde(rename = "hookEventName")]
    hook_event_name: &'static str,
    tool_input: &'d RawValue,
}

impl<'d> Answer<'d> {
    fn deny(reason: &'d str) -> Self {
        Self {
            decision: "deny",
            reason: Some(reason),
            ..Self::default()
        }
    }
}

/// Returns the answer; nothing if haft has no opinion.
pub(crate) fn answer(decision: &Decision<'_>) -> Reply {
    Reply::json(&match decision {
        Decision::Nothing => return Reply::silent(),
        Decision::Allow(input) => Answer {
            decision: "allow",
            hook_specific_output: input.map(|tool_input| Changed {
                hook_event_name: "BeforeTool",
                tool_input,
            }),
            ..Answer::default()
        },
        Decision::Ask(reason) => Answer {
            decision: "ask",
            reason: Some(reason),
            // The dialog shows it.
            system_message: Some(reason),
            ..Answer::default()
        },
        Decision::Deny(reason) => Answer::deny(reason),
    })
}

/// Returns a denial. Gemini reads the JSON at any exit code, and exit code 2 denies by itself.
pub(crate) fn refusal(reason: String) -> Reply {
    Reply {
        stdout: Reply::json(&Answer::deny(&reason)).stdout,
        stderr: reason,
        exit: 2,
    }
}

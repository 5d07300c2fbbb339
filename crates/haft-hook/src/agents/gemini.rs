//! The Gemini CLI.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{CallStatus, HookEvent, HookEventKind, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
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

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    let mut read = EventLayout::new(Agent::Gemini, ReplyDialect::Gemini, actions).read(event)?;
    if let HookEventKind::After(report) = &mut read.kind
        && let Some(response) = event.object("tool_response").ok().flatten()
        && let Some(error) = response.raw("error")
    {
        let message = Envelope::read(Agent::Gemini, error.get())
            .ok()
            .and_then(|error| error.text("message"));
        report.status = CallStatus::Failed;
        report.error = message.or_else(|| response.text("error"));
    }
    Ok(read)
}

/// States what a call of a tool would do. A server's tool is recognized by `mcp_context`, since its name alone is ambiguous.
fn actions(tool: &str, input: &ScannedJson<'_>, event: &Envelope<'_>) -> Vec<CallAction> {
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
        "write_file" | "replace" | "edit" => tools::edit(input, EditKind::Write),
        "web_fetch" => web_fetch(input),
        "write_todos" => tools::note(input, &["todos"]),
        "ask_user" => tools::note(input, &["questions"]),
        "update_topic" => tools::note(input, &["title", "summary", "strategic_intent"]),
        "exit_plan_mode" => tools::note(input, &["plan_filename", "plan_path"]),
        // A subagent reports its result with it.
        "complete_task" => tools::note(input, &["result", "output", "response"]),
        "google_web_search" => tools::web_search(),
        "activate_skill" | "invoke_agent" | "save_memory" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// A tool that fetches the URLs in its prompt, which is for the model that reads the pages.
fn web_fetch(input: &ScannedJson<'_>) -> Vec<CallAction> {
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
struct GeminiOutput<'d> {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<GeminiToolInput<'d>>,
}

#[derive(Debug, Serialize)]
struct GeminiToolInput<'d> {
    #[serde(rename = "hookEventName")]
    hook_event_name: &'static str,
    tool_input: &'d RawValue,
}

impl<'d> GeminiOutput<'d> {
    fn deny(reason: &'d str) -> Self {
        Self {
            decision: "deny",
            reason: Some(reason),
            ..Self::default()
        }
    }
}

/// Returns the answer; nothing if haft has no opinion.
pub(crate) fn answer(decision: &AgentDecision<'_>) -> HookReply {
    HookReply::json(&match decision {
        AgentDecision::Nothing => return HookReply::silent(),
        AgentDecision::Allow(input) => GeminiOutput {
            decision: "allow",
            hook_specific_output: input.map(|tool_input| GeminiToolInput {
                hook_event_name: "BeforeTool",
                tool_input,
            }),
            ..GeminiOutput::default()
        },
        AgentDecision::Ask(reason) => GeminiOutput {
            decision: "ask",
            reason: Some(reason),
            // The dialog shows it.
            system_message: Some(reason),
            ..GeminiOutput::default()
        },
        AgentDecision::Deny(reason) => GeminiOutput::deny(reason),
    })
}

/// Returns a denial. Gemini reads the JSON at any exit code, and exit code 2 denies by itself.
pub(crate) fn refusal(reason: String) -> HookReply {
    HookReply {
        stdout: HookReply::json(&GeminiOutput::deny(&reason)).stdout,
        stderr: reason,
        exit: 2,
    }
}

//! Claude Code.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{HookEvent, HookEventKind, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call runs when the hook crashes, is missing or is late, unless the entry says `onFailure: \"block\"`, which Claude Code \
              honours since 2.1.295; haft's entry says so",
    can_ask: true,
    can_rewrite: true,
    allow_skips_prompt: true,
    has_call_ids: true,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "files that the user names with `@` are read without a hook; a `Read` deny rule of Claude Code's own covers them",
    "versions before 2.1.295 ignore `onFailure`, so the call runs when the hook fails",
    "in a headless run (`claude -p`) an answer of `ask` denies the call",
    "in a folder that is not trusted yet, an interactive session runs no hooks; `claude -p` runs a repository's hooks without asking",
    "some versions were reported not to call hooks for, or not to hold their denial against, the tools of a subagent",
    "`disableAllHooks` or `allowManagedHooksOnly` in other settings switches haft's hook off",
];

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    EventLayout::new(Agent::Claude, ReplyDialect::Nested, actions).read(event)
}

/// States what a call of a tool would do.
pub(crate) fn actions(
    tool: &str,
    input: &ScannedJson<'_>,
    event: &Envelope<'_>,
) -> Vec<CallAction> {
    let server = event.object("mcp_server").ok().flatten();
    let server = server.and_then(|server| server.text("name"));
    if let Some(actions) = mcp::named(tool, server.as_deref()) {
        return actions;
    }
    if let Some(server) = server {
        return vec![mcp::tool_of(Some(&server), tool)];
    }
    own_actions(tool, input)
}

/// States what a call of one of Claude Code's own tools would do.
pub(crate) fn own_actions(tool: &str, input: &ScannedJson<'_>) -> Vec<CallAction> {
    match tool {
        "Bash" => tools::command(input, &["command"], &[]),
        "PowerShell" => tools::foreign_command(input, tools::POWERSHELL),
        "Monitor" => monitor(input),
        "Read" | "NotebookRead" => tools::read(input, &tools::PATHS),
        "Glob" => tools::glob(input, &["path"]),
        "Grep" | "LS" => tools::search(input, &["path"]),
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => tools::edit(input, EditKind::Write),
        "WebFetch" => tools::fetch(input, &["url"]),
        "ListMcpResourcesTool" => resources(input, "resources/list"),
        "ReadMcpResourceTool" => resources(input, "resources/read"),
        "TodoWrite" => tools::note(input, &["todos"]),
        "AskUserQuestion" => tools::note(input, &["questions"]),
        "TaskCreate" => tools::note(input, &["subject"]),
        "ReportFindings" => tools::note(input, &["findings"]),
        "TaskGet" | "TaskUpdate" => tools::note(input, &["taskId", "task_id"]),
        "TaskList" | "EnterPlanMode" => tools::note(input, &[]),
        "ExitPlanMode" => plan(input),
        // These read and stop background commands of the agent.
        "BashOutput" | "TaskOutput" | "KillShell" | "TaskStop" => {
            tools::note(input, &["bash_id", "task_id", "shell_id"])
        }
        "WebSearch" => tools::web_search(),
        "Agent" | "Task" | "Skill" | "SlashCommand" | "Workflow" | "CronCreate"
        | "RemoteTrigger" | "EnterWorktree" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// A tool that follows the output of a command or a socket.
fn monitor(input: &ScannedJson<'_>) -> Vec<CallAction> {
    let mut actions = Vec::new();
    if input.get("command").is_some() {
        actions.extend(tools::command(input, &["command"], &[]));
    }
    if let Some(socket) = input.get("ws") {
        let url = socket.get("url").and_then(|url| url.as_str());
        actions.push(
            url.map_or(CallAction::other("a socket without an address"), |url| {
                CallAction::Fetch {
                    url: url.into_owned(),
                }
            }),
        );
    }
    tools::or_other(actions, "it follows nothing that is named")
}

/// A tool that uses the resources of one server.
fn resources(input: &ScannedJson<'_>, method: &str) -> Vec<CallAction> {
    match input.text("server") {
        Some(server) => vec![mcp::tool_of(Some(&server), method)],
        None => vec![CallAction::other("it names no server")],
    }
}

/// The tool that ends planning. A plan that asks for permissions is more than a note.
fn plan(input: &ScannedJson<'_>) -> Vec<CallAction> {
    let prompts = input.get("allowedPrompts");
    let is_empty =
        prompts.is_none_or(|list| list.text().starts_with('[') && list.items().next().is_none());
    if input.is_object() && is_empty {
        return vec![CallAction::Note];
    }
    vec![CallAction::other("a plan that brings permissions")]
}

/// An answer: an object with the verdict inside.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaudeOutput<T> {
    hook_specific_output: T,
}

impl<T: Serialize> ClaudeOutput<T> {
    pub(crate) fn reply(output: T) -> HookReply {
        HookReply::json(&Self {
            hook_specific_output: output,
        })
    }
}

/// A verdict for `PreToolUse`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaudePreToolUse<'d> {
    hook_event_name: &'static str,
    permission_decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'d RawValue>,
}

impl<'d> ClaudePreToolUse<'d> {
    pub(crate) fn new(
        decision: &'static str,
        reason: Option<&'d str>,
        input: Option<&'d RawValue>,
    ) -> Self {
        Self {
            hook_event_name: "PreToolUse",
            permission_decision: decision,
            permission_decision_reason: reason,
            updated_input: input,
        }
    }
}

/// A verdict for `PermissionRequest`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaudePermissionRequest<'d> {
    hook_event_name: &'static str,
    decision: PermissionDecision<'d>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionDecision<'d> {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'d RawValue>,
}

impl<'d> ClaudePermissionRequest<'d> {
    pub(crate) fn new(
        behavior: &'static str,
        message: Option<&'d str>,
        updated_input: Option<&'d RawValue>,
    ) -> Self {
        Self {
            hook_event_name: "PermissionRequest",
            decision: PermissionDecision {
                behavior,
                message,
                updated_input,
            },
        }
    }
}

/// Returns the answer in Claude Code's form.
pub(crate) fn answer(event: &HookEvent, decision: &AgentDecision<'_>) -> HookReply {
    if matches!(event.kind, HookEventKind::Permission(_)) {
        return match decision {
            AgentDecision::Allow(input) => {
                ClaudeOutput::reply(ClaudePermissionRequest::new("allow", None, *input))
            }
            AgentDecision::Deny(reason) => {
                ClaudeOutput::reply(ClaudePermissionRequest::new("deny", Some(reason), None))
            }
            // It is about to ask anyway.
            AgentDecision::Nothing | AgentDecision::Ask(_) => HookReply::silent(),
        };
    }
    match decision {
        AgentDecision::Nothing => HookReply::silent(),
        AgentDecision::Allow(input) => {
            ClaudeOutput::reply(ClaudePreToolUse::new("allow", None, *input))
        }
        AgentDecision::Ask(reason) => {
            ClaudeOutput::reply(ClaudePreToolUse::new("ask", Some(reason), None))
        }
        AgentDecision::Deny(reason) => {
            ClaudeOutput::reply(ClaudePreToolUse::new("deny", Some(reason), None))
        }
    }
}

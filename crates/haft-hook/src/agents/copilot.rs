//! The GitHub Copilot CLI.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::agents::claude;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{CallStatus, HookEvent, HookEventKind, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::shape::EventLayout;
use crate::stage::EventStage;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call is denied when the hook crashes or is missing and runs when the hook is late, and no setting of Copilot closes that",
    can_ask: true,
    can_rewrite: true,
    allow_skips_prompt: true,
    has_call_ids: false,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "a hook that is late lets the call run, with hooks of an administrator, too",
    "versions before 1.0.49 ran no hooks for the tools of a subagent",
    "a call has no id, so the same call made twice at once cannot be told apart",
    "the name of an MCP tool does not say its server for certain, so such a tool is judged as one that is not known",
    "the cloud agent reads only the `.github/hooks` of the default branch, and denies where a hook asks",
    "a repository's hooks are loaded after its folder is trusted",
];

/// Reads an event in Copilot's own spelling, or in Claude Code's, which Copilot uses for hooks registered that way.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    if event.has("hook_event_name") && !event.has("toolName") {
        let name = event.needs("hook_event_name")?;
        let dialect = match EventStage::of(&name) {
            EventStage::Permission => ReplyDialect::Copilot,
            _ => ReplyDialect::Nested,
        };
        return EventLayout::new(Agent::Copilot, dialect, claude_or_own).read(event);
    }
    let shape = EventLayout {
        tool: "toolName",
        input: "toolArgs",
        id: &["toolCallId", "toolUseId"],
        result: &["toolResult"],
        ..EventLayout::new(Agent::Copilot, ReplyDialect::Copilot, actions)
    };
    let (stage, name) = own_stage(event);
    let mut read = shape.read_as(event, stage, name.to_owned())?;
    if let HookEventKind::After(report) = &mut read.kind
        && let Some(result) = event.object("toolResult").ok().flatten()
    {
        report.status = match result.text("resultType").as_deref() {
            Some("denied" | "rejected") => CallStatus::Refused,
            Some("failure" | "error" | "timeout") => CallStatus::Failed,
            _ => report.status,
        };
    }
    Ok(read)
}

/// Returns the stage of an event in Copilot's own spelling, which has no name, from its members.
fn own_stage(event: &Envelope<'_>) -> (EventStage, &'static str) {
    if event.has("toolName") {
        if event.has("toolResult") {
            return (EventStage::After, "postToolUse");
        }
        if event.has("error") {
            return (EventStage::Failed, "postToolUseFailure");
        }
        if event.has("permissionRequest") || event.has("permissionSuggestions") {
            return (EventStage::Permission, "permissionRequest");
        }
        return (EventStage::Before, "preToolUse");
    }
    if event.has("prompt") {
        return (EventStage::Prompt, "userPromptSubmitted");
    }
    if event.has("source") {
        return (EventStage::SessionStart, "sessionStart");
    }
    if event.has("reason") {
        return (EventStage::SessionEnd, "sessionEnd");
    }
    // An event without a tool decides nothing. But it may be about a tool in a new spelling, which must not go unjudged.
    (EventStage::Before, "unknown")
}

fn claude_or_own(tool: &str, input: &ScannedJson<'_>, event: &Envelope<'_>) -> Vec<CallAction> {
    let is_lower = tool.starts_with(|c: char| c.is_ascii_lowercase()) && !tool.starts_with("mcp__");
    if is_lower {
        return actions(tool, input, event);
    }
    claude::actions(tool, input, event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    match tool {
        "bash" => tools::command(input, &["command"], &[]),
        "powershell" => tools::foreign_command(input, tools::POWERSHELL),
        "write_bash" | "write_powershell" => {
            tools::foreign_command(input, "it is input for a command that already runs")
        }
        "read_bash" | "stop_bash" | "read_powershell" | "stop_powershell" => {
            tools::note(input, &["sessionId", "shellId"])
        }
        "view" => tools::read(input, &tools::PATHS),
        "glob" => tools::glob(input, &["path"]),
        "grep" | "rg" => tools::search(input, &["path"]),
        "create" | "edit" => tools::edit(input, EditKind::Write),
        "str_replace_editor" => editor(input),
        "apply_patch" => tools::apply_patch(input),
        "web_fetch" => tools::fetch(input, &["url"]),
        "ask_user" => tools::note(input, &["question", "questions"]),
        "update_todo" => tools::note(input, &["todos"]),
        "report_intent" => tools::note(input, &["intent"]),
        "web_search" => tools::web_search(),
        "task" | "skill" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// A tool that views or edits a file, as its command says.
fn editor(input: &ScannedJson<'_>) -> Vec<CallAction> {
    match input.text("command").as_deref() {
        Some("view") => tools::read(input, &tools::PATHS),
        _ => tools::edit(input, EditKind::Write),
    }
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct CopilotPreToolUse<'d> {
    permission_decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_args: Option<&'d RawValue>,
}

#[derive(Debug, Serialize)]
struct CopilotPermissionRequest<'d> {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'d str>,
}

/// Returns the answer; nothing if haft has no opinion. In a permission event Copilot can be told only to allow or to
/// deny, so there a question becomes a denial.
pub(crate) fn answer(event: &HookEvent, decision: &AgentDecision<'_>) -> HookReply {
    if matches!(event.kind, HookEventKind::Permission(_)) {
        let (behavior, message) = match decision {
            AgentDecision::Nothing => return HookReply::silent(),
            AgentDecision::Allow(_) => ("allow", None),
            AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => {
                ("deny", Some(reason.as_str()))
            }
        };
        return HookReply::json(&CopilotPermissionRequest { behavior, message });
    }
    let (permission_decision, reason, modified_args) = match decision {
        AgentDecision::Nothing => return HookReply::silent(),
        AgentDecision::Allow(input) => ("allow", None, *input),
        AgentDecision::Ask(reason) => ("ask", Some(reason.as_str()), None),
        AgentDecision::Deny(reason) => ("deny", Some(reason.as_str()), None),
    };
    HookReply::json(&CopilotPreToolUse {
        permission_decision,
        permission_decision_reason: reason,
        modified_args,
    })
}

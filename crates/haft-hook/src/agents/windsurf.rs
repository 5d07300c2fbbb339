//! Windsurf, since renamed Devin Desktop (Cascade). The event's name tells the kind of tool, and exit code 2 denies.

use std::path::PathBuf;
use std::time::Duration;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{CallReport, CallStatus, HookCall, HookEvent, HookEventKind, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    // Neither a setting nor the agent's own limit is documented. This is within the limits of similar agents.
    wait: Duration::from_secs(30),
    fails_open: true,
    failure: "the call runs when the hook exits with anything but 2, crashes or is missing, and no setting of Windsurf closes that",
    can_ask: false,
    can_rewrite: false,
    allow_skips_prompt: false,
    has_call_ids: false,
    reports_failures: false,
};

pub(crate) const GAPS: &[&str] = &[
    "there is no event for fetching pages, for searches and for listing folders",
    "how long Windsurf waits for a hook is not documented; haft answers within 30 s",
    "a call has no id (`execution_id` is that of a turn), so the same call made twice at once cannot be told apart",
    "the events were marked as a beta in older versions",
];

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    let name = event.needs("agent_action_name")?;
    let shape = EventLayout::new(Agent::Windsurf, ReplyDialect::ExitCode, |_, _, _| {
        tools::unknown()
    });
    let kind = match name.as_str() {
        "pre_user_prompt" => HookEventKind::Prompt,
        _ => match name.strip_prefix("pre_") {
            Some(tool) => HookEventKind::Before(call(tool, event)?),
            None => match name.strip_prefix("post_") {
                Some(tool) if event.has("tool_info") && is_tool(tool) => {
                    HookEventKind::After(report(tool, event)?)
                }
                _ => HookEventKind::Other(name.clone()),
            },
        },
    };
    let mut read = shape.event(event, name, kind);
    if let Ok(Some(info)) = event.object("tool_info") {
        read.cwd = info.any_text(&["cwd"]).map(PathBuf::from);
    }
    Ok(read)
}

fn is_tool(tool: &str) -> bool {
    matches!(
        tool,
        "read_code" | "write_code" | "run_command" | "mcp_tool_use"
    )
}

/// Reads the call of an event before a tool. A kind of tool of a newer version is unknown.
fn call(tool: &str, event: &Envelope<'_>) -> Result<HookCall, ReadError> {
    let input = event.unpacked_input("tool_info")?;
    Ok(HookCall {
        id: None,
        tool: tool.to_owned(),
        actions: actions(tool, &input),
        input: input.to_raw(),
    })
}

fn report(tool: &str, event: &Envelope<'_>) -> Result<CallReport, ReadError> {
    let info = event.needs_object("tool_info")?;
    Ok(CallReport {
        id: None,
        tool: tool.to_owned(),
        input: event
            .unpacked_input("tool_info")
            .ok()
            .map(|input| input.to_raw()),
        status: CallStatus::Ok,
        duration_ms: None,
        result: info.raw("mcp_result").map(ToOwned::to_owned),
        error: None,
    })
}

fn actions(tool: &str, input: &ScannedJson<'_>) -> Vec<CallAction> {
    match tool {
        "run_command" => tools::command(input, &["command_line"], &["cwd"]),
        "read_code" => tools::read(input, &tools::PATHS),
        "write_code" => tools::edit(input, EditKind::Write),
        "mcp_tool_use" => {
            let Some(name) = input.text("mcp_tool_name") else {
                return vec![CallAction::other("it names no tool")];
            };
            let arguments = input.get("mcp_tool_arguments");
            let arguments = arguments.map_or("{}", |arguments| arguments.text());
            vec![mcp::tool_with(
                input.text("mcp_server_name"),
                name,
                arguments,
            )]
        }
        _ => tools::unknown(),
    }
}

/// Returns the answer, an exit code. Cursor gets it as well when it runs Claude Code's hooks, with an object, since it may take no output
/// for a failure.
pub(crate) fn answer(event: &HookEvent, decision: &AgentDecision<'_>) -> HookReply {
    match decision {
        AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => HookReply::block(reason),
        AgentDecision::Nothing | AgentDecision::Allow(_) if event.agent == Agent::Cursor => {
            HookReply {
                stdout: "{}".to_owned(),
                ..HookReply::silent()
            }
        }
        AgentDecision::Nothing | AgentDecision::Allow(_) => HookReply::silent(),
    }
}

//! goose.

use std::time::Duration;

use serde::Serialize;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{HookEvent, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
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

/// Reads an event. The events for one kind of tool (`BeforeReadFile`, `BeforeShellExecution`) decide nothing and are not registered.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    let shape = EventLayout {
        name: "event",
        id: &["tool_call_id"],
        result: &["tool_response", "tool_output", "tool_result"],
        ..EventLayout::new(Agent::Goose, ReplyDialect::Block, actions)
    };
    shape.read(event)
}

/// States what a call of a tool would do. Every tool belongs to an extension, which goose treats as a server.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    match tool {
        "developer__shell" => tools::command(input, &["command"], &[]),
        "developer__write" | "developer__edit" => tools::edit(input, EditKind::Write),
        "developer__text_editor" => match input.text("command").as_deref() {
            Some("view") => tools::read(input, &tools::PATHS),
            _ => tools::edit(input, EditKind::Write),
        },
        "developer__tree" => tools::search(input, &["path"]),
        "developer__read_image" => image(input),
        "todo__todo_write" => tools::note(input, &["content", "todos"]),
        _ if tool.contains("__") => mcp::double_underscore(tool, None),
        _ => tools::unknown(),
    }
}

/// A tool that reads an image from a file or a URL.
fn image(input: &ScannedJson<'_>) -> Vec<CallAction> {
    match input.text("source") {
        Some(url) if url.contains("://") && !url.starts_with("file:") => {
            vec![CallAction::Fetch { url }]
        }
        _ => tools::read(input, &["source", "path"]),
    }
}

#[derive(Debug, Serialize)]
struct GooseOutput<'d> {
    decision: &'static str,
    reason: &'d str,
}

/// Returns the answer. Empty output allows.
pub(crate) fn answer(decision: &AgentDecision<'_>) -> HookReply {
    match decision {
        AgentDecision::Nothing | AgentDecision::Allow(_) => HookReply::silent(),
        AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => HookReply::json(&GooseOutput {
            decision: "block",
            reason,
        }),
    }
}

/// Returns a denial: exit code 2 with its text, and an object for agents that read the output at any exit code.
pub(crate) fn refusal(reason: String) -> HookReply {
    HookReply {
        stdout: answer(&AgentDecision::Deny(reason.clone())).stdout,
        stderr: reason,
        exit: 2,
    }
}

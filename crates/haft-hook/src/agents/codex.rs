//! The Codex CLI.
//!
//! Its answers have Claude Code's form, but it reads them strictly: an unknown key, an empty reason or a bare allow before a tool fails the
//! hook, and the call runs. So an answer holds nothing that Codex does not know.

use std::time::Duration;

use crate::action::CallAction;
use crate::agent::Agent;
use crate::agents::claude::{ClaudeOutput, ClaudePermissionRequest, ClaudePreToolUse};
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
    failure: "the call runs when the hook crashes, is missing, is late or is not trusted, and no setting of Codex closes that",
    can_ask: false,
    can_rewrite: true,
    allow_skips_prompt: false,
    has_call_ids: true,
    reports_failures: false,
};

pub(crate) const GAPS: &[&str] = &[
    "Codex runs a hook only after it was reviewed in `/hooks`; one that is not trusted, or was changed since, is skipped without a word",
    "input for a command that already runs (`write_stdin`) never reaches a hook before it is sent",
    "tools called from Code Mode's `exec` and hosted tools such as web search reach no hook",
    "the event's folder is the one that a command names for itself (`workdir`), as tried with 0.169; older versions were reported to leave \
     that out",
    "on Windows the denial of `apply_patch` was reported not to be enforced",
    "`codex exec` was reported to skip trusted hooks of a project unless `--dangerously-bypass-hook-trust` is given",
];

/// The beginning of the description in a prompt about a host that a command wants to reach.
const NETWORK: &str = "network-access ";

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    EventLayout::new(Agent::Codex, ReplyDialect::Codex, actions).read(event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    if let Some(actions) = mcp::named(tool, None) {
        return actions;
    }
    match tool {
        "Bash" | "shell" | "exec_command" | "local_shell" => shell(input),
        "apply_patch" | "Edit" | "Write" => tools::apply_patch(input),
        "write_stdin" => vec![CallAction::unknown_command(
            None,
            "it is input for a command that already runs",
        )],
        "view_image" => tools::read(input, &["path"]),
        "update_plan" => tools::note(input, &["plan"]),
        "request_user_input" => tools::note(input, &["questions"]),
        "web_search" => tools::web_search(),
        "request_permissions" | "spawn_agent" | "send_input" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// A tool that runs a command. In a prompt about the network, the host is judged, too. The model may have written the description, so it
/// only adds to what is judged.
fn shell(input: &ScannedJson<'_>) -> Vec<CallAction> {
    let mut actions = tools::command(input, &["command", "cmd"], &["workdir"]);
    let description = input.text("description").unwrap_or_default();
    let Some(host) = description.strip_prefix(NETWORK).map(str::trim) else {
        return actions;
    };
    let host = if host.contains("://") {
        host.to_owned()
    } else {
        format!("https://{host}/")
    };
    actions.push(CallAction::Fetch { url: host });
    actions
}

/// Returns the answer. Codex has no answer that asks its user: before a call a question becomes a denial; at Codex's
/// own prompt haft prints nothing, and Codex asks.
pub(crate) fn answer(event: &HookEvent, decision: &AgentDecision<'_>) -> HookReply {
    if matches!(event.kind, HookEventKind::Permission(_)) {
        return match decision {
            AgentDecision::Allow(_) => {
                ClaudeOutput::reply(ClaudePermissionRequest::new("allow", None, None))
            }
            AgentDecision::Deny(reason) => {
                ClaudeOutput::reply(ClaudePermissionRequest::new("deny", Some(reason), None))
            }
            AgentDecision::Nothing | AgentDecision::Ask(_) => HookReply::silent(),
        };
    }
    match decision {
        // Codex fails a hook that allows without a change. No output is its allow.
        AgentDecision::Nothing | AgentDecision::Allow(None) => HookReply::silent(),
        AgentDecision::Allow(Some(input)) => {
            ClaudeOutput::reply(ClaudePreToolUse::new("allow", None, Some(input)))
        }
        AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => {
            ClaudeOutput::reply(ClaudePreToolUse::new("deny", Some(reason), None))
        }
    }
}

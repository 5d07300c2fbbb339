//! Tells which agent runs a hook: some agents run the hooks of others.

use crate::agent::Agent;
use crate::envelope::Envelope;

/// Names of tools of the Devin CLI that no other agent has which runs Claude Code's hooks.
const DEVIN_TOOLS: [&str; 8] = [
    "exec",
    "read",
    "write",
    "edit",
    "apply_patch",
    "grep",
    "glob",
    "notebook_edit",
];

/// Returns the agent that sent this event. A member that only one agent sends identifies it, whatever the command says. Members that
/// several agents send identify one only if Claude Code's hooks were called, since those are the hooks that other agents run.
pub(crate) fn of(invoked_as: Agent, event: &Envelope<'_>) -> Agent {
    if event.has("cursor_version") {
        return Agent::Cursor;
    }
    if event.has("agent_action_name") {
        return Agent::Windsurf;
    }
    if event.has("clineVersion") {
        return Agent::Cline;
    }
    if invoked_as != Agent::Claude {
        return invoked_as;
    }
    if event.has("sessionId") && (event.has("toolName") || event.has("timestamp")) {
        return Agent::Copilot;
    }
    let is_claude = event.has("permission_mode") || event.has("transcript_path");
    if is_claude {
        return Agent::Claude;
    }
    if event.has("timestamp") {
        return Agent::Copilot;
    }
    let tool = event.text("tool_name").unwrap_or_default();
    if !event.has("cwd") && DEVIN_TOOLS.contains(&tool.as_str()) {
        return Agent::Devin;
    }
    Agent::Claude
}

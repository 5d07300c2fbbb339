//! Which agent runs a hook: some run the hooks of others.

use crate::agent::Agent;
use crate::envelope::Envelope;

/// Tools of the Devin CLI by their names, which no other agent that runs Claude Code's hooks has.
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

/// The agent that sent this event. A member that only one agent sends tells it, whatever the command says; what several agents send tells
/// it only where Claude Code's hooks were called, since those are the ones that others run.
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

//! Facts about agents: the switch that denies a call when a hook fails, and the versions that have an event.

use haft_hook::Agent;
use serde::Serialize;

/// An agent's switch, which `haft hook install` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// The switch as an entry has it.
    pub text: &'static str,
    /// The first version that knows it, if older ones have hooks, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<&'static str>,
}

/// Returns the switch of an agent, if it has one.
pub fn switch(agent: Agent) -> Option<Switch> {
    let (text, since) = match agent {
        Agent::Claude => ("onFailure: \"block\"", Some("2.1.295")),
        Agent::Cursor => ("failClosed: true", None),
        Agent::Goose => ("on_failure: \"block\"", Some("1.48")),
        _ => return None,
    };
    Some(Switch { text, since })
}

/// Returns the first version of an agent that has an event, if versions without it may still be in use.
pub(crate) fn since(agent: Agent, event: &str) -> Option<&'static str> {
    match (agent, event) {
        (Agent::Codex, "PermissionRequest") => Some("0.122.0"),
        (Agent::Cursor, _) => Some("1.7"),
        (Agent::Gemini, _) => Some("0.26.0"),
        (Agent::Copilot, "postToolUseFailure") => Some("1.0.15"),
        (Agent::Goose, _) => Some("1.38"),
        _ => None,
    }
}

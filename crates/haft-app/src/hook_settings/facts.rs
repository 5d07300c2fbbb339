//! The agents' own switches that keep a hook which fails from letting a call run, and the versions that know an event.

use haft_hook::Agent;
use serde::Serialize;

/// A switch of an agent's, which an install sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// As it stands in an entry.
    pub text: &'static str,
    /// The first version that knows it, where older ones have hooks, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<&'static str>,
}

/// The switch of an agent; none where it has none.
pub fn switch(agent: Agent) -> Option<Switch> {
    let (text, since) = match agent {
        Agent::Claude => ("onFailure: \"block\"", Some("2.1.295")),
        Agent::Cursor => ("failClosed: true", None),
        Agent::Goose => ("on_failure: \"block\"", Some("1.48")),
        _ => return None,
    };
    Some(Switch { text, since })
}

/// The first version of an agent that has an event, where versions without it may still be about.
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

//! The agents, one file each: how haft reads its events and writes its answers, and what it lets a hook do.

use crate::agent::Agent;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::HookEvent;
use crate::limits::AgentLimits;

pub(crate) mod amp;
pub(crate) mod claude;
pub(crate) mod cline;
pub(crate) mod codex;
pub(crate) mod copilot;
pub(crate) mod cursor;
pub(crate) mod devin;
pub(crate) mod droid;
pub(crate) mod gemini;
pub(crate) mod goose;
pub(crate) mod opencode;
pub(crate) mod plugin;
pub(crate) mod windsurf;

/// Reads an event of an agent.
pub(crate) fn read(
    agent: Agent,
    invoked_as: Agent,
    event: &Envelope<'_>,
) -> Result<HookEvent, ReadError> {
    match agent {
        Agent::Claude => claude::read(event),
        Agent::Codex => codex::read(event),
        Agent::Cursor => cursor::read(invoked_as, event),
        Agent::Gemini => gemini::read(event),
        Agent::Copilot => copilot::read(event),
        Agent::Cline => cline::read(event),
        Agent::Windsurf => windsurf::read(event),
        Agent::Devin => devin::read(event),
        Agent::OpenCode => opencode::read(event),
        Agent::Goose => goose::read(event),
        Agent::Droid => droid::read(event),
        Agent::Amp => amp::read(event),
    }
}

impl Agent {
    /// Returns what this agent lets a hook do.
    pub fn limits(self) -> AgentLimits {
        match self {
            Self::Claude => claude::LIMITS,
            Self::Codex => codex::LIMITS,
            Self::Cursor => cursor::LIMITS,
            Self::Gemini => gemini::LIMITS,
            Self::Copilot => copilot::LIMITS,
            Self::Cline => cline::LIMITS,
            Self::Windsurf => windsurf::LIMITS,
            Self::Devin => devin::LIMITS,
            Self::OpenCode => opencode::LIMITS,
            Self::Goose => goose::LIMITS,
            Self::Droid => droid::LIMITS,
            Self::Amp => amp::LIMITS,
        }
    }
}

/// Returns what the hooks of an agent do not see or cannot enforce, one sentence each.
pub fn gaps(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => claude::GAPS,
        Agent::Codex => codex::GAPS,
        Agent::Cursor => cursor::GAPS,
        Agent::Gemini => gemini::GAPS,
        Agent::Copilot => copilot::GAPS,
        Agent::Cline => cline::GAPS,
        Agent::Windsurf => windsurf::GAPS,
        Agent::Devin => devin::GAPS,
        Agent::OpenCode => opencode::GAPS,
        Agent::Goose => goose::GAPS,
        Agent::Droid => droid::GAPS,
        Agent::Amp => amp::GAPS,
    }
}

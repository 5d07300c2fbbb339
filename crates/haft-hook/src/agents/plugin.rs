//! The format of haft's own plugins: they send an object with the event's name, and read one with a decision.
//!
//! They are in `plugins/`, in JavaScript, for agents that have plugins and no hooks.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{HookEvent, ReplyDialect};
use crate::shape::{ActionReader, EventLayout};
use crate::verdict::HookReply;

/// How long a plugin waits for `haft`, the same as in the entries of other agents.
pub(crate) const WAIT: Duration = Duration::from_secs(600);

/// Reads what a plugin sent, which has the names of Claude Code's events.
pub(crate) fn read(
    agent: Agent,
    actions: ActionReader,
    event: &Envelope<'_>,
) -> Result<HookEvent, ReadError> {
    let mut read = EventLayout::new(agent, ReplyDialect::Plugin, actions).read(event)?;
    read.headless = event.flag("headless");
    Ok(read)
}

#[derive(Debug, Serialize)]
struct PluginOutput<'d> {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'d RawValue>,
}

/// Returns the answer. It is never empty, since a plugin denies then.
pub(crate) fn answer(decision: &AgentDecision<'_>) -> HookReply {
    let (decision, reason, input) = match decision {
        AgentDecision::Nothing => ("none", None, None),
        AgentDecision::Allow(input) => ("allow", None, *input),
        AgentDecision::Ask(reason) => ("ask", Some(reason.as_str()), None),
        AgentDecision::Deny(reason) => ("deny", Some(reason.as_str()), None),
    };
    HookReply::json(&PluginOutput {
        decision,
        reason,
        input,
    })
}

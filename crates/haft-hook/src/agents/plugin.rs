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
use crate::setup::{
    AgentFile, AgentFileContent, OWN_FILE, RegistrationPlace, RegistrationScope, Setup,
};
use crate::shape::{ActionReader, EventLayout};
use crate::verdict::HookReply;

/// How long a plugin waits for `haft`, the same as in the entries of other agents.
pub(crate) const WAIT: Duration = Duration::from_secs(600);

/// The part that both plugins share: it runs `haft` and reads the answer.
const DECIDE: &str = include_str!("../plugins/decide.js");

/// Returns a plugin's file: the version, the shared part and the agent's own part.
///
/// Comments at the beginning of `own` stay at the top, since an agent may look for one there.
pub(crate) fn file(agent: Agent, own: &str, program: &str) -> AgentFileContent {
    let top: usize = own
        .split_inclusive('\n')
        .take_while(|line| line.starts_with("//"))
        .map(str::len)
        .sum();
    let (top, own) = own.split_at(top);
    // A JSON string is also a JavaScript string.
    let program = serde_json::Value::from(program).to_string();
    let shared = DECIDE
        .replace("\"@PROGRAM@\"", &program)
        .replace("@AGENT@", agent.name());
    let note = "written by `haft hook install`, which writes it anew: change nothing here";
    AgentFileContent::Own {
        text: format!("{top}// {OWN_FILE}: {note}.\n{shared}{}", own.trim_start()),
        executable: false,
    }
}

/// Where the file is installed: for the user, below a folder that `XDG_CONFIG_HOME` moves, and for a project.
pub(crate) fn setup(
    content: AgentFileContent,
    user: &'static str,
    project: &'static str,
    steps: &'static [&'static str],
) -> Setup {
    let moved = AgentFile::new(user, content.clone()).moved_by("XDG_CONFIG_HOME", ".config");
    let here = AgentFile::new(project, content);
    let places = vec![
        RegistrationPlace::new(RegistrationScope::User, vec![moved]),
        RegistrationPlace::new(RegistrationScope::Project, vec![here]),
    ];
    Setup::new(places, steps)
}

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

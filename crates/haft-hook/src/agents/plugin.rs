//! The format of haft's own plugins: they send an object with the event's name, and read one with a decision.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::decision::Decision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{Dialect, Event};
use crate::setup::{Content, OWN_FILE, Place, Scope, SettingsFile, Setup};
use crate::shape::{Actions, Shape};
use crate::verdict::Reply;

/// How long a plugin waits for `haft`, the same as in the entries of other agents.
pub(crate) const WAIT: Duration = Duration::from_secs(600);

/// The part that both plugins share: it runs `haft` and reads the answer.
const DECIDE: &str = include_str!("../plugins/decide.js");

/// Returns a plugin's file: the version, the shared part and the agent's own part.
///
/// Comments at the beginning of `own` stay at the top, since an agent may look for one there.
pub(crate) fn file(agent: Agent, own: &str, program: &str) -> Content {
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
    Content::Own {
        text: format!("{top}// {OWN_FILE}: {note}.\n{shared}{}", own.trim_start()),
        executable: false,
    }
}

/// Where the file is installed: for the user, below a folder that `XDG_CONFIG_HOME` moves, and for a project.
pub(crate) fn setup(
    content: Content,
    user: &'static str,
    project: &'static str,
    steps: &'static [&'static str],
) -> Setup {
    let moved = SettingsFile::new(user, content.clone()).moved_by("XDG_CONFIG_HOME", ".config");
    let here = SettingsFile::new(project, content);
    let places = vec![
        Place::new(Scope::User, vec![moved]),
        Place::new(Scope::Project, vec![here]),
    ];
    Setup::new(places, steps)
}

/// Reads what a plugin sent, which has the names of Claude Code's events.
pub(crate) fn read(
    agent: Agent,
    actions: Actions,
    event: &Envelope<'_>,
) -> Result<Event, ReadError> {
    let mut read = Shape::new(agent, Dialect::Plugin, actions).read(event)?;
    read.headless = event.flag("headless");
    Ok(read)
}

#[derive(Debug, Serialize)]
struct Answer<'d> {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'d RawValue>,
}

/// Returns the answer. It is never empty, since a plugin denies then.
pub(crate) fn answer(decision: &Decision<'_>) -> Reply {
    let (decision, reason, input) = match decision {
        Decision::Nothing => ("none", None, None),
        Decision::Allow(input) => ("allow", None, *input),
        Decision::Ask(reason) => ("ask", Some(reason.as_str()), None),
        Decision::Deny(reason) => ("deny", Some(reason.as_str()), None),
    };
    Reply::json(&Answer {
        decision,
        reason,
        input,
    })
}

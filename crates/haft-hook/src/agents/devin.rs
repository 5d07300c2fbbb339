//! The Devin CLI. It has Claude Code's events, with its own tools.

use std::time::Duration;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::agents::claude;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{HookEvent, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call runs when the hook exits with anything but 2, crashes or is missing, and no setting of the Devin CLI is known that \
              closes that",
    can_ask: false,
    can_rewrite: false,
    allow_skips_prompt: false,
    has_call_ids: false,
    reports_failures: false,
};

pub(crate) const GAPS: &[&str] = &[
    "the folder that it works in is not in the event but in the variable `DEVIN_PROJECT_DIR`",
    "a project's hooks are read after its folder is trusted",
    "what a changed input or a question would have to look like is not documented, so haft denies instead",
];

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    EventLayout::new(Agent::Devin, ReplyDialect::Block, actions).read(event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, event: &Envelope<'_>) -> Vec<CallAction> {
    if let Some(actions) = mcp::named(tool, None) {
        return actions;
    }
    match tool {
        "exec" => tools::command(input, &["command", "cmd"], &[]),
        "read" => tools::read(input, &tools::PATHS),
        "write" | "edit" | "notebook_edit" => tools::edit(input, EditKind::Write),
        "apply_patch" => tools::apply_patch(input),
        "grep" => tools::search(input, &["path"]),
        "glob" => tools::glob(input, &["path"]),
        _ => claude::actions(tool, input, event),
    }
}

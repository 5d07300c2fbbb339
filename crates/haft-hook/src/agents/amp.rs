//! Amp. It has plugins instead of hooks: haft's plugin runs `haft hook amp` and acts on its answer.

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::agents::plugin;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::HookEvent;
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::tools;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: plugin::WAIT,
    fails_open: false,
    failure: "haft's plugin denies the call when `haft` crashes, is missing or is late; a version of Amp that does not load plugins runs \
              it unseen",
    can_ask: true,
    can_rewrite: true,
    allow_skips_prompt: true,
    has_call_ids: true,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "Amp's plugins are marked as experimental; early versions load them only with `PLUGINS=all` in the environment",
    "without a screen the plugin cannot ask, and denies instead",
];

/// Reads what the plugin sent.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    plugin::read(Agent::Amp, actions, event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    if let Some(actions) = mcp::named(tool, None) {
        return actions;
    }
    match tool {
        "Bash" | "shell_command" => tools::command(input, &["cmd", "command"], &["cwd", "workdir"]),
        "Read" | "view_media" => tools::read(input, &tools::PATHS),
        "Grep" => tools::search(input, &["path"]),
        "glob" | "Glob" => tools::glob(input, &["path"]),
        "create_file" | "edit_file" | "undo_edit" => tools::edit(input, EditKind::Write),
        "apply_patch" => tools::apply_patch(input),
        "read_web_page" => tools::fetch(input, &["url"]),
        "todo_write" => tools::note(input, &["todos"]),
        "todo_read" => tools::note(input, &[]),
        "web_search" | "librarian" => tools::web_search(),
        "Task" | "finder" | "oracle" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

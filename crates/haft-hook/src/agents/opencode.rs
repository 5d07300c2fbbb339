//! `OpenCode`. It has plugins instead of hooks: haft's plugin runs `haft hook opencode` and acts on its answer.

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::agents::plugin;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::HookEvent;
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::tools;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: plugin::WAIT,
    fails_open: false,
    failure: "haft's plugin denies the call when `haft` crashes, is missing or is late",
    can_ask: false,
    can_rewrite: true,
    allow_skips_prompt: false,
    has_call_ids: true,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "tools called from Code Mode's `execute` were reported to bypass plugins",
    "version 2, a beta, does not load plugins of version 1",
    "a tool of an MCP server is named `SERVER_TOOL`, which cannot be told from a tool of another plugin, so it is judged as one that is \
     not known",
    "a plugin that is loaded after haft's may change the input of a call that haft has judged",
];

/// Reads what the plugin sent.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    plugin::read(Agent::OpenCode, actions, event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    match tool {
        "bash" => tools::command(input, &["command"], &["workdir"]),
        "read" => tools::read(input, &tools::PATHS),
        "write" | "edit" | "multiedit" => tools::edit(input, EditKind::Write),
        "apply_patch" | "patch" => tools::apply_patch(input),
        "webfetch" => tools::fetch(input, &["url"]),
        "glob" => tools::glob(input, &["path"]),
        "grep" | "list" => tools::search(input, &["path"]),
        "todowrite" => tools::note(input, &["todos"]),
        "todoread" => tools::note(input, &[]),
        "question" => tools::note(input, &["questions", "question"]),
        "websearch" | "codesearch" => tools::web_search(),
        "task" | "skill" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

//! Factory Droid. It has Claude Code's events and answers, with its own tools.

use std::time::Duration;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::agents::claude;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{HookEvent, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call runs when the hook exits with anything but 2, crashes, is missing or is late, and no setting of Factory Droid is \
              known that closes that",
    // It accepts `ask`, writes it to its log, and runs the call if its own rules allow it.
    can_ask: false,
    can_rewrite: true,
    allow_skips_prompt: true,
    has_call_ids: false,
    reports_failures: false,
};

pub(crate) const GAPS: &[&str] = &[
    "an event in `hooks.json`, even with an empty list, hides the hooks that `settings.json` has for it",
    "a call that fails has no event afterwards",
    "another hook may change the input of a call that haft has judged",
];

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    EventLayout::new(Agent::Droid, ReplyDialect::Droid, actions).read(event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    if let Some(actions) = mcp::named(tool, None) {
        return actions;
    }
    match tool {
        "Execute" => tools::command(input, &["command"], &[]),
        "Read" => tools::read(input, &tools::PATHS),
        "LS" | "Grep" => tools::search(input, &["path", "directory_path"]),
        "Glob" => tools::glob(input, &["path", "folder"]),
        "Edit" | "Create" | "MultiEdit" => tools::edit(input, EditKind::Write),
        "ApplyPatch" => tools::apply_patch(input),
        "FetchUrl" => tools::fetch(input, &["url"]),
        "TodoWrite" => tools::note(input, &["todos"]),
        "AskUser" => tools::note(input, &["question", "questions", "questionnaire"]),
        "WebSearch" => tools::web_search(),
        "Task" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// Returns the answer. If several hooks answer with an object, Factory Droid honours the first that decides, so another hook's `allow`
/// would hide a denial in an object. Exit code 2 denies whatever the others say.
pub(crate) fn answer(event: &HookEvent, decision: &AgentDecision<'_>) -> HookReply {
    match decision {
        AgentDecision::Nothing | AgentDecision::Allow(_) => claude::answer(event, decision),
        AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => HookReply::block(reason),
    }
}

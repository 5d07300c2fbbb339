//! `reply` and `refusal`: the answer that an agent reads.

use serde_json::value::RawValue;

use haft_json::amend::Amended;

use crate::action::{AgentCommand, CallAction};
use crate::agent::Agent;
use crate::agents::{
    claude, cline, codex, copilot, cursor, droid, gemini, goose, plugin, windsurf,
};
use crate::decision::{self, AgentDecision, limit_reason};
use crate::event::{HookEvent, ReplyDialect};
use crate::verdict::{HookReply, HookVerdict};

/// Returns the answer that gives an agent this verdict about this event.
///
/// The answer never allows more than the verdict: if the agent cannot ask, or cannot change a call's input, the call is denied, and the
/// reason says why. Reasons are bounded ([`MAX_REASON`](crate::MAX_REASON)) and never empty. An event that is not about a call still to run
/// gets the reply that changes nothing, whatever the verdict.
///
/// ```
/// use haft_hook::{Agent, HookVerdict, read, reply};
///
/// let event = read(Agent::Codex, br#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}"#)?;
/// let deny = HookVerdict::Deny { reason: "not today".to_owned() };
/// let reply = reply(&event, &deny);
/// assert_eq!(reply.exit, 0);
/// assert_eq!(
///     reply.stdout,
///     r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not today"}}"#,
/// );
/// # Ok::<(), haft_hook::ReadError>(())
/// ```
pub fn reply(event: &HookEvent, verdict: &HookVerdict) -> HookReply {
    let decision = match event.call() {
        Some(_) => AgentDecision::of(event, verdict),
        None => AgentDecision::Nothing,
    };
    match event.dialect {
        ReplyDialect::Nested => claude::answer(event, &decision),
        ReplyDialect::Codex => codex::answer(event, &decision),
        ReplyDialect::Droid => droid::answer(event, &decision),
        ReplyDialect::Cursor => cursor::answer(&decision),
        ReplyDialect::Gemini => gemini::answer(&decision),
        ReplyDialect::Copilot => copilot::answer(event, &decision),
        ReplyDialect::Cline => cline::answer(&decision),
        ReplyDialect::ExitCode => windsurf::answer(event, &decision),
        ReplyDialect::Block => goose::answer(&decision),
        ReplyDialect::Plugin => plugin::answer(&decision),
    }
}

/// Returns the denial of a call whose event could not be read, or that haft failed to judge. It has the form that the agent honours
/// whatever the event was.
pub fn refusal(invoked_as: Agent, reason: &str) -> HookReply {
    let reason = limit_reason(reason);
    match invoked_as {
        // Agents that read only some of Claude Code's JSON also run its hooks. All of them read exit code 2.
        Agent::Claude | Agent::Codex | Agent::Copilot | Agent::Droid | Agent::Windsurf => {
            HookReply::block(&reason)
        }
        Agent::Cursor => cursor::refusal(reason),
        Agent::Gemini => gemini::refusal(reason),
        Agent::Cline => cline::answer(&AgentDecision::Deny(reason)),
        Agent::Devin | Agent::Goose => goose::refusal(reason),
        Agent::OpenCode | Agent::Amp => plugin::answer(&AgentDecision::Deny(reason)),
    }
}

/// Returns the input of a call with `line` in place of its shell line, and every other byte as it was. `None` if the event is not about a
/// call of one shell line, or the agent cannot change its input.
///
/// ```
/// use haft_hook::{Agent, read, rewrite_line};
///
/// let event = read(Agent::Claude, br#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls", "timeout":1.0}}"#)?;
/// let input = rewrite_line(&event, "haft exec -- ls").unwrap();
/// assert_eq!(input.get(), r#"{"command":"haft exec -- ls", "timeout":1.0}"#);
/// # Ok::<(), haft_hook::ReadError>(())
/// ```
pub fn rewrite_line(event: &HookEvent, line: &str) -> Option<Box<RawValue>> {
    let call = event.call()?;
    let [
        CallAction::Command(AgentCommand {
            line: Some(now),
            argv: None,
            why_unknown: None,
            ..
        }),
    ] = call.actions.as_slice()
    else {
        return None;
    };
    if !decision::can_rewrite(event) {
        return None;
    }
    let mut input = Amended::read(call.input.get()).ok()?;
    let says_it = |member: &haft_json::members::Member<'_>| {
        let value = serde_json::from_str::<String>(member.value().get());
        value.is_ok_and(|text| text == *now)
    };
    // A description that repeats the line is not changed.
    let names = ["command", "cmd"];
    let nth = names.iter().find_map(|name| input.position(name))?;
    if !says_it(&input.members()[nth]) {
        return None;
    }
    input.say(nth, line);
    input.to_raw()
}

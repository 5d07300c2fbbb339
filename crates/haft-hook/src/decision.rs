//! `AgentDecision`: what is left of a verdict that an agent can carry out at an event.

use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::event::{HookEvent, HookEventKind, ReplyDialect};
use crate::verdict::HookVerdict;

/// Maximum length of a reason that an agent gets, in bytes.
pub const MAX_REASON: usize = 4 * 1024;

/// The name of the event before a tool in Cline's CLI. Its extension has another name for it.
pub(crate) const CLINE_CLI_CALL: &str = "tool_call";

/// A verdict that the agent can carry out.
#[derive(Debug)]
pub(crate) enum AgentDecision<'v> {
    Nothing,
    Allow(Option<&'v RawValue>),
    Ask(String),
    Deny(String),
}

/// How an agent can be made to ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskMethod {
    /// The answer can say so.
    ByAnswer,
    /// It is about to ask anyway, so no opinion makes it ask.
    ByItself,
    /// It cannot.
    Never,
}

fn way_to_ask(event: &HookEvent) -> AskMethod {
    let is_permission = matches!(event.kind, HookEventKind::Permission(_));
    match event.dialect {
        ReplyDialect::Nested if is_permission && event.agent == Agent::Claude => {
            AskMethod::ByItself
        }
        ReplyDialect::Codex if is_permission => AskMethod::ByItself,
        ReplyDialect::Nested | ReplyDialect::Gemini | ReplyDialect::Copilot if !is_permission => {
            AskMethod::ByAnswer
        }
        ReplyDialect::Plugin if event.agent == Agent::Amp => AskMethod::ByAnswer,
        _ => AskMethod::Never,
    }
}

/// Whether the answer to this event can change the input of the call.
pub(crate) fn can_rewrite(event: &HookEvent) -> bool {
    let is_permission = matches!(event.kind, HookEventKind::Permission(_));
    match event.dialect {
        // Copilot reads a verdict in Claude Code's form. Whether it reads a changed input there is not documented.
        ReplyDialect::Nested => event.agent == Agent::Claude,
        ReplyDialect::Codex
        | ReplyDialect::Droid
        | ReplyDialect::Gemini
        | ReplyDialect::Copilot => !is_permission,
        ReplyDialect::Cursor => event.name.eq_ignore_ascii_case("preToolUse"),
        // The extension has no way to say it.
        ReplyDialect::Cline => event.name == CLINE_CLI_CALL,
        ReplyDialect::Plugin => true,
        ReplyDialect::ExitCode | ReplyDialect::Block => false,
    }
}

impl<'v> AgentDecision<'v> {
    /// Reduces a verdict to what the agent can carry out at this event. The result is never more permissive.
    pub(crate) fn of(event: &HookEvent, verdict: &'v HookVerdict) -> Self {
        match verdict {
            HookVerdict::NoOpinion => Self::Nothing,
            HookVerdict::Allow { input: None } => Self::Allow(None),
            HookVerdict::Allow { input: Some(input) } => {
                if can_rewrite(event) && input.get().trim_ascii_start().starts_with('{') {
                    return Self::Allow(Some(input));
                }
                Self::Deny(format!(
                    "haft lets this call run only with a changed input, and {} cannot change the input of this call",
                    event.agent
                ))
            }
            HookVerdict::Ask { reason } => match way_to_ask(event) {
                AskMethod::ByAnswer => Self::Ask(limit_reason(reason)),
                AskMethod::ByItself => Self::Nothing,
                AskMethod::Never => Self::Deny(limit_reason(&format!(
                    "{} cannot ask its user from a hook, so haft denied a call that its user must approve: {}",
                    event.agent,
                    or_default(reason)
                ))),
            },
            HookVerdict::Deny { reason } => Self::Deny(limit_reason(reason)),
        }
    }
}

/// Returns a reason that is not empty, has no control characters except line breaks and tabs, and has at most [`MAX_REASON`] bytes.
pub(crate) fn limit_reason(reason: &str) -> String {
    const CUT: &str = "…";
    // However long the reason is, only its beginning is read.
    let end = reason.floor_char_boundary(MAX_REASON);
    let mut text: String = or_default(&reason[..end])
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                ' '
            } else {
                c
            }
        })
        .collect();
    if end < reason.len() || text.len() > MAX_REASON {
        text.truncate(text.floor_char_boundary(MAX_REASON - CUT.len()));
        text.push_str(CUT);
    }
    text
}

/// Returns the reason, or a default if there is none.
fn or_default(reason: &str) -> &str {
    match reason.trim() {
        "" => "haft denied this call; its record says why",
        reason => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_REASON, limit_reason};

    #[test]
    fn a_reason_is_never_empty_and_never_long() {
        assert!(!limit_reason(" \n").is_empty());
        assert_eq!(limit_reason("a\u{1b}[31mb\r\n\tc\u{0}d"), "a [31mb \n\tc d");
        for long in [
            "x".repeat(MAX_REASON + 1),
            "ä".repeat(MAX_REASON),
            "\u{85}".repeat(MAX_REASON),
        ] {
            let text = limit_reason(&long);
            assert!(
                text.len() <= MAX_REASON && text.ends_with('…'),
                "{}",
                text.len()
            );
        }
        assert_eq!(limit_reason(&"x".repeat(MAX_REASON)).len(), MAX_REASON);
    }
}

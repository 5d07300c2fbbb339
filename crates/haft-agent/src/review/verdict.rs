//! A reviewer's verdict: exactly one call of one tool, with exactly two members. Anything else is none.

use std::sync::Arc;

use haft::approval::review::ReviewVerdict;
use haft_wire::declared::Function;
use haft_wire::declarer::VersionedTool;
use haft_wire::{
    Call, CallKind, Declarations, Declarer, Dialect, Reply, StopReason, ToolDeclaration, TurnItem,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

/// The tool by which the model answers.
pub(super) const TOOL: &str = "verdict";

/// What the model answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// Read as text: an enum would also be read from an object.
    verdict: String,
    reason: String,
}

/// Returns the tool, declared in a dialect.
pub(super) fn declared(dialect: Dialect) -> Arc<Declarations> {
    let schema = json!({
        "type": "object",
        "properties": {
            "verdict": {
                "type": "string",
                "enum": ["allow", "deny", "pass"],
                "description": "allow, deny, or pass to leave it to the user.",
            },
            "reason": {
                "type": "string",
                "description": "Why, in one short sentence for the user.",
            },
        },
        "required": ["verdict", "reason"],
        "additionalProperties": false,
    });
    let Ok(parameters) = to_raw_value(&schema) else {
        return Arc::new(Declarations::none(dialect));
    };
    let tool = ToolDeclaration::Function(Function {
        name: TOOL.to_owned(),
        description: "Gives your verdict on the action.".to_owned(),
        parameters: parameters.into(),
        strict: true,
        deferred: false,
    });
    let tool = VersionedTool {
        version: TOOL,
        tool: &tool,
    };
    Declarer::new(dialect).declare(&[tool])
}

/// Returns the verdict and the reason of a reply.
///
/// # Errors
/// Why it has none.
pub(super) fn verdict_of(
    reply: &Reply,
    tools: &Declarations,
) -> Result<(ReviewVerdict, String), String> {
    if !matches!(reply.stop, StopReason::Calls | StopReason::End) {
        return Err(format!("its answer ended early ({})", reply.stop));
    }
    let call = only_call(reply)?;
    let own = tools.names.called(call.namespace.as_deref(), &call.name) == Some(TOOL);
    if !own || call.kind != CallKind::Function {
        return Err("it called something else than the tool verdict".to_owned());
    }
    let none = || "its verdict is not allow, deny or pass with a reason".to_owned();
    // A list would be read as members in their order.
    let object = call.arguments.trim_start().starts_with('{');
    let answer: Option<Answer> = serde_json::from_str(&call.arguments).ok();
    let answer = answer.filter(|_| object).ok_or_else(none)?;
    let verdicts = [
        ReviewVerdict::Allow,
        ReviewVerdict::Deny,
        ReviewVerdict::Pass,
    ];
    let verdict = verdicts
        .into_iter()
        .find(|one| one.as_str() == answer.verdict);
    let verdict = verdict.ok_or_else(none)?;
    if !answer.reason.chars().any(char::is_alphanumeric) {
        return Err("its verdict has no reason".to_owned());
    }
    Ok((verdict, answer.reason))
}

/// Returns the only call of a reply. Words beside it say nothing; any other item does.
fn only_call(reply: &Reply) -> Result<&Call, String> {
    let mut only = None;
    for item in &reply.turn.items {
        match item {
            TurnItem::Text(_) | TurnItem::Thinking(_) => {}
            TurnItem::Call(_) if only.is_some() => {
                return Err("it gave more than one verdict".to_owned());
            }
            TurnItem::Call(call) => only = Some(call),
            TurnItem::Refusal(_) => return Err("it refused to answer".to_owned()),
            _ => return Err("its answer holds something else than a verdict".to_owned()),
        }
    }
    only.ok_or_else(|| "it gave no verdict".to_owned())
}

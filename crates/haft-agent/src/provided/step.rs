//! `ToolStep`: a call of a tool that is part of a provider's call; `Next`: what follows the steps so far.

use haft::Outcome;
use serde_json::Value;

use crate::answers;
use crate::conversation::AnswerText;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolStep {
    pub(crate) tool: &'static str,
    pub(crate) arguments: String,
}

impl ToolStep {
    /// Creates a call of this tool.
    pub(crate) fn new(tool: &'static str, arguments: impl Into<Value>) -> Self {
        Self {
            tool,
            arguments: arguments.into().to_string(),
        }
    }
}

/// What follows the steps so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Another call.
    Call(ToolStep),
    /// The answer.
    Answer(Box<AnswerText>),
}

impl Next {
    /// Returns the answer for a call that cannot be run.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::Answer(Box::new(AnswerText::error(text)))
    }

    /// Returns the outcome of a call as the answer.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        Self::Answer(Box::new(answers::of(outcome)))
    }
}

/// Handles a call with a single step, whose outcome is the answer.
pub(crate) fn one(done: &[Outcome], step: impl FnOnce() -> ToolStep) -> Next {
    match done.last() {
        None => Next::Call(step()),
        Some(outcome) => Next::of(outcome),
    }
}

/// Returns an answer with a text and an item.
pub(super) fn with_item(text: &str, is_error: bool, item: String) -> Next {
    Next::Answer(Box::new(AnswerText {
        is_error,
        item: Some(item),
        ..AnswerText::text(text)
    }))
}

//! `CallResult`: what came of a call, without which call it was: while it is shaped, and as it is read from a stored outcome.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::result::{Artifact, Content, Failure, Original, Status, TracedCall};

/// What the outcome of a call will hold: made of its tool's result or of its early end, or that of a call which ended before.
#[derive(Debug, Deserialize)]
pub(super) struct CallResult {
    pub(super) status: Status,
    pub(super) summary: Option<String>,
    #[serde(default)]
    pub(super) content: Vec<Content>,
    pub(super) data: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) artifacts: Vec<Artifact>,
    pub(super) error: Option<Failure>,
    pub(super) strength: Option<String>,
    /// The trace of a call that another one ran; its own otherwise.
    pub(super) calls: Option<Vec<TracedCall>>,
    /// What an MCP server sent.
    pub(super) original: Option<Original>,
    /// What it waits for; that of a call which ended before is over.
    #[serde(skip)]
    pub(super) approval: Option<String>,
    /// What people can do about it; no outcome that is stored holds it.
    #[serde(skip)]
    pub(super) operator: Option<String>,
}

impl CallResult {
    /// Nothing but how the call ended.
    pub(super) fn of(status: Status) -> Self {
        Self {
            status,
            summary: None,
            content: Vec::new(),
            data: None,
            artifacts: Vec::new(),
            error: None,
            strength: None,
            calls: None,
            original: None,
            approval: None,
            operator: None,
        }
    }

    /// The same with this failure.
    pub(super) fn with_error(mut self, failure: Failure) -> Self {
        self.error = Some(failure);
        self
    }

    /// The result in an outcome's JSON; nothing where that cannot be read.
    pub(super) fn stored(outcome: &str) -> Option<Self> {
        let mut result: Self = serde_json::from_str(outcome).ok()?;
        result.calls.get_or_insert_default();
        Some(result)
    }

    /// Its texts.
    pub(super) fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

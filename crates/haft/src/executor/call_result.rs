//! `OutcomeContent`: what a call produced, without its identity; used while a result is shaped and when a stored outcome is read.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::result::{Artifact, Content, Failure, OriginalResult, Status, TracedCall, status_of};

/// The content of an outcome: built from a tool result or an early end, or read from a call that ended before.
#[derive(Debug, Deserialize)]
pub(super) struct OutcomeContent {
    pub(super) status: Status,
    pub(super) summary: Option<String>,
    #[serde(default)]
    pub(super) content: Vec<Content>,
    pub(super) data: Option<Box<RawValue>>,
    #[serde(default, rename = "data_for_programs")]
    pub(super) data_is_for_programs: bool,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    #[serde(default)]
    pub(super) artifacts: Vec<Artifact>,
    pub(super) error: Option<Failure>,
    /// Why the call that this one is a part of did not succeed.
    pub(super) outer_error: Option<Failure>,
    pub(super) strength: Option<String>,
    /// Trace of a call that another call ran; `None` for the call's own trace.
    pub(super) calls: Option<Vec<TracedCall>>,
    /// The original response of an MCP server.
    pub(super) original: Option<OriginalResult>,
    /// The approval that the call waits for. Not read from stored outcomes, whose approvals are over.
    #[serde(skip)]
    pub(super) approval: Option<String>,
    /// Advice for operators; never part of a stored outcome.
    #[serde(skip)]
    pub(super) operator: Option<String>,
}

impl OutcomeContent {
    /// Returns an empty result with this status.
    pub(super) fn of(status: Status) -> Self {
        Self {
            status,
            summary: None,
            content: Vec::new(),
            data: None,
            data_is_for_programs: false,
            notes: Vec::new(),
            artifacts: Vec::new(),
            error: None,
            outer_error: None,
            strength: None,
            calls: None,
            original: None,
            approval: None,
            operator: None,
        }
    }

    pub(super) fn with_error(mut self, failure: Failure) -> Self {
        self.error = Some(failure);
        self
    }

    /// Reads the result from an outcome's JSON, for the call that asked: the outcome may be that of its part; `None` if it cannot be
    /// parsed.
    pub(super) fn stored(outcome: &str) -> Option<Self> {
        let mut result: Self = serde_json::from_str(outcome).ok()?;
        result.calls.get_or_insert_default();
        if let Some(failure) = result.outer_error.take() {
            result.status = status_of(failure.kind);
            result.summary = Some(failure.message.clone());
            result.error = Some(failure);
        }
        Some(result)
    }

    /// Returns its text contents, joined by newlines.
    pub(super) fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

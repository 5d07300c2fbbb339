//! Reading an outcome from the JSON that was stored of it, for a reader that gets it later.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{CallId, RunId};
use crate::result::{Artifact, Content, Failure, Outcome, Status, TracedCall};

/// The members of an outcome's JSON (contract §3) that matter to its reader.
#[derive(Deserialize)]
struct ParsedOutcome {
    status: Status,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    content: Vec<Content>,
    data: Option<Box<RawValue>>,
    #[serde(default, rename = "data_for_programs")]
    data_is_for_programs: bool,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    artifacts: Vec<Artifact>,
    error: Option<Failure>,
    outer_error: Option<Failure>,
    #[serde(default)]
    calls: Vec<TracedCall>,
    strength: Option<String>,
    approval: Option<String>,
}

impl Outcome {
    /// Reads an outcome from its JSON, as that of this call; `None` if the text is not an outcome.
    pub fn from_stored(text: &str, run: RunId, call: CallId, tool: &str) -> Option<Self> {
        let stored: ParsedOutcome = serde_json::from_str(text).ok()?;
        Some(Self {
            summary: stored.summary,
            content: stored.content,
            data: stored.data,
            data_is_for_programs: stored.data_is_for_programs,
            notes: stored.notes,
            artifacts: stored.artifacts,
            error: stored.error,
            outer_error: stored.outer_error,
            calls: stored.calls,
            strength: stored.strength,
            approval: stored.approval,
            ..Self::new(run, call, tool, stored.status)
        })
    }
}

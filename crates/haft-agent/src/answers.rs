//! Converts an outcome to the answer to a model's call, and reads an outcome that was stored as JSON.

use haft::result::{Artifact, Content, Failure};
use haft::{CallId, Outcome, RunId, Status};
use haft_wire::Part;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::conversation::AnswerText;

/// Returns the part of an outcome that the model reads: its text, then images and sounds.
pub(crate) fn of(outcome: &Outcome) -> AnswerText {
    let mut parts = vec![Part::Text(outcome.to_model())];
    parts.extend(outcome.content.iter().filter_map(media));
    AnswerText {
        parts,
        is_error: !outcome.is_ok(),
        ..AnswerText::default()
    }
}

fn media(content: &Content) -> Option<Part> {
    match content {
        Content::Image { data, mime_type } => Some(Part::Image {
            media_type: mime_type.clone(),
            data: data.clone(),
        }),
        Content::Audio { data, mime_type } => Some(Part::Audio {
            media_type: mime_type.clone(),
            data: data.clone(),
        }),
        Content::Text { .. } | Content::Resource { .. } | Content::ResourceLink { .. } => None,
    }
}

/// The members of an outcome's JSON (contract §3) that matter to a model.
#[derive(Deserialize)]
struct Stored {
    status: Status,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    content: Vec<Content>,
    #[serde(default)]
    data: Option<Box<RawValue>>,
    #[serde(default)]
    artifacts: Vec<Artifact>,
    #[serde(default)]
    error: Option<Failure>,
    #[serde(default)]
    approval: Option<String>,
}

/// Reads an outcome from its JSON, as that of this call; `None` if the text is not an outcome.
pub(crate) fn stored(text: &str, run: &RunId, call: CallId, tool: &str) -> Option<Outcome> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    let mut outcome = Outcome::new(run.clone(), call, tool, stored.status);
    outcome.summary = stored.summary;
    outcome.content = stored.content;
    outcome.data = stored.data;
    outcome.artifacts = stored.artifacts;
    outcome.error = stored.error;
    outcome.approval = stored.approval;
    Some(outcome)
}

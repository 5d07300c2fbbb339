//! What a reviewer is told of a request: what people are shown, redacted alike, as one JSON object.

use std::borrow::Cow;

use haft::approval::ApprovalRequest;
use haft::approval::meaning::Meaning;
use haft::approval::preview::FileChange;
use haft::audit::redact::Redactor;
use haft::permission::{Condition, Effect, Permission, Verdict};
use haft::policy::RuleOfTwoState;
use haft::text::visible;
use serde::Serialize;
use serde_json::{Map, Value};

/// Maximum size of the JSON text, in bytes. A longer request cannot be judged whole, so nobody but a person is asked.
const MAX_BYTES: usize = 96 << 10;

#[derive(Serialize)]
struct RequestFacts<'a> {
    tool: &'a str,
    made_by: &'static str,
    risk: &'static str,
    asked_because: String,
    /// Which two of reading untrusted content, seeing private data and sending the run has had, if this call adds the third.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_of_two: Option<String>,
    workspace: String,
    arguments: Value,
    #[serde(skip_serializing_if = "Map::is_empty")]
    filled_in_by_settings: &'a Map<String, Value>,
    effects: Vec<EffectFacts>,
    conditions: &'a [Condition],
    files: &'a [FileChange],
    meanings: &'a [Meaning],
}

#[derive(Serialize)]
struct EffectFacts {
    kind: String,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
    risk: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

/// Returns the facts of a request as JSON text.
///
/// # Errors
/// Why a model cannot judge it.
pub(super) fn facts(request: &ApprovalRequest, redactor: &Redactor) -> Result<String, String> {
    let redacted = |text: &str| redactor.redact_exactly(text).into_owned();
    let mut snapshot = request.snapshot.clone();
    snapshot.visit_texts(&mut |text| {
        if let Cow::Owned(hidden) = redactor.redact_exactly(text) {
            *text = hidden;
        }
    });
    snapshot.meanings.iter_mut().for_each(drop_pixels);
    let effect = |(at, wanted): (usize, &Permission)| EffectFacts {
        kind: wanted.effect.kind().to_owned(),
        value: redacted(wanted.effect.value()),
        leads_to: leads_to(&wanted.effect),
        risk: wanted.risk.as_str(),
        verdict: request.verdicts.get(at).copied(),
    };
    let permissions = &request.snapshot.permissions;
    let arguments = redacted(&request.arguments);
    let facts = RequestFacts {
        tool: request.tool.as_str(),
        made_by: request.origin.as_str(),
        risk: request.risk.as_str(),
        asked_because: redacted(&request.reason),
        rule_of_two: request.rule_of_two.and_then(RuleOfTwoState::sentence),
        workspace: redacted(&request.workspace),
        arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
        filled_in_by_settings: &request.bound,
        effects: permissions.iter().enumerate().map(effect).collect(),
        conditions: &request.snapshot.conditions,
        files: &snapshot.preview,
        meanings: &snapshot.meanings,
    };
    let text = serde_json::to_string(&facts);
    let text = text.map_err(|error| format!("the request cannot be written as JSON: {error}"))?;
    // Once more as a whole: conditions and names are texts, too.
    let text = marked(&redactor.redact_exactly(&text));
    if text.len() > MAX_BYTES {
        let kib = MAX_BYTES >> 10;
        return Err(format!(
            "the request has {} bytes, and a reviewer is asked about at most {kib} KiB",
            text.len()
        ));
    }
    Ok(text)
}

/// Removes pixels: what a picture shows is no text.
fn drop_pixels(meaning: &mut Meaning) {
    if let Some(pictures) = &mut meaning.pictures {
        let both = [&mut pictures.before, &mut pictures.after];
        both.into_iter()
            .flatten()
            .for_each(|picture| picture.thumbnail = None);
    }
    meaning.parts.iter_mut().for_each(drop_pixels);
}

/// Returns where an effect leads, if that is not what it names.
fn leads_to(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Connect { leads_to, .. } if !leads_to.is_empty() => {
            let each: Vec<String> = leads_to.iter().map(ToString::to_string).collect();
            Some(each.join(", "))
        }
        Effect::Sign { by, .. } => Some(by.clone()),
        other => other.path()?.target.clone(),
    }
}

/// Shows characters that could hide or disguise text, within the strings of a JSON text, which stays JSON.
fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letter = [0; 4];
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        let shown = visible::line(c.encode_utf8(&mut letter));
        if shown.starts_with('\\') {
            out.push('\\');
        }
        out.push_str(&shown);
    }
    out
}

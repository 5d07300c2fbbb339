//! `ApprovalDetails`: a request with everything needed for a decision.

use std::borrow::Cow;

use haft::approval::Choice;
use haft::approval::form::QuestionForm;
use haft::approval::inbox::StoredApproval;
use haft::approval::meaning::Meaning;
use haft::approval::preview::FileChange;
use haft::permission::{Condition, Effect, Verdict};
use haft::result::{Outcome, RenderedPart};
use haft::toolset::Toolset;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::app::App;
use crate::view::approvals::ApprovalListItem;

/// A request with all details.
#[derive(Debug, Serialize)]
pub struct ApprovalDetails {
    #[serde(flatten)]
    item: ApprovalListItem,
    arguments: String,
    permissions: Vec<PermissionView>,
    /// The number of effects that are not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_permissions: Option<u64>,
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    bound: Map<String, Value>,
    preview: Vec<FileChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meanings: Vec<Meaning>,
    suggested: Vec<String>,
    fingerprint: String,
    spec_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<QuestionForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_arguments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Box<RawValue>>,
    /// What a reader gets of the outcome, in marked parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rendered: Vec<RenderedPart<'static>>,
}

/// An effect of the call.
#[derive(Debug, Serialize)]
struct PermissionView {
    kind: String,
    value: String,
    /// The target of the links in a path, if it differs; the private addresses that a host name resolves to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    risk: String,
    /// The policy's verdict on this effect alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

/// Returns where an effect leads, if that is not what it names.
fn target(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Connect { leads_to, .. } if !leads_to.is_empty() => {
            let each: Vec<String> = leads_to.iter().map(ToString::to_string).collect();
            Some(each.join(", "))
        }
        Effect::Sign { by, .. } => Some(by.clone()),
        other => other.path()?.target.clone(),
    }
}

/// Returns the rules to suggest for good: while the request is open, only if the same call would need no approval under them.
fn offered(app: &App, entry: &StoredApproval) -> Vec<String> {
    let request = &entry.request;
    if entry.is_open() && app.rule_check().problem(request, None).is_some() {
        return Vec::new();
    }
    request.suggested.clone()
}

/// Returns what a reader gets of the stored outcome of a request's call.
fn rendered(entry: &StoredApproval, text: &str) -> Vec<RenderedPart<'static>> {
    let request = &entry.request;
    let (run, call) = (request.run.clone(), request.call.clone());
    let outcome = Outcome::from_stored(text, run, call, request.tool.as_str());
    let parts = outcome.as_ref().map(|outcome| outcome.render().parts);
    let parts = parts.unwrap_or_default().into_iter();
    parts.map(RenderedPart::into_owned).collect()
}

impl ApprovalDetails {
    /// Converts an entry of the inbox, for a user who may see it.
    pub fn of(app: &App, entry: &StoredApproval) -> Self {
        let redactor = app.redactor();
        let redacted = |text: &str| redactor.redact_exactly(text).into_owned();
        let request = &entry.request;
        let permission = |(at, wanted): (usize, &haft::permission::Permission)| PermissionView {
            kind: wanted.effect.kind().to_owned(),
            value: redacted(wanted.effect.value()),
            target: target(&wanted.effect),
            risk: wanted.risk.to_string(),
            verdict: request.verdicts.get(at).copied(),
        };
        let mut snapshot = request.snapshot.clone();
        let mut redact = |text: &mut String| {
            let redacted = match redactor.redact_exactly(text) {
                Cow::Owned(redacted) => redacted,
                Cow::Borrowed(_) => return,
            };
            *text = redacted;
        };
        snapshot.visit_texts(&mut redact);
        let more = request.snapshot.more_permissions.as_ref();
        let tools = app.all().snapshot();
        let tool = tools.entry(request.tool.as_str());
        let edited = entry.decision.as_ref().and_then(|d| match &d.choice {
            Choice::Approve { edited, .. } => edited.as_deref().map(redacted),
            Choice::Deny { .. } | Choice::Answer { .. } => None,
        });
        let outcome = entry.outcome.clone();
        let rendered = outcome.as_deref().map(|text| rendered(entry, text));
        Self {
            item: ApprovalListItem::of(app, entry),
            arguments: redacted(&request.arguments),
            permissions: request
                .snapshot
                .permissions
                .iter()
                .enumerate()
                .map(permission)
                .collect(),
            more_permissions: more.map(|more| more.count),
            conditions: request.snapshot.conditions.clone(),
            bound: request.bound.clone(),
            preview: snapshot.preview,
            meanings: snapshot.meanings,
            suggested: offered(app, entry),
            fingerprint: request.fingerprint.clone(),
            spec_hash: request.spec_hash.clone(),
            input_schema: tool.map(|tool| tool.spec().input_schema.as_ref().clone()),
            form: request.form.clone(),
            edited_arguments: edited,
            outcome: outcome.and_then(|text| RawValue::from_string(text).ok()),
            rendered: rendered.unwrap_or_default(),
        }
    }
}

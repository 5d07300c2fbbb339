//! Elicitation: what a client can ask its user, what it is given to ask, and what its reply says.

use haft::approval::form::{Question, QuestionForm, QuestionKind};
use haft::approval::{ApprovalRequest, Choice, Decision};
use haft::spec::Risk;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::era::{Era, Revision};

/// Maximum length of the line that says what is asked, in bytes.
const MAX_LINE: usize = 300;
/// Maximum length of the message that a user may send with a decision, in bytes.
const MAX_MESSAGE: usize = 4096;

/// The ways in which a client says it can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Elicitation {
    /// A form with a few fields, shown by the client: since 2025-06-18.
    pub form: bool,
    /// Opening a URL: since 2025-11-25.
    pub url: bool,
}

impl Elicitation {
    /// Reads a client's capabilities, as far as its protocol revision defines them; unreadable ones count as absent.
    pub(crate) fn of(capabilities: Option<&RawValue>, era: Era) -> Self {
        #[derive(Deserialize)]
        struct ElicitationMember {
            elicitation: Option<ElicitationModes>,
        }
        #[derive(Deserialize)]
        struct ElicitationModes {
            form: Option<IgnoredAny>,
            url: Option<IgnoredAny>,
        }
        let modes = || {
            let raw = capabilities.filter(|raw| raw.get().len() > 2)?.get();
            let read = serde_json::from_str::<ElicitationMember>(raw).ok()?;
            read.elicitation.filter(|_| era >= Revision::V2025_06_18)
        };
        let Some(modes) = modes() else {
            return Self::default();
        };
        let url = modes.url.is_some() && era >= Revision::V2025_11_25;
        Self {
            form: modes.form.is_some() || !url,
            url,
        }
    }

    /// Returns whether it can ask at all.
    pub(crate) fn any(self) -> bool {
        self.form || self.url
    }
}

/// How a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElicitationMode {
    /// The user opens the console.
    Url,
    /// The client shows a form.
    Form,
}

/// Returns the `params` of an `elicitation/create` that sends the user to this address.
pub(crate) fn by_url(request: &ApprovalRequest, address: &str, era: Era) -> Value {
    let mut params = json!({"mode": "url", "message": line(request), "url": address});
    if !era.is_modern() {
        params["elicitationId"] = request.id.as_str().into();
    }
    params
}

/// Returns the `params` of an `elicitation/create` with a form; `None` if the protocol cannot express it.
pub(crate) fn by_form(request: &ApprovalRequest, era: Era) -> Option<Value> {
    let schema = match &request.form {
        Some(form) => fields(form, era)?,
        None => json!({
            "type": "object",
            "properties": {
                "decision": {"type": "string", "title": "Decision", "enum": ["deny", "approve"]},
                "message": {"type": "string", "title": "A message for the caller", "maxLength": MAX_MESSAGE}
            },
            "required": ["decision"]
        }),
    };
    let mut params = json!({"message": line(request), "requestedSchema": schema});
    if era >= Revision::V2025_11_25 {
        params["mode"] = "form".into();
    }
    Some(params)
}

fn fields(form: &QuestionForm, era: Era) -> Option<Value> {
    let mut properties = Map::new();
    for question in &form.questions {
        properties.insert(question.id.clone(), field(question, era)?);
    }
    Some(json!({"type": "object", "properties": properties}))
}

fn field(question: &Question, era: Era) -> Option<Value> {
    let newer = era >= Revision::V2025_11_25;
    let mut field = match question.kind {
        QuestionKind::Single if question.allow_other => {
            let options = format!("One of: {}; or other words", question.options.join(", "));
            json!({"type": "string", "description": options})
        }
        QuestionKind::Single => json!({"type": "string", "enum": question.options}),
        QuestionKind::Multiple if newer && !question.options.is_empty() => {
            let items = json!({"type": "string", "enum": question.options});
            json!({"type": "array", "items": items})
        }
        // There is no multiple choice before 2025-11-25.
        QuestionKind::Multiple => return None,
        QuestionKind::Text => json!({"type": "string"}),
        QuestionKind::Number => json!({"type": "number"}),
        QuestionKind::Confirm => json!({"type": "boolean"}),
    };
    field["title"] = one_line(&question.text).into();
    if let Some(default) = question.default.as_ref().filter(|_| newer) {
        field["default"] = default.clone();
    }
    Some(field)
}

/// Returns the question in one line: the tool, its risk, and what its changes mean, or the effect that matters most.
pub(crate) fn line(request: &ApprovalRequest) -> String {
    if let Some(form) = &request.form {
        return one_line(&form.title);
    }
    if let Some(meaning) = request.snapshot.meanings.first() {
        return one_line(&format!(
            "{} ({}): {}",
            request.tool, request.risk, meaning.title
        ));
    }
    let effects = request.snapshot.permissions.iter();
    let effects = effects.filter(|permission| !permission.effect.value().is_empty());
    let fact = effects.max_by_key(|permission| permission.risk);
    let fact = fact.map_or(request.arguments.as_str(), |permission| {
        permission.effect.value()
    });
    one_line(&format!("{} ({}): {fact}", request.tool, request.risk))
}

/// Keeps a text on one line wherever it is shown: no control characters, and nothing that changes the direction of text.
fn one_line(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let shown = text.chars().map(|c| if hidden(c) { ' ' } else { c });
    let mut line = String::with_capacity(text.len().min(MAX_LINE) + 4);
    for c in shown {
        if line.len() + c.len_utf8() > MAX_LINE {
            line.push('…');
            break;
        }
        line.push(c);
    }
    line
}

/// What the client's user did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ElicitReply {
    /// The user opened the URL or submitted the form.
    Accept(Map<String, Value>),
    /// The user declined the form or the URL.
    Decline,
    /// The user dismissed it, or the client could not ask.
    Nothing,
}

impl ElicitReply {
    /// Reads the result of an `elicitation/create`.
    pub(crate) fn of(result: Option<&RawValue>) -> Self {
        #[derive(Deserialize)]
        struct ElicitResultMembers {
            action: String,
            #[serde(default)]
            content: Option<Map<String, Value>>,
        }
        let read =
            result.and_then(|raw| serde_json::from_str::<ElicitResultMembers>(raw.get()).ok());
        match read {
            Some(read) if read.action == "accept" => Self::Accept(read.content.unwrap_or_default()),
            Some(read) if read.action == "decline" => Self::Decline,
            _ => Self::Nothing,
        }
    }

    /// Returns the decision in a submitted form. A dismissed form decides nothing, nor does one with invalid answers.
    pub(crate) fn decision(self, request: &ApprovalRequest) -> Option<Decision> {
        let by = &*request.principal.subject;
        let from = "mcp form";
        match (self, &request.form) {
            (Self::Accept(mut content), Some(form)) => {
                content.retain(|_, value| !value.is_null());
                if !form.validate_answers(&content).is_empty() {
                    return None;
                }
                let answers = Value::Object(content).to_string();
                Some(Decision::new(Choice::Answer { answers }, by, from))
            }
            (Self::Decline, Some(_)) => {
                Some(Decision::deny(by, from).with_message("the question was declined"))
            }
            (Self::Accept(content), None) if request.risk < Risk::Critical => {
                let text = |key| content.get(key).and_then(Value::as_str);
                match text("decision") {
                    Some("approve") => Some(Decision::approve(by, from)),
                    Some("deny") => {
                        let deny = Decision::deny(by, from);
                        let word = text("message").filter(|word| !word.is_empty());
                        Some(match word {
                            Some(word) => {
                                deny.with_message(&word[..word.floor_char_boundary(MAX_MESSAGE)])
                            }
                            None => deny,
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

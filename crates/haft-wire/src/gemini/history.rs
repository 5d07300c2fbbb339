//! Writes the history as contents. Answers are in a content of their own, as many as there are calls before them.

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::value::RawValue;

use super::results::{ResultTarget, part, result, separate, text};
use crate::body::inexpressible;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::foreign::{CallIds, arguments};
use crate::message::{Message, ToolOutput};
use crate::names::ToolNames;
use crate::reply::{Call, Turn, TurnItem};

const DIALECT: Dialect = Dialect::Gemini;
/// The signature for a call made by another model: `skip_thought_signature_validator` in Base64, which the provider's page on
/// thought signatures specifies for transferred histories.
const CARRIED: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

#[derive(Debug)]
struct GeminiHistory<'a> {
    out: Vec<u8>,
    /// Whether a user's content is open.
    has_user: bool,
    names: &'a ToolNames,
    /// Whether the model is of the third generation, which requires signatures and reads files in answers.
    is_third: bool,
    ids: CallIds,
    /// Calls of the previous turn, with their ids and names in this request.
    open: Vec<GeminiOpenCall<'a>>,
}

#[derive(Debug)]
struct GeminiOpenCall<'a> {
    call: &'a Call,
    id: Option<String>,
    name: String,
    /// Whether it came in this dialect: then an item that the host gives as its answer is of this dialect, too.
    is_own: bool,
}

/// Writes the history as the list of contents.
///
/// # Errors
/// If a call has no answer, or an answer no call: the provider refuses both.
pub(crate) fn write(
    model: &str,
    messages: &[Message],
    names: &ToolNames,
) -> Result<Vec<u8>, WireError> {
    let before = ["gemini-1", "gemini-2", "gemini-pro"];
    let mut history = GeminiHistory {
        out: vec![b'['],
        has_user: false,
        names,
        is_third: !before.iter().any(|old| model.starts_with(old)),
        ids: CallIds::default(),
        open: Vec::new(),
    };
    for message in messages {
        history.message(message)?;
    }
    history.all_answered()?;
    history.close();
    history.out.push(b']');
    Ok(history.out)
}

/// Returns a call's id if its provider gave one; `None` if haft made it from the call's position.
fn given_id(call: &Call, place: usize) -> Option<&str> {
    let made = format!("call-{place}");
    Some(call.id.as_str()).filter(|id| *id != made)
}

impl<'a> GeminiHistory<'a> {
    fn message(&mut self, message: &'a Message) -> Result<(), WireError> {
        if let Message::Results(answers) = message {
            return self.results(answers);
        }
        // The provider merges consecutive turns of the model: the answers to all their calls follow them.
        if !matches!(message, Message::Model(_)) {
            self.all_answered()?;
        }
        match message {
            Message::User(parts) => self.user(|out| {
                for one in parts {
                    part(one, out);
                }
            }),
            Message::Host(note) if note.trim().is_empty() => {}
            Message::Host(note) => {
                let note = format!("<system>{note}</system>");
                self.user(|out| text(&note, out));
            }
            Message::Model(turn) if turn.dialect == DIALECT => self.own(turn),
            Message::Model(turn) => self.foreign(turn),
            Message::Results(_) => {}
        }
        Ok(())
    }

    /// Adds parts to the user's content; adds no content if there are no parts.
    fn user(&mut self, add: impl FnOnce(&mut Vec<u8>)) {
        let mut parts = vec![b'['];
        add(&mut parts);
        let Some(parts) = parts.get(1..).filter(|parts| !parts.is_empty()) else {
            return;
        };
        if !self.has_user {
            separate(&mut self.out);
            self.out.extend_from_slice(br#"{"role":"user","parts":["#);
            self.has_user = true;
        }
        separate(&mut self.out);
        self.out.extend_from_slice(parts);
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.has_user) {
            self.out.extend_from_slice(b"]}");
        }
    }

    /// Writes a turn of this dialect unchanged, with its signatures.
    fn own(&mut self, turn: &'a Turn) {
        for (place, call) in turn.calls().enumerate() {
            let id = given_id(call, place).map(str::to_owned);
            if let Some(id) = &id {
                self.ids.note(id);
            }
            let name = call.name.clone();
            self.open.push(GeminiOpenCall {
                call,
                id,
                name,
                is_own: true,
            });
        }
        if has_parts(&turn.raw) {
            self.close();
            separate(&mut self.out);
            self.out.extend_from_slice(turn.raw.get().as_bytes());
        }
    }

    /// Writes the texts and calls of another dialect's turn: its thinking is signed for its own provider only.
    fn foreign(&mut self, turn: &'a Turn) {
        let mut parts = vec![b'['];
        for item in &turn.items {
            match item {
                TurnItem::Text(words) | TurnItem::Refusal(words) => text(words, &mut parts),
                TurnItem::Call(call) => {
                    let id = self.ids.unique(&call.id);
                    let name = self
                        .names
                        .carried(DIALECT, call.namespace.as_deref(), &call.name);
                    separate(&mut parts);
                    let mut object = Writer::begin(&mut parts);
                    let mut function = Writer::begin(object.key("functionCall"));
                    string(function.key("id"), &id);
                    string(function.key("name"), &name);
                    function
                        .key("args")
                        .extend_from_slice(arguments(call).as_bytes());
                    function.end();
                    if self.is_third {
                        string(object.key("thoughtSignature"), CARRIED);
                    }
                    object.end();
                    self.open.push(GeminiOpenCall {
                        call,
                        id: Some(id),
                        name,
                        is_own: false,
                    });
                }
                _ => {}
            }
        }
        if parts.len() > 1 {
            self.close();
            separate(&mut self.out);
            self.out.extend_from_slice(br#"{"role":"model","parts":"#);
            self.out.extend_from_slice(&parts);
            self.out.extend_from_slice(b"]}");
        }
    }

    fn results(&mut self, answers: &[ToolOutput]) -> Result<(), WireError> {
        let (mut parts, mut behind) = (vec![b'['], vec![b'[']);
        for answer in answers.iter().filter(|answer| !answer.is_approval()) {
            let at = self
                .open
                .iter()
                .position(|open| open.call.id == answer.call.id);
            let Some(at) = at else {
                let (id, name) = (quote(&answer.call.id), quote(&answer.call.name));
                return Err(refused(format!(
                    "the answer to the call `{id}` of `{name}`: the turn before it makes no such call"
                )));
            };
            let open = self.open.remove(at);
            let to = ResultTarget {
                id: open.id.as_deref(),
                name: &open.name,
            };
            match answer.item.as_ref().filter(|_| open.is_own) {
                Some(item) => {
                    separate(&mut parts);
                    parts.extend_from_slice(item.get().as_bytes());
                }
                None => result(answer, to, self.is_third, [&mut parts, &mut behind]),
            }
        }
        if parts.len() > 1 {
            self.close();
            separate(&mut self.out);
            self.out.extend_from_slice(br#"{"role":"user","parts":"#);
            self.out.extend_from_slice(&parts);
            self.out.extend_from_slice(b"]}");
        }
        self.user(|out| out.extend_from_slice(&behind[1..]));
        Ok(())
    }

    fn all_answered(&self) -> Result<(), WireError> {
        let Some(open) = self.open.first() else {
            return Ok(());
        };
        let (id, name) = (quote(&open.call.id), quote(&open.call.name));
        Err(refused(format!(
            "the call `{id}` of `{name}` without its answer: answer every call right behind its turn"
        )))
    }
}

/// Returns whether a content has parts: the provider refuses one without.
fn has_parts(content: &RawValue) -> bool {
    let members = haft_json::members::members(content.get()).unwrap_or_default();
    let mut parts = members.iter().filter(|member| member.is("parts"));
    parts.any(|parts| parts.value().get().trim_start_matches('[').trim_start() != "]")
}

fn refused(what: String) -> WireError {
    inexpressible(DIALECT, what)
}

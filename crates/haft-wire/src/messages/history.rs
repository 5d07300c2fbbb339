//! Writes the history as messages: neighbours of one role are merged into one message, results first.

use haft_json::escape::string;
use haft_json::members::Writer;

use super::content::{ContentKinds, block, result, separate, text};
use crate::body::inexpressible;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::foreign::{CallIds, arguments};
use crate::message::{Message, ToolOutput};
use crate::names::ToolNames;
use crate::reply::{Call, Turn, TurnItem};

const DIALECT: Dialect = Dialect::Anthropic;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageRole {
    User,
    Assistant,
    System,
}

#[derive(Debug)]
struct MessagesHistory<'a> {
    out: Vec<u8>,
    /// The role of the open message.
    role: Option<MessageRole>,
    names: &'a ToolNames,
    /// Whether the model accepts notes of the host between the messages.
    has_system: bool,
    ids: CallIds,
    /// Calls without an answer so far.
    open: Vec<MessagesOpenCall<'a>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct MessagesOpenCall<'a> {
    call: &'a Call,
    /// Its id in this request.
    id: String,
    /// Whether it came in this dialect: then an item that the host gives as its answer is of this dialect, too.
    is_own: bool,
}

/// Writes the history as the list of messages.
///
/// # Errors
/// If a call has no answer, or an answer no call: the provider refuses both.
pub(crate) fn write(
    model: &str,
    messages: &[Message],
    names: &ToolNames,
) -> Result<Vec<u8>, WireError> {
    let mut history = MessagesHistory {
        out: vec![b'['],
        role: None,
        names,
        // The provider's page on system messages in a conversation names only this model.
        has_system: model.starts_with("claude-opus-4-8"),
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

impl<'a> MessagesHistory<'a> {
    fn message(&mut self, message: &'a Message) -> Result<(), WireError> {
        if let Message::Results(answers) = message {
            return self.results(answers);
        }
        // The provider merges consecutive turns of the model: the answers to all their calls follow them.
        if !matches!(message, Message::Model(_)) {
            self.all_answered()?;
        }
        match message {
            Message::User(parts) => {
                self.within(MessageRole::User, |out| {
                    for part in parts {
                        block(part, ContentKinds::All, out);
                    }
                });
            }
            Message::Host(note) if self.has_system && self.role == Some(MessageRole::User) => {
                self.within(MessageRole::System, |out| text(note, out));
            }
            Message::Host(note) if note.trim().is_empty() => {}
            Message::Host(note) => {
                let note = format!("<system>{note}</system>");
                self.within(MessageRole::User, |out| text(&note, out));
            }
            Message::Model(turn) if turn.dialect == DIALECT => self.own(turn),
            Message::Model(turn) => self.foreign(turn),
            Message::Results(_) => {}
        }
        Ok(())
    }

    /// Appends blocks to a message of this role; adds no message if there are no blocks.
    fn within(&mut self, role: MessageRole, add: impl FnOnce(&mut Vec<u8>)) {
        let mut blocks = vec![b'['];
        add(&mut blocks);
        let Some(blocks) = blocks.get(1..).filter(|blocks| !blocks.is_empty()) else {
            return;
        };
        if self.role != Some(role) {
            self.close();
            separate(&mut self.out);
            let begin: &[u8] = match role {
                MessageRole::User => br#"{"role":"user","content":["#,
                MessageRole::Assistant => br#"{"role":"assistant","content":["#,
                MessageRole::System => br#"{"role":"system","content":["#,
            };
            self.out.extend_from_slice(begin);
            self.role = Some(role);
        }
        separate(&mut self.out);
        self.out.extend_from_slice(blocks);
    }

    fn close(&mut self) {
        if self.role.take().is_some() {
            self.out.extend_from_slice(b"]}");
        }
    }

    /// Writes a turn of this dialect unchanged.
    fn own(&mut self, turn: &'a Turn) {
        for call in turn.calls() {
            self.ids.note(&call.id);
            self.open.push(MessagesOpenCall {
                call,
                id: call.id.clone(),
                is_own: true,
            });
        }
        let raw = turn.raw.get().trim();
        let blocks = raw.strip_prefix('[').and_then(|raw| raw.strip_suffix(']'));
        let blocks = blocks.unwrap_or(raw).trim();
        self.within(MessageRole::Assistant, |out| {
            out.extend_from_slice(blocks.as_bytes());
        });
    }

    /// Writes the texts and calls of another dialect's turn: its thinking is signed for its own provider only.
    fn foreign(&mut self, turn: &'a Turn) {
        let mut blocks = vec![b'['];
        for item in &turn.items {
            match item {
                TurnItem::Text(words) | TurnItem::Refusal(words) => text(words, &mut blocks),
                TurnItem::Call(call) => {
                    let id = self.ids.unique(&call.id);
                    separate(&mut blocks);
                    let mut object = Writer::begin(&mut blocks);
                    string(object.key("type"), "tool_use");
                    string(object.key("id"), &id);
                    let name = self
                        .names
                        .carried(DIALECT, call.namespace.as_deref(), &call.name);
                    string(object.key("name"), &name);
                    object
                        .key("input")
                        .extend_from_slice(arguments(call).as_bytes());
                    object.end();
                    self.open.push(MessagesOpenCall {
                        call,
                        id,
                        is_own: false,
                    });
                }
                _ => {}
            }
        }
        self.within(MessageRole::Assistant, |out| {
            out.extend_from_slice(&blocks[1..]);
        });
    }

    fn results(&mut self, answers: &[ToolOutput]) -> Result<(), WireError> {
        let mut blocks = vec![b'['];
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
            match answer.item.as_ref().filter(|_| open.is_own) {
                Some(item) => {
                    separate(&mut blocks);
                    blocks.extend_from_slice(item.get().as_bytes());
                }
                None => result(answer, &open.id, self.names, &mut blocks),
            }
        }
        self.within(MessageRole::User, |out| out.extend_from_slice(&blocks[1..]));
        Ok(())
    }

    fn all_answered(&self) -> Result<(), WireError> {
        let Some(MessagesOpenCall { call, .. }) = self.open.first() else {
            return Ok(());
        };
        let (id, name) = (quote(&call.id), quote(&call.name));
        Err(refused(format!(
            "the call `{id}` of `{name}` without its answer: answer every call right behind its turn"
        )))
    }
}

fn refused(what: String) -> WireError {
    inexpressible(DIALECT, what)
}

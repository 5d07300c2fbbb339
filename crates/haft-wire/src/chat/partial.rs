//! `ChatPartialCall`: one call of a message, from its pieces.

use std::borrow::Cow;

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::value::RawValue;

use super::arguments::ChatArguments;
use super::piece::{CallPiece, PieceError};
use crate::loose::{LooseText, Members, owned};
use crate::reply::{Call, CallKind};

/// A partial call.
#[derive(Debug)]
pub(crate) struct ChatPartialCall {
    pub(crate) index: Option<u64>,
    pub(crate) id: String,
    pub(crate) is_freeform: bool,
    /// Empty as long as only its id was received.
    pub(crate) name: String,
    pub(crate) arguments: ChatArguments,
    /// Whether pieces after the first one repeat the name.
    pub(crate) repeats_name: bool,
    /// Whether a later call started at the same index.
    pub(crate) is_closed: bool,
    /// The event in which it was named.
    pub(crate) event: u64,
    /// Other members that the provider sent.
    extra: Vec<(String, Box<RawValue>)>,
}

impl ChatPartialCall {
    pub(crate) fn new(index: Option<u64>, event: u64) -> Self {
        Self {
            index,
            id: String::new(),
            is_freeform: false,
            name: String::new(),
            arguments: ChatArguments::default(),
            repeats_name: false,
            is_closed: false,
            event,
            extra: Vec::new(),
        }
    }

    /// Returns whether more of its arguments is expected.
    pub(crate) fn is_in_progress(&self) -> bool {
        !self.name.is_empty() && !self.is_closed && !self.has_ended()
    }

    /// Returns whether its arguments have ended. The text of a freeform call shows no end.
    pub(crate) fn has_ended(&self) -> bool {
        !self.is_freeform && self.arguments.is_complete()
    }

    /// Adds a name or a piece of one; returns whether it changed.
    ///
    /// As long as there are no arguments, a name that differs is the next piece of it; one that begins with what there is replaces it.
    pub(crate) fn add_name(&mut self, name: &str) -> bool {
        if name.is_empty() || name == self.name {
            self.repeats_name |= !name.is_empty();
            return false;
        }
        if name.starts_with(&self.name) {
            self.name.clear();
        }
        self.name.push_str(name);
        true
    }

    /// Adds a piece of its arguments; returns whether it changed anything.
    pub(crate) fn add_arguments(&mut self, piece: &CallPiece<'_>) -> Result<bool, PieceError> {
        if self.is_freeform {
            self.arguments.add_text(&piece.arguments);
            return Ok(!piece.arguments.is_empty());
        }
        let added = self.arguments.add(&piece.arguments);
        added.map_err(|_| {
            PieceError::unassigned(self.label(), "more arguments after they had ended")
        })
    }

    /// Returns what an error calls it.
    pub(crate) fn label(&self) -> &str {
        if self.id.is_empty() {
            &self.name
        } else {
            &self.id
        }
    }

    /// Keeps members that this crate does not read; the last value counts.
    pub(crate) fn carry(&mut self, members: &Members<'_>) -> Result<(), serde_json::Error> {
        let is_flat = members.get("function").or(members.get("custom")).is_none();
        for (name, value) in &members.0 {
            let is_read = match name.as_ref() {
                "index" | "id" | "type" | "function" | "custom" => true,
                "name" | "arguments" | "input" => is_flat,
                _ => false,
            };
            if is_read || matches!(LooseText::of(value)?, LooseText::None) {
                continue;
            }
            self.extra.retain(|(known, _)| known != name);
            self.extra.push((name.to_string(), owned(value)));
        }
        Ok(())
    }

    /// Returns the call for the host to answer, with the id that its result refers to.
    pub(crate) fn call(&self, id: String) -> Call {
        Call {
            id,
            item: None,
            kind: if self.is_freeform {
                CallKind::Freeform
            } else {
                CallKind::Function
            },
            name: self.name.clone(),
            namespace: None,
            toolset: None,
            caller: None,
            arguments: self.whole_arguments().into_owned(),
        }
    }

    /// Returns the arguments. A function without parameters is often called without any, and some servers send the object as a string
    /// with JSON in it.
    pub(crate) fn whole_arguments(&self) -> Cow<'_, str> {
        let whole = self.arguments.whole();
        if self.is_freeform {
            return Cow::Borrowed(whole);
        }
        if matches!(whole.trim(), "" | "null") {
            return Cow::Borrowed("{}");
        }
        if whole.trim_start().starts_with('"')
            && let Ok(inner) = serde_json::from_str::<String>(whole)
            && is_object(&inner)
        {
            return Cow::Owned(inner);
        }
        Cow::Borrowed(whole)
    }

    /// Writes the call as in a message.
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: &str) {
        let (kind, text) = if self.is_freeform {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        let mut body = Writer::begin(out);
        string(body.key("id"), id);
        string(body.key("type"), kind);
        let mut inner = Writer::begin(body.key(kind));
        string(inner.key("name"), &self.name);
        string(inner.key(text), &self.whole_arguments());
        inner.end();
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        for (name, value) in &self.extra {
            if name.bytes().all(plain) {
                body.key(name).extend_from_slice(value.get().as_bytes());
            }
        }
        body.end();
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

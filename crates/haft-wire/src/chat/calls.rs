//! `ChatCalls`: assembles the calls of one message from their pieces.

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::value::RawValue;

use crate::loose::{LooseText, Members, owned};
use crate::reply::{Call, CallKind};
use crate::stream::Delta;

/// A partial call.
#[derive(Debug)]
struct ChatPartialCall {
    index: Option<u64>,
    id: String,
    kind: CallKind,
    name: String,
    arguments: String,
    /// Other members that the provider sent.
    extra: Vec<(String, Box<RawValue>)>,
}

/// The calls of one message.
#[derive(Debug, Default)]
pub(crate) struct ChatCalls {
    all: Vec<ChatPartialCall>,
    /// Whether the message came in one piece: then each call is a separate one.
    is_whole: bool,
}

impl ChatCalls {
    /// Creates the calls of a message that comes in one piece.
    pub(crate) fn whole() -> Self {
        Self {
            all: Vec::new(),
            is_whole: true,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a piece. The pieces of a call share its index. If a provider gives all calls the same index, or none, a new id starts a new
    /// call, and a piece without an id belongs to the last one.
    pub(crate) fn take(
        &mut self,
        members: &Members<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), serde_json::Error> {
        let index = members.get("index").and_then(|raw| raw.get().parse().ok());
        let id = members.loose("id")?;
        let at = self.place(index, id.text());
        let custom = members
            .get("custom")
            .map(Members::of)
            .transpose()?
            .unwrap_or_default();
        let function = members
            .get("function")
            .map(Members::of)
            .transpose()?
            .unwrap_or_default();
        let is_custom = members.loose("type")?.text() == "custom"
            || (function.0.is_empty() && !custom.0.is_empty());
        let (inner, text) = if is_custom {
            (custom, "input")
        } else {
            (function, "arguments")
        };
        let call = &mut self.all[at];
        if is_custom {
            call.kind = CallKind::Freeform;
        }
        if call.id.is_empty() {
            call.id.push_str(id.text());
        }
        let name = inner.loose("name")?;
        if call.name.is_empty() && !name.text().is_empty() {
            call.name.push_str(name.text());
            deltas.push(Delta::Call {
                index: at,
                name: call.name.clone(),
            });
        }
        let more = inner.loose(text)?;
        if !more.words().is_empty() {
            call.arguments.push_str(more.words());
            deltas.push(Delta::Arguments {
                index: at,
                text: more.words().to_owned(),
            });
        }
        call.carry(members)
    }

    /// Returns the position of the call that a piece belongs to.
    fn place(&mut self, index: Option<u64>, id: &str) -> usize {
        let same = |call: &ChatPartialCall| match index {
            Some(_) => call.index == index,
            None => id.is_empty() || call.id == id,
        };
        let found = self.all.iter().rposition(same).filter(|_| !self.is_whole);
        let is_new =
            |at: &usize| !id.is_empty() && !self.all[*at].id.is_empty() && self.all[*at].id != id;
        if let Some(at) = found.filter(|at| !is_new(at)) {
            return at;
        }
        self.all.push(ChatPartialCall {
            index,
            id: String::new(),
            kind: CallKind::Function,
            name: String::new(),
            arguments: String::new(),
            extra: Vec::new(),
        });
        self.all.len() - 1
    }

    /// Returns the calls for the host to answer. A call without an id gets one from its position, because its result needs one.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        self.all.iter().enumerate().map(|(at, call)| Call {
            id: call.id_at(at),
            item: None,
            kind: call.kind.clone(),
            name: call.name.clone(),
            namespace: None,
            toolset: None,
            caller: None,
            arguments: call.whole_arguments().to_owned(),
        })
    }

    /// Writes the calls as in a message.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, call) in self.all.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            call.write(out, at);
        }
        out.push(b']');
    }
}

impl ChatPartialCall {
    fn id_at(&self, at: usize) -> String {
        if self.id.is_empty() {
            return format!("call-{at}");
        }
        self.id.clone()
    }

    /// Returns the arguments; a function without parameters is often called without any.
    fn whole_arguments(&self) -> &str {
        match self.kind {
            CallKind::Function if self.arguments.is_empty() => "{}",
            _ => &self.arguments,
        }
    }

    /// Keeps members that this crate does not read; the last value counts.
    fn carry(&mut self, members: &Members<'_>) -> Result<(), serde_json::Error> {
        for (name, value) in &members.0 {
            let is_read = matches!(
                name.as_ref(),
                "index" | "id" | "type" | "function" | "custom"
            );
            if is_read || matches!(LooseText::of(value)?, LooseText::None) {
                continue;
            }
            self.extra.retain(|(known, _)| known != name);
            self.extra.push((name.to_string(), owned(value)));
        }
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>, at: usize) {
        let (kind, text) = match self.kind {
            CallKind::Freeform => ("custom", "input"),
            _ => ("function", "arguments"),
        };
        let mut body = Writer::begin(out);
        string(body.key("id"), &self.id_at(at));
        string(body.key("type"), kind);
        let mut inner = Writer::begin(body.key(kind));
        string(inner.key("name"), &self.name);
        string(inner.key(text), self.whole_arguments());
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

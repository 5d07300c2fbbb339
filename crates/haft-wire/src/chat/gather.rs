//! `ChatReplyBuilder`: assembles a Chat message from its pieces; a reply that is not streamed is a single piece.

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chat::calls::ChatCalls;
use crate::chat::piece::PieceError;
use crate::limits::ReplyLimits;
use crate::loose::{LooseText, Members, list};
use crate::reply::TurnItem;
use crate::stream::Delta;

/// A piece of content from a list (Mistral sends thinking this way).
#[derive(Debug)]
enum ChatContentPiece {
    Text(String),
    Thinking(String),
}

/// A partial message.
#[derive(Debug, Default)]
pub(crate) struct ChatReplyBuilder {
    content: Vec<ChatContentPiece>,
    /// Whether the content came as a list, and therefore is sent back as one.
    is_list: bool,
    /// Thinking, under the two names that providers use for it.
    reasoning: String,
    reasoning_content: String,
    refusal: String,
    calls: ChatCalls,
    /// A call in the format before there were tools (`function_call`). Some servers send it beside the same one in `tool_calls`.
    old_call: ChatCalls,
    /// Members that this crate does not read, such as `reasoning_details`, merged from their pieces.
    rest: Vec<(String, Value)>,
}

/// Members whose text is complete in each piece.
const WHOLE: [&str; 12] = [
    "channel",
    "id",
    "index",
    "type",
    "name",
    "format",
    "role",
    "phase",
    "status",
    "url",
    "title",
    "signature",
];

impl ChatReplyBuilder {
    /// Creates a gatherer for a message that comes in one piece.
    pub(crate) fn whole() -> Self {
        Self {
            calls: ChatCalls::whole(),
            ..Self::default()
        }
    }

    /// Adds a piece.
    pub(crate) fn take(
        &mut self,
        members: &Members<'_>,
        limits: ReplyLimits,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), PieceError> {
        let mut thoughts = false;
        for (name, value) in &members.0 {
            match name.as_ref() {
                "role" => {}
                "content" => self.content(value, deltas)?,
                "reasoning" => {
                    let loose = LooseText::of(value)?;
                    self.reasoning.push_str(loose.text());
                    think(&loose, &mut thoughts, deltas);
                }
                "reasoning_content" => {
                    let loose = LooseText::of(value)?;
                    self.reasoning_content.push_str(loose.text());
                    think(&loose, &mut thoughts, deltas);
                }
                "refusal" => {
                    let loose = LooseText::of(value)?;
                    self.refusal.push_str(loose.text());
                    if let Some(text) = loose.some() {
                        deltas.push(Delta::Text(text));
                    }
                }
                "tool_calls" => {
                    if value.get() != "null" {
                        self.calls.take_event(value, limits.calls, deltas)?;
                    }
                }
                "function_call" => self.old_call(value, deltas)?,
                name => self.rest(name, value)?,
            }
        }
        Ok(())
    }

    /// Adds a piece of a call in the old format, which has neither id nor index.
    fn old_call(&mut self, value: &RawValue, deltas: &mut Vec<Delta>) -> Result<(), PieceError> {
        let members = Members::of(value)?;
        let is_blank = |name| {
            members
                .loose(name)
                .is_ok_and(|loose| loose.words().is_empty())
        };
        if is_blank("name") && is_blank("arguments") {
            return Ok(());
        }
        let mut own = Vec::new();
        self.old_call.take_event(value, 1, &mut own)?;
        if self.calls.is_empty() {
            deltas.append(&mut own);
        }
        Ok(())
    }

    /// Adds a whole message that came in a stream: everything if nothing else came, else the same calls again.
    pub(crate) fn take_message(
        &mut self,
        members: &Members<'_>,
        limits: ReplyLimits,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), PieceError> {
        if self.is_empty() {
            return self.take(members, limits, deltas);
        }
        let mut again = Self::whole();
        again.take(members, limits, &mut Vec::new())?;
        self.calls().check_repeats(again.calls())
    }

    fn is_empty(&self) -> bool {
        let texts = [&self.reasoning, &self.reasoning_content, &self.refusal];
        self.content.is_empty() && !self.has_calls() && texts.iter().all(|text| text.is_empty())
    }

    /// Fails if a call is incomplete in a way that leaves open what was called.
    pub(crate) fn check(&self) -> Result<(), PieceError> {
        self.calls.check()?;
        self.old_call.check()?;
        if self.calls.is_empty() {
            return Ok(());
        }
        self.calls.check_repeats(&self.old_call)
    }

    /// Returns the calls, in whichever format they came.
    fn calls(&self) -> &ChatCalls {
        if self.calls.is_empty() {
            return &self.old_call;
        }
        &self.calls
    }

    /// Returns whether the calls cannot go back as they came: results need an id, and one of their own.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.calls.is_empty() && !self.old_call.is_empty() || self.calls.shares_ids()
    }

    fn content(&mut self, value: &RawValue, deltas: &mut Vec<Delta>) -> Result<(), PieceError> {
        match LooseText::of(value)? {
            LooseText::None => {}
            LooseText::Text(text) => self.text(&text, deltas),
            LooseText::Other(value) => {
                self.is_list = true;
                for part in list(value)? {
                    self.part(part, deltas)?;
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str, deltas: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        match self.content.last_mut() {
            Some(ChatContentPiece::Text(last)) => last.push_str(text),
            _ => self.content.push(ChatContentPiece::Text(text.to_owned())),
        }
        deltas.push(Delta::Text(text.to_owned()));
    }

    /// Adds a part of a list: text, or thinking, which is itself a list of texts.
    fn part(&mut self, part: &RawValue, deltas: &mut Vec<Delta>) -> Result<(), PieceError> {
        let members = Members::of(part)?;
        if let Some(thoughts) = members.get("thinking") {
            let mut text = LooseText::of(thoughts)?.text().to_owned();
            for one in list(thoughts)? {
                text.push_str(Members::of(one)?.loose("text")?.text());
            }
            match self.content.last_mut() {
                Some(ChatContentPiece::Thinking(last)) => last.push_str(&text),
                _ => self.content.push(ChatContentPiece::Thinking(text.clone())),
            }
            deltas.push(Delta::Thinking(text));
            return Ok(());
        }
        self.text(members.loose("text")?.text(), deltas);
        Ok(())
    }

    fn rest(&mut self, name: &str, value: &RawValue) -> Result<(), PieceError> {
        let value: Value = serde_json::from_str(value.get())?;
        if value.is_null() {
            return Ok(());
        }
        match self.rest.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => merge(name, known, value),
            None => self.rest.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// Returns whether the message contains a call.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls().is_empty()
    }

    /// Returns the message's items in the model's order: thinking, tools that the provider ran, text, calls.
    pub(crate) fn items(&self) -> Vec<TurnItem> {
        let mut items = Vec::new();
        let thoughts = [&self.reasoning_content, &self.reasoning];
        if let Some(text) = thoughts.into_iter().find(|text| !text.is_empty()) {
            items.push(TurnItem::Thinking(text.clone()));
        }
        for (name, value) in &self.rest {
            items.extend(carried(name, value));
        }
        for piece in &self.content {
            items.push(match piece {
                ChatContentPiece::Text(text) => TurnItem::Text(text.clone()),
                ChatContentPiece::Thinking(text) => TurnItem::Thinking(text.clone()),
            });
        }
        if !self.refusal.is_empty() {
            items.push(TurnItem::Refusal(self.refusal.clone()));
        }
        items.extend(self.calls().calls().map(TurnItem::Call));
        items
    }

    /// Returns the message as if it had come in one piece.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Writer::begin(&mut out);
        string(body.key("role"), "assistant");
        let content = body.key("content");
        match &*self.content {
            pieces if self.is_list => list_of(content, pieces),
            [ChatContentPiece::Text(text)] => string(content, text),
            [] if !self.has_calls() => string(content, ""),
            _ => content.extend_from_slice(b"null"),
        }
        let texts = [
            ("reasoning", &self.reasoning),
            ("reasoning_content", &self.reasoning_content),
            ("refusal", &self.refusal),
        ];
        for (name, text) in texts {
            if !text.is_empty() {
                string(body.key(name), text);
            }
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        for (name, value) in &self.rest {
            if name.bytes().all(plain) {
                body.key(name)
                    .extend_from_slice(value.to_string().as_bytes());
            }
        }
        if self.has_calls() {
            self.calls().write(body.key("tool_calls"));
        }
        body.end();
        out
    }
}

fn think(loose: &LooseText<'_>, thoughts: &mut bool, deltas: &mut Vec<Delta>) {
    if let (false, Some(text)) = (*thoughts, loose.some()) {
        *thoughts = true;
        deltas.push(Delta::Thinking(text));
    }
}

fn list_of(out: &mut Vec<u8>, pieces: &[ChatContentPiece]) {
    out.push(b'[');
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut member = Writer::begin(out);
        match piece {
            ChatContentPiece::Text(text) => {
                string(member.key("type"), "text");
                string(member.key("text"), text);
            }
            ChatContentPiece::Thinking(text) => {
                string(member.key("type"), "thinking");
                let inner = member.key("thinking");
                inner.push(b'[');
                list_of_text(inner, text);
                inner.push(b']');
            }
        }
        member.end();
    }
    out.push(b']');
}

fn list_of_text(out: &mut Vec<u8>, text: &str) {
    let mut member = Writer::begin(out);
    string(member.key("type"), "text");
    string(member.key("text"), text);
    member.end();
}

/// Returns the items in a member that is kept unread.
fn carried(name: &str, value: &Value) -> Vec<TurnItem> {
    let raw = |value: &Value| RawValue::from_string(value.to_string()).ok();
    let word = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
    };
    match name {
        "executed_tools" => {
            let all = value.as_array().into_iter().flatten();
            let hosted = |one: &Value| {
                Some(TurnItem::Hosted {
                    kind: word(one, "type").unwrap_or_else(|| "executed_tool".to_owned()),
                    name: word(one, "name"),
                    raw: raw(one)?,
                })
            };
            all.filter_map(hosted).collect()
        }
        "audio" if word(value, "id").is_some() => unknown(name, raw(value)),
        _ => Vec::new(),
    }
}

fn unknown(kind: &str, raw: Option<Box<RawValue>>) -> Vec<TurnItem> {
    raw.map(|raw| TurnItem::Unknown {
        kind: kind.to_owned(),
        raw,
    })
    .into_iter()
    .collect()
}

/// Merges more of a member into what there is: strings and lists grow; list elements are matched by their index.
fn merge(name: &str, known: &mut Value, more: Value) {
    match (known, more) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(more)) if !WHOLE.contains(&name) => {
            known.push_str(&more);
        }
        (Value::Array(known), Value::Array(more)) => {
            for one in more {
                let index = one.get("index").cloned();
                let same =
                    |known: &&mut Value| index.is_some() && known.get("index") == index.as_ref();
                match known.iter_mut().find(same) {
                    Some(known) => merge("", known, one),
                    None => known.push(one),
                }
            }
        }
        (Value::Object(known), Value::Object(more)) => {
            for (name, more) in more {
                match known.get_mut(&name) {
                    Some(known) => merge(&name, known, more),
                    None => {
                        known.insert(name, more);
                    }
                }
            }
        }
        (known, more) => *known = more,
    }
}

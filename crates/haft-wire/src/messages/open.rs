//! An open block of a stream: its start, and the pieces added to it.

use haft_json::escape::string;
use haft_json::members::{Member, Writer, members};
use serde_json::value::RawValue;

use super::block::{MessagesBlock, item};
use crate::foreign::object;
use crate::reply::TurnItem;

/// A block that has started.
#[derive(Debug)]
pub(crate) struct PartialBlock {
    /// The block as it started.
    start: Box<RawValue>,
    /// Texts that arrive in pieces, by the name of their member.
    texts: Vec<(String, String)>,
    /// Arguments that arrive in pieces.
    input: String,
    /// Citations, separated by commas.
    citations: Vec<u8>,
    /// Its position among the calls of the turn, if it is one.
    pub(crate) call: Option<usize>,
    /// Whether its end was received.
    pub(crate) is_done: bool,
}

impl PartialBlock {
    pub(crate) fn new(start: &RawValue, call: Option<usize>) -> Self {
        Self {
            start: start.to_owned(),
            texts: Vec::new(),
            input: String::new(),
            citations: Vec::new(),
            call,
            is_done: false,
        }
    }

    /// Returns whether it started with these bytes, and nothing was added yet.
    pub(crate) fn is_fresh(&self, start: &RawValue) -> bool {
        let nothing = self.texts.is_empty() && self.input.is_empty() && self.citations.is_empty();
        nothing && !self.is_done && self.start.get() == start.get()
    }

    /// Appends to the text of a member.
    pub(crate) fn add_text(&mut self, member: &str, piece: &str) {
        if let Some((_, text)) = self.texts.iter_mut().find(|(name, _)| name == member) {
            return text.push_str(piece);
        }
        let all = members(self.start.get()).unwrap_or_default();
        let first = all.iter().find(|one| one.is(member));
        let mut text: String = first
            .and_then(|first| serde_json::from_str(first.value().get()).ok())
            .unwrap_or_default();
        text.push_str(piece);
        self.texts.push((member.to_owned(), text));
    }

    pub(crate) fn add_input(&mut self, piece: &str) {
        self.input.push_str(piece);
    }

    pub(crate) fn add_citation(&mut self, citation: &RawValue) {
        if !self.citations.is_empty() {
            self.citations.push(b',');
        }
        self.citations.extend_from_slice(citation.get().as_bytes());
    }

    /// Writes the block as if it had arrived complete, and returns it as an item; `None` for a blank text.
    ///
    /// # Errors
    /// If it did not start as a block.
    pub(crate) fn finish(self, out: &mut Vec<u8>) -> Result<Option<TurnItem>, String> {
        let raw = String::from_utf8(self.json()).map_err(|error| error.to_string())?;
        let raw = RawValue::from_string(raw).map_err(|error| error.to_string())?;
        let block: MessagesBlock<'_> =
            serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        if block.is_blank() {
            return Ok(None);
        }
        if !matches!(out.last(), Some(b'[')) {
            out.push(b',');
        }
        out.extend_from_slice(raw.get().as_bytes());
        let arguments = (!self.input.is_empty()).then_some(self.input);
        Ok(Some(item(block, &raw, arguments)?))
    }

    fn json(&self) -> Vec<u8> {
        let start = members(self.start.get()).unwrap_or_default();
        let texts: usize = self
            .texts
            .iter()
            .map(|(_, text)| text.len() + text.len() / 16)
            .sum();
        let mut out = Vec::with_capacity(
            self.start.get().len() + texts + self.input.len() + self.citations.len(),
        );
        let mut object = Writer::begin(&mut out);
        for member in &start {
            let text = self.texts.iter().find(|(name, _)| member.is(name));
            if let Some((name, text)) = text {
                string(object.key(name), text);
            } else if member.is("input") && !self.input.is_empty() {
                object
                    .key("input")
                    .extend_from_slice(self::object(&self.input).as_bytes());
            } else if member.is("citations") && !self.citations.is_empty() {
                self.cited(Some(*member), object.key("citations"));
            } else {
                object.copy(*member);
            }
        }
        let is_new = |name: &str| !start.iter().any(|member| member.is(name));
        for (name, text) in self.texts.iter().filter(|(name, _)| is_new(name)) {
            string(object.key(name), text);
        }
        if is_new("citations") && !self.citations.is_empty() {
            self.cited(None, object.key("citations"));
        }
        if is_new("input") && !self.input.is_empty() {
            object
                .key("input")
                .extend_from_slice(self::object(&self.input).as_bytes());
        }
        object.end();
        out
    }

    /// Writes the citations that it started with, and those added.
    fn cited(&self, first: Option<Member<'_>>, out: &mut Vec<u8>) {
        let first = first.map_or("", |first| first.value().get());
        let first = first
            .strip_prefix('[')
            .and_then(|first| first.strip_suffix(']'));
        let first = first.unwrap_or_default().trim();
        out.push(b'[');
        out.extend_from_slice(first.as_bytes());
        if !first.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(&self.citations);
        out.push(b']');
    }
}

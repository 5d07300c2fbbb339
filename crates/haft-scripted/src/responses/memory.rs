//! `ReplyStore`: the server's answers, which later requests refer to instead of repeating them.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use crate::fields::{list, member, text};
use crate::random::digest;
use crate::refusal::ProviderError;

/// Maximum number of replies remembered; older ones are no longer found.
const REPLIES: usize = 256;
/// Maximum number of bytes of their items, including those of the history before them.
const BYTES: usize = 64 << 20;

/// The replies of a server.
#[derive(Debug, Default)]
pub(crate) struct ReplyStore {
    replies: HashMap<String, StoredReply>,
    order: VecDeque<String>,
    /// The bytes of all replies.
    bytes: usize,
    /// The reply that an item belongs to, by the item's id.
    items: HashMap<String, String>,
}

/// A remembered reply.
#[derive(Debug)]
struct StoredReply {
    /// The history before it.
    before: Vec<Value>,
    /// Its own items.
    output: Vec<Value>,
    /// Whether the request allowed the provider to store it.
    stored: bool,
    /// The bytes of both.
    bytes: usize,
}

impl ReplyStore {
    /// Remembers a reply.
    pub(crate) fn add(&mut self, id: String, before: Vec<Value>, output: Vec<Value>, stored: bool) {
        for item in output.iter().filter_map(|item| text(item, "id")) {
            self.items.insert(item.to_owned(), id.clone());
        }
        let before = if stored { before } else { Vec::new() };
        let items = before.iter().chain(&output);
        let bytes = items.map(|item| item.to_string().len()).sum();
        self.bytes += bytes;
        self.order.push_back(id.clone());
        let record = StoredReply {
            before,
            output,
            stored,
            bytes,
        };
        self.replies.insert(id, record);
        while self.order.len() > REPLIES || self.bytes > BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            let forgotten = self.replies.remove(&oldest);
            self.bytes -= forgotten.map_or(0, |record| record.bytes);
            self.items.retain(|_, reply| *reply != oldest);
        }
    }

    /// Returns all items of a request: those of the response that it continues, and its own with references resolved.
    pub(super) fn resolve(&self, body: &Value) -> Result<Vec<Value>, ProviderError> {
        let mut items = Vec::new();
        if let Some(id) = member(body, "previous_response_id").and_then(Value::as_str) {
            let Some(previous) = self.replies.get(id).filter(|reply| reply.stored) else {
                let words = format!("Previous response with id '{id}' not found.");
                return Err(ProviderError::invalid(words)
                    .at("previous_response_id")
                    .code("previous_response_not_found"));
            };
            items.extend(previous.before.iter().chain(&previous.output).cloned());
        }
        match &body["input"] {
            Value::String(text) => items.push(json!({"role": "user", "content": text})),
            _ => {
                for item in list(body, "input") {
                    items.push(self.dereference(item)?);
                }
            }
        }
        Ok(items)
    }

    fn dereference(&self, item: &Value) -> Result<Value, ProviderError> {
        if text(item, "type") != Some("item_reference") {
            return Ok(item.clone());
        }
        let id = text(item, "id").unwrap_or_default();
        let found = self.item(id).filter(|(reply, _)| reply.stored);
        found
            .map(|(_, item)| item.clone())
            .ok_or_else(|| missing(id))
    }

    fn item(&self, id: &str) -> Option<(&StoredReply, &Value)> {
        let reply = self.replies.get(self.items.get(id)?)?;
        let item = reply
            .output
            .iter()
            .find(|item| text(item, "id") == Some(id))?;
        Some((reply, item))
    }
}

fn missing(id: &str) -> ProviderError {
    let words = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
    );
    ProviderError::new(404, words).at("input")
}

/// Returns the encrypted content of a reasoning item.
pub(super) fn encrypt(thought: &str) -> String {
    format!("scripted{}", digest(thought))
}

/// Checks that an item of this server comes back correctly: reasoning complete and followed by what it led to, and what reasoning
/// led to preceded by that reasoning.
pub(super) fn check_item(
    memory: &ReplyStore,
    items: &[Value],
    at: usize,
) -> Result<(), ProviderError> {
    let item = &items[at];
    let Some(id) = text(item, "id") else {
        return Ok(());
    };
    let Some((reply, made)) = memory.item(id) else {
        return Ok(());
    };
    if text(item, "type") == Some("reasoning") {
        let returned = member(item, "encrypted_content");
        if returned.is_none() && !reply.stored {
            return Err(missing(id));
        }
        if returned.is_some() && member(made, "encrypted_content") != returned {
            let words = format!("The encrypted content for item {id} could not be verified.");
            return Err(ProviderError::invalid(words).code("invalid_encrypted_content"));
        }
        let next = items.get(at + 1).and_then(|next| text(next, "id"));
        if next.is_none_or(|next| memory.items.get(next) != memory.items.get(id)) {
            let words = format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            return Err(ProviderError::invalid(words).at("input"));
        }
        return Ok(());
    }
    let place = reply
        .output
        .iter()
        .position(|item| text(item, "id") == Some(id));
    let led = place
        .and_then(|place| place.checked_sub(1))
        .map(|place| &reply.output[place]);
    let Some(thought) = led.filter(|item| text(item, "type") == Some("reasoning")) else {
        return Ok(());
    };
    let before = at
        .checked_sub(1)
        .and_then(|before| text(&items[before], "id"));
    if before == text(thought, "id") {
        return Ok(());
    }
    let kind = text(item, "type").unwrap_or_default();
    let words = format!(
        "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{}'.",
        text(thought, "id").unwrap_or_default()
    );
    Err(ProviderError::invalid(words).at("input"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_replies_are_forgotten_by_number_and_by_bytes() {
        let item =
            |id: String, text: &str| vec![json!({"id": id, "type": "message", "content": text})];
        let continues = |memory: &ReplyStore, number: usize| {
            let body = json!({"previous_response_id": format!("r{number}"), "input": "hi"});
            memory.resolve(&body).is_ok()
        };
        let mut memory = ReplyStore::default();
        for number in 0..=REPLIES {
            memory.add(
                format!("r{number}"),
                Vec::new(),
                item(format!("i{number}"), ""),
                true,
            );
        }
        assert!(!continues(&memory, 0) && continues(&memory, 1));
        assert_eq!(
            (memory.replies.len(), memory.items.len()),
            (REPLIES, REPLIES)
        );
        let large = "x".repeat(BYTES / 2);
        for number in 1000..1003 {
            memory.add(
                format!("r{number}"),
                Vec::new(),
                item(format!("i{number}"), &large),
                true,
            );
        }
        assert!(!continues(&memory, REPLIES) && !continues(&memory, 1001));
        assert!(continues(&memory, 1002) && memory.bytes <= BYTES);
    }
}

//! Reads a complete reply; and the code shared with streamed ones: usage, stop reason, errors.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{Block, item};
use crate::borrowed::Text;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::limits::Limits;
use crate::reply::{Item, Reply, Stop, Turn, Usage};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
    #[serde(default)]
    usage: Tokens,
    #[serde(borrow, default)]
    error: Option<Fault<'a>>,
}

/// An error reported by the provider.
#[derive(Debug, Deserialize)]
pub(crate) struct Fault<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
}

impl From<Fault<'_>> for WireError {
    fn from(fault: Fault<'_>) -> Self {
        let text = |text: Option<Text<'_>>| text.map(|text| quote(&text.0));
        Self::Provider {
            kind: text(fault.kind).unwrap_or_else(|| "error".to_owned()),
            message: text(fault.message).unwrap_or_default(),
        }
    }
}

/// Token counts, in the provider's format. In a stream a later count replaces the members that it contains.
#[expect(clippy::struct_field_names, reason = "the provider's names")]
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<Details>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Option<u64>,
}

impl Tokens {
    /// Merges a later count.
    pub(crate) fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = later
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = later
            .cache_read_input_tokens
            .or(self.cache_read_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    pub(crate) fn usage(self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or_default();
        let written = self.cache_creation_input_tokens.unwrap_or_default();
        let fresh = self.input_tokens.unwrap_or_default();
        Usage {
            input: fresh.saturating_add(cached).saturating_add(written),
            cached,
            output: self.output_tokens.unwrap_or_default(),
            thinking: self
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or_default(),
        }
    }
}

/// Returns why the model stopped.
pub(crate) fn stop(word: Option<&str>, items: &[Item]) -> Stop {
    match word {
        Some("end_turn" | "stop_sequence") => Stop::End,
        Some("tool_use") => Stop::Calls,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("refusal") => Stop::Filter,
        Some("pause_turn") => Stop::Pause,
        Some(word) => Stop::Other(word.to_owned()),
        None if items.iter().any(|item| matches!(item, Item::Call(_))) => Stop::Calls,
        None => Stop::End,
    }
}

/// Returns the provider's explanation of a refusal.
pub(crate) fn refusal(details: Option<&RawValue>) -> Option<Item> {
    #[derive(Deserialize)]
    struct Details {
        explanation: Option<String>,
    }
    let details: Details = serde_json::from_str(details?.get()).ok()?;
    details.explanation.map(Item::Refusal)
}

/// Reads a complete reply.
///
/// # Errors
/// If it is not in this dialect's format, contains more calls than allowed, or is an error of the provider.
pub(crate) fn read(body: &[u8], limits: Limits) -> Result<Reply, WireError> {
    let reply: Body<'_> = serde_json::from_slice(body)
        .map_err(|error| WireError::malformed(Dialect::Anthropic, "a reply", error, body))?;
    if let Some(fault) = reply.error {
        return Err(fault.into());
    }
    let content = reply.content.ok_or_else(|| {
        WireError::malformed(Dialect::Anthropic, "a reply", "it has no `content`", body)
    })?;
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get())
        .map_err(|error| WireError::malformed(Dialect::Anthropic, "`content`", error, body))?;
    let mut items = Vec::with_capacity(blocks.len());
    let mut kept = Vec::with_capacity(blocks.len());
    let mut calls = 0;
    for raw in &blocks {
        let malformed = |reason: &dyn std::fmt::Display| {
            WireError::malformed(Dialect::Anthropic, "a block", reason, raw.get().as_bytes())
        };
        let block: Block<'_> =
            serde_json::from_str(raw.get()).map_err(|error| malformed(&error))?;
        calls += usize::from(block.is_call());
        if block.is_blank() {
            continue;
        }
        kept.push(raw.get());
        items.push(item(block, raw, None).map_err(|reason| malformed(&reason))?);
    }
    if calls > limits.calls {
        return Err(WireError::TooManyCalls(limits.calls));
    }
    let raw = if kept.len() == blocks.len() {
        content.to_owned()
    } else {
        let text = format!("[{}]", kept.join(","));
        RawValue::from_string(text)
            .map_err(|error| WireError::malformed(Dialect::Anthropic, "`content`", error, body))?
    };
    let stop = stop(
        reply.stop_reason.as_ref().map(|word| word.0.as_ref()),
        &items,
    );
    items.extend(refusal(reply.stop_details));
    Ok(Reply {
        turn: Turn {
            dialect: Dialect::Anthropic,
            items,
            raw,
        },
        stop,
        usage: reply.usage.usage(),
        id: Text::owned(reply.id),
        model: Text::owned(reply.model),
    })
}

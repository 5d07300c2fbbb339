//! Reads a complete reply; and the code shared with streamed ones: usage, stop reason, errors.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{MessagesBlock, item};
use crate::borrowed::BorrowedText;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::limits::ReplyLimits;
use crate::reply::{Reply, StopReason, Turn, TurnItem, Usage};

#[derive(Deserialize)]
struct MessagesBody<'a> {
    #[serde(borrow, default)]
    id: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    model: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
    #[serde(default)]
    usage: MessagesUsage,
    #[serde(borrow, default)]
    error: Option<MessagesErrorObject<'a>>,
}

/// An error reported by the provider.
#[derive(Debug, Deserialize)]
pub(crate) struct MessagesErrorObject<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    message: Option<BorrowedText<'a>>,
}

impl From<MessagesErrorObject<'_>> for WireError {
    fn from(fault: MessagesErrorObject<'_>) -> Self {
        let text = |text: Option<BorrowedText<'_>>| text.map(|text| quote(&text.0));
        Self::Provider {
            kind: text(fault.kind).unwrap_or_else(|| "error".to_owned()),
            message: text(fault.message).unwrap_or_default(),
        }
    }
}

/// Token counts, in the provider's format. In a stream a later count replaces the members that it contains.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct MessagesUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputTokenDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct OutputTokenDetails {
    thinking_tokens: Option<u64>,
}

impl MessagesUsage {
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
pub(crate) fn stop(word: Option<&str>, items: &[TurnItem]) -> StopReason {
    match word {
        Some("end_turn" | "stop_sequence") => StopReason::End,
        Some("tool_use") => StopReason::Calls,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("refusal") => StopReason::Filter,
        Some("pause_turn") => StopReason::Pause,
        Some(word) => StopReason::Other(word.to_owned()),
        None if items.iter().any(|item| matches!(item, TurnItem::Call(_))) => StopReason::Calls,
        None => StopReason::End,
    }
}

/// Returns the provider's explanation of a refusal.
pub(crate) fn refusal(details: Option<&RawValue>) -> Option<TurnItem> {
    #[derive(Deserialize)]
    struct StopDetails {
        explanation: Option<String>,
    }
    let details: StopDetails = serde_json::from_str(details?.get()).ok()?;
    details.explanation.map(TurnItem::Refusal)
}

/// Reads a complete reply.
///
/// # Errors
/// If it is not in this dialect's format, contains more calls than allowed, or is an error of the provider.
pub(crate) fn read(body: &[u8], limits: ReplyLimits) -> Result<Reply, WireError> {
    let reply: MessagesBody<'_> = serde_json::from_slice(body)
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
        let block: MessagesBlock<'_> =
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
        id: BorrowedText::owned(reply.id),
        model: BorrowedText::owned(reply.model),
    })
}

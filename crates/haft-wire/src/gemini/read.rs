//! Reads a complete reply; and the code shared with streamed ones.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::parts::PartCollector;
use crate::borrowed::BorrowedText;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::limits::ReplyLimits;
use crate::reply::{Reply, StopReason, Turn, TurnItem, Usage};

/// A reply, or one event of a stream: both have the same format.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeminiChunk<'a> {
    #[serde(borrow, default)]
    pub(crate) candidates: Option<Vec<GeminiCandidate<'a>>>,
    #[serde(default)]
    pub(crate) usage_metadata: Option<GeminiUsage>,
    #[serde(borrow, default)]
    pub(crate) model_version: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) response_id: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    pub(crate) error: Option<GeminiErrorObject<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeminiCandidate<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Option<BorrowedText<'a>>,
    #[serde(default)]
    pub(crate) index: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GeminiContent<'a> {
    #[serde(borrow, default)]
    role: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) parts: Option<Vec<&'a RawValue>>,
}

/// The reason why a prompt was refused.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Feedback<'a> {
    #[serde(borrow, default)]
    pub(crate) block_reason: Option<BorrowedText<'a>>,
}

/// An error reported by the provider.
#[derive(Debug, Deserialize)]
pub(crate) struct GeminiErrorObject<'a> {
    #[serde(default)]
    code: Option<i64>,
    #[serde(borrow, default)]
    message: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    status: Option<BorrowedText<'a>>,
}

impl From<GeminiErrorObject<'_>> for WireError {
    fn from(fault: GeminiErrorObject<'_>) -> Self {
        let code = || {
            fault
                .code
                .map_or_else(|| "error".to_owned(), |code| code.to_string())
        };
        Self::Provider {
            kind: fault.status.map_or_else(code, |status| quote(&status.0)),
            message: fault
                .message
                .map(|message| quote(&message.0))
                .unwrap_or_default(),
        }
    }
}

/// Token counts, in the provider's format.
#[expect(clippy::struct_field_names, reason = "the provider's names")]
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct GeminiUsage {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl GeminiUsage {
    pub(crate) fn usage(self) -> Usage {
        let prompt = self.prompt_token_count.unwrap_or_default();
        let thinking = self.thoughts_token_count.unwrap_or_default();
        Usage {
            input: prompt.saturating_add(self.tool_use_prompt_token_count.unwrap_or_default()),
            cached: self.cached_content_token_count.unwrap_or_default(),
            output: self
                .candidates_token_count
                .unwrap_or_default()
                .saturating_add(thinking),
            thinking,
        }
    }
}

/// Returns why the model stopped. A refused prompt has no other reason than that of the refusal.
pub(crate) fn stop(word: Option<&str>, items: &[TurnItem]) -> StopReason {
    match word {
        Some("STOP") | None if items.iter().any(|item| matches!(item, TurnItem::Call(_))) => {
            StopReason::Calls
        }
        Some("STOP") | None => StopReason::End,
        Some("MAX_TOKENS") => StopReason::Length,
        Some(
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "MODEL_ARMOR"
            | "JAILBREAK",
        ) => StopReason::Filter,
        Some(word) => StopReason::Other(word.to_owned()),
    }
}

/// Reads a complete reply.
///
/// # Errors
/// If it is not in this dialect's format, contains more calls than allowed, or is an error of the provider.
pub(crate) fn read(body: &[u8], limits: ReplyLimits) -> Result<Reply, WireError> {
    let chunk: GeminiChunk<'_> = serde_json::from_slice(body)
        .map_err(|error| WireError::malformed(Dialect::Gemini, "a reply", error, body))?;
    if let Some(fault) = chunk.error {
        return Err(fault.into());
    }
    let blocked = chunk
        .prompt_feedback
        .and_then(|feedback| feedback.block_reason);
    let first = chunk.candidates.and_then(|all| all.into_iter().next());
    if first.is_none() && blocked.is_none() {
        return Err(WireError::malformed(
            Dialect::Gemini,
            "a reply",
            "it has no `candidates`",
            body,
        ));
    }
    let content = first.as_ref().and_then(|first| first.content);
    let mut parts = PartCollector::new(limits.calls);
    let mut has_role = false;
    if let Some(content) = content {
        let content: GeminiContent<'_> = serde_json::from_str(content.get())
            .map_err(|error| WireError::malformed(Dialect::Gemini, "`content`", error, body))?;
        has_role = content.role.is_some() && content.parts.is_some();
        for part in content.parts.into_iter().flatten() {
            let pushed = parts.push(part, &mut Vec::new());
            pushed.map_err(|fault| fault.error(limits.calls, part.get()))?;
        }
    }
    let word = first.and_then(|first| first.finish_reason);
    let is_cut = word.as_ref().is_some_and(|word| word.0 == "MAX_TOKENS");
    let finished = parts.finish(is_cut);
    let (items, joined) = finished.map_err(|fault| fault.error(limits.calls, ""))?;
    let raw = match content.filter(|_| has_role) {
        Some(content) => content.to_owned(),
        None => message(&joined)?,
    };
    let stop = match (&word, blocked) {
        (None, Some(_)) => StopReason::Filter,
        _ => stop(word.as_ref().map(|word| word.0.as_ref()), &items),
    };
    Ok(Reply {
        turn: Turn {
            dialect: Dialect::Gemini,
            items,
            raw,
        },
        stop,
        usage: chunk.usage_metadata.unwrap_or_default().usage(),
        id: BorrowedText::owned(chunk.response_id),
        model: BorrowedText::owned(chunk.model_version),
    })
}

/// Builds the model's message from its parts.
pub(crate) fn message(parts: &str) -> Result<Box<RawValue>, WireError> {
    let text = format!("{{\"parts\":[{parts}],\"role\":\"model\"}}");
    RawValue::from_string(text)
        .map_err(|error| WireError::malformed(Dialect::Gemini, "a reply", error, parts.as_bytes()))
}

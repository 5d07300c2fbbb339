//! Reads a complete reply; and the code shared with streamed ones.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::parts::Parts;
use crate::borrowed::Text;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::limits::Limits;
use crate::reply::{Item, Reply, Stop, Turn, Usage};

/// A reply, or one event of a stream: both have the same format.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default)]
    pub(crate) usage_metadata: Option<Tokens>,
    #[serde(borrow, default)]
    pub(crate) model_version: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) response_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    pub(crate) error: Option<Fault<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Candidate<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) index: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Content<'a> {
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) parts: Option<Vec<&'a RawValue>>,
}

/// The reason why a prompt was refused.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Feedback<'a> {
    #[serde(borrow, default)]
    pub(crate) block_reason: Option<Text<'a>>,
}

/// An error reported by the provider.
#[derive(Debug, Deserialize)]
pub(crate) struct Fault<'a> {
    #[serde(default)]
    code: Option<i64>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
}

impl From<Fault<'_>> for WireError {
    fn from(fault: Fault<'_>) -> Self {
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
pub(crate) struct Tokens {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Tokens {
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
pub(crate) fn stop(word: Option<&str>, items: &[Item]) -> Stop {
    match word {
        Some("STOP") | None if items.iter().any(|item| matches!(item, Item::Call(_))) => {
            Stop::Calls
        }
        Some("STOP") | None => Stop::End,
        Some("MAX_TOKENS") => Stop::Length,
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
        ) => Stop::Filter,
        Some(word) => Stop::Other(word.to_owned()),
    }
}

/// Reads a complete reply.
///
/// # Errors
/// If it is not in this dialect's format, contains more calls than allowed, or is an error of the provider.
pub(crate) fn read(body: &[u8], limits: Limits) -> Result<Reply, WireError> {
    let chunk: Chunk<'_> = serde_json::from_slice(body)
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
    let mut parts = Parts::new(limits.calls);
    let mut has_role = false;
    if let Some(content) = content {
        let content: Content<'_> = serde_json::from_str(content.get())
            .map_err(|error| WireError::malformed(Dialect::Gemini, "`content`", error, body))?;
        has_role = content.role.is_some() && content.parts.is_some();
        for part in content.parts.into_iter().flatten() {
            let pushed = parts.push(part, &mut Vec::new());
            pushed.map_err(|fault| fault.error(limits.calls, part.get()))?;
        }
    }
    let (items, joined) = parts.finish();
    let raw = match content.filter(|_| has_role) {
        Some(content) => content.to_owned(),
        None => message(&joined)?,
    };
    let word = first.and_then(|first| first.finish_reason);
    let stop = match (&word, blocked) {
        (None, Some(_)) => Stop::Filter,
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
        id: Text::owned(chunk.response_id),
        model: Text::owned(chunk.model_version),
    })
}

/// Builds the model's message from its parts.
pub(crate) fn message(parts: &str) -> Result<Box<RawValue>, WireError> {
    let text = format!("{{\"parts\":[{parts}],\"role\":\"model\"}}");
    RawValue::from_string(text)
        .map_err(|error| WireError::malformed(Dialect::Gemini, "a reply", error, parts.as_bytes()))
}

//! Replies of Chat, complete and streamed.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::gather::ChatReplyBuilder;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::events::SseParser;
use crate::fault::StreamError;
use crate::limits::ReplyLimits;
use crate::loose::{LooseText, Members, malformed, owned, reported, utf8};
use crate::reply::{Reply, StopReason, Turn, Usage};
use crate::stream::Delta;

const CHAT: Dialect = Dialect::OpenAiChat;

/// A reply, or an event of one: they differ only in `message` and `delta`.
#[derive(Debug, Deserialize)]
struct ChatChunk<'a> {
    #[serde(borrow, default)]
    id: LooseText<'a>,
    #[serde(borrow, default)]
    model: LooseText<'a>,
    #[serde(borrow, default)]
    choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<Members<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    /// If a provider answers with nothing but an error: its type, or its message.
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    detail: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct ChatChoice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<Members<'a>>,
    #[serde(borrow, default)]
    finish_reason: LooseText<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads a reply that is not streamed.
pub(crate) fn read(body: &[u8], limits: ReplyLimits) -> Result<Reply, WireError> {
    let text = utf8(CHAT, "a reply", body)?;
    let failed = malformed(CHAT, "a reply", text);
    let chunk: ChatChunk<'_> = serde_json::from_str(text).map_err(&failed)?;
    let choice = first(&chunk)?;
    let Some((choice, message)) = choice.and_then(|one| Some((one, one.message?))) else {
        return Err(no_answer(&chunk, text));
    };
    let mut gather = ChatReplyBuilder::whole();
    let members = Members::of(message).map_err(&failed)?;
    let taken = gather.take(&members, limits, &mut Vec::new());
    taken
        .and_then(|()| gather.check())
        .map_err(|refused| refused.wire(malformed(CHAT, "a reply", message.get())))?;
    let raw = if gather.is_rewritten() {
        gathered(&gather)?
    } else {
        owned(message)
    };
    let head = ReplyHead {
        id: chunk.id.some(),
        model: chunk.model.some(),
        finish: choice.finish_reason.some(),
        usage: usage(&chunk).map_err(&failed)?.unwrap_or_default(),
    };
    Ok(head.reply(&gather, raw))
}

/// Returns a message as put together of its pieces.
fn gathered(gather: &ChatReplyBuilder) -> Result<Box<RawValue>, WireError> {
    let message = String::from_utf8(gather.message()).unwrap_or_default();
    RawValue::from_string(message).map_err(malformed(CHAT, "a stream", ""))
}

/// Returns the answer of a reply or an event: only the first one if a request asked for several.
fn first<'c, 'a>(chunk: &'c ChatChunk<'a>) -> Result<Option<&'c ChatChoice<'a>>, WireError> {
    let choices = chunk.choices.as_deref().unwrap_or_default();
    let choice = choices
        .iter()
        .find(|one| one.index.unwrap_or_default() == 0);
    let of_choice = choice.and_then(|one| one.error);
    let error = chunk.error.or(of_choice).filter(|raw| raw.get() != "null");
    match error {
        Some(raw) => Err(reported(raw)),
        None => Ok(choice),
    }
}

/// Returns the error for a reply without an answer: the provider's own if it sent one.
fn no_answer(chunk: &ChatChunk<'_>, text: &str) -> WireError {
    if chunk.message.or(chunk.detail).is_some() {
        let whole = serde_json::from_str::<&RawValue>(text.trim());
        if let Ok(whole) = whole {
            return reported(whole);
        }
    }
    WireError::Malformed {
        dialect: CHAT.as_str(),
        what: "a reply",
        reason: format!(
            "there is no choice with a message in it; it begins with {:?}",
            crate::error::quote(text)
        ),
    }
}

/// Returns the reported token usage; `None` if there is none.
fn usage(chunk: &ChatChunk<'_>) -> Result<Option<Usage>, serde_json::Error> {
    let of_groq = chunk
        .x_groq
        .as_ref()
        .and_then(|members| members.get("usage"));
    let Some(raw) = chunk.usage.or(of_groq).filter(|raw| raw.get() != "null") else {
        return Ok(None);
    };
    let members = Members::of(raw)?;
    let number = |members: &Members<'_>, name| {
        members
            .get(name)
            .and_then(|raw| raw.get().parse::<u64>().ok())
    };
    let within = |name, inner| {
        let members = members.get(name).and_then(|raw| Members::of(raw).ok());
        members.and_then(|members| number(&members, inner))
    };
    let cached = within("prompt_tokens_details", "cached_tokens")
        .or_else(|| number(&members, "prompt_cache_hit_tokens"))
        .or_else(|| number(&members, "num_cached_tokens"));
    Ok(Some(Usage {
        input: number(&members, "prompt_tokens").unwrap_or_default(),
        cached: cached.unwrap_or_default(),
        output: number(&members, "completion_tokens").unwrap_or_default(),
        thinking: within("completion_tokens_details", "reasoning_tokens").unwrap_or_default(),
    }))
}

/// The data around a message.
#[derive(Debug, Default)]
struct ReplyHead {
    id: Option<String>,
    model: Option<String>,
    finish: Option<String>,
    usage: Usage,
}

impl ReplyHead {
    fn reply(self, gather: &ChatReplyBuilder, raw: Box<RawValue>) -> Reply {
        // A forced call ends with `stop`, and some providers give no reason at all.
        let stop = match self.finish.as_deref() {
            None | Some("stop" | "tool_calls" | "function_call") if gather.has_calls() => {
                StopReason::Calls
            }
            None | Some("stop" | "tool_calls" | "function_call") => StopReason::End,
            Some("length") => StopReason::Length,
            Some("content_filter") => StopReason::Filter,
            Some(word) => StopReason::Other(word.to_owned()),
        };
        Reply {
            turn: Turn {
                dialect: CHAT,
                items: gather.items(),
                raw,
            },
            stop,
            usage: self.usage,
            id: self.id,
            model: self.model,
        }
    }
}

/// Reads a reply from events.
#[derive(Debug)]
pub(crate) struct ChatStream {
    events: SseParser,
    state: ChatStreamState,
}

#[derive(Debug)]
struct ChatStreamState {
    limits: ReplyLimits,
    bytes: usize,
    head: ReplyHead,
    gather: ChatReplyBuilder,
    has_answer: bool,
    is_done: bool,
}

impl ChatStream {
    pub(crate) fn new(limits: ReplyLimits) -> Self {
        Self {
            events: SseParser::new(limits.event),
            state: ChatStreamState {
                limits,
                bytes: 0,
                head: ReplyHead::default(),
                gather: ChatReplyBuilder::default(),
                has_answer: false,
                is_done: false,
            },
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let state = &mut self.state;
        state.bytes += piece.len();
        if state.bytes > state.limits.reply {
            return Err(WireError::TooLarge {
                what: "a reply",
                limit: state.limits.reply,
            });
        }
        let limit = state.limits.event;
        self.events
            .each(piece, |data, _| state.event(data, deltas))
            .map_err(|fault| fault.at(limit))
    }

    pub(crate) fn usage(&self) -> Usage {
        self.state.head.usage
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.state.is_done
    }

    pub(crate) fn finish(self) -> Result<Reply, WireError> {
        let state = self.state;
        // Not every provider sends an end marker, but each one says why it stopped.
        let is_whole = state.is_done || state.head.finish.is_some();
        if !is_whole || !state.has_answer {
            return Err(WireError::Cut(state.bytes));
        }
        let checked = state.gather.check();
        checked.map_err(|refused| refused.wire(malformed(CHAT, "a stream", "")))?;
        let raw = gathered(&state.gather)?;
        Ok(state.head.reply(&state.gather, raw))
    }
}

impl ChatStreamState {
    fn event(&mut self, data: &[u8], deltas: &mut Vec<Delta>) -> Result<(), StreamError> {
        if self.is_done || data.is_empty() {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let text = utf8(CHAT, "an event", data)?;
        let failed = malformed(CHAT, "an event", text);
        let chunk: ChatChunk<'_> = serde_json::from_str(text).map_err(&failed)?;
        if self.head.id.is_none() {
            self.head.id = chunk.id.some();
        }
        if self.head.model.is_none() {
            self.head.model = chunk.model.some();
        }
        if let Some(usage) = usage(&chunk).map_err(&failed)? {
            self.head.usage = usage;
        }
        let Some(choice) = first(&chunk)? else {
            return Ok(());
        };
        self.has_answer = true;
        if let Some(delta) = &choice.delta {
            let taken = self.gather.take(delta, self.limits, deltas);
            taken.map_err(|refused| refused.wire(&failed))?;
        }
        // Some servers send a whole message, alone or after its pieces.
        if let Some(message) = choice.message {
            let members = Members::of(message).map_err(&failed)?;
            let taken = self.gather.take_message(&members, self.limits, deltas);
            taken.map_err(|refused| refused.wire(&failed))?;
        }
        if let Some(finish) = choice.finish_reason.some() {
            self.head.finish = Some(finish);
        }
        Ok(())
    }
}

//! A reply out of events.

use haft_json::members::members;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::Block;
use super::open::Open;
use super::read::{Fault, Tokens, refusal, stop};
use crate::borrowed::Text;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::feed::Feed;
use crate::limits::Limits;
use crate::reply::{Reply, Turn};
use crate::stream::Delta;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: Option<usize>,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<Start<'a>>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(borrow, default)]
    error: Option<Fault<'a>>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(default)]
    usage: Tokens,
}

/// A reply out of events.
#[derive(Debug)]
pub(crate) struct Stream {
    feed: Feed,
    gather: Gather,
}

impl Stream {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            feed: Feed::new(limits),
            gather: Gather {
                most_calls: limits.calls,
                ..Gather::default()
            },
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if self.is_whole() {
            return Ok(());
        }
        let Self { feed, gather } = self;
        feed.push(piece, |data| gather.event(data, deltas))
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.gather.is_whole && !self.feed.has_failed()
    }

    pub(crate) fn finish(self) -> Result<Reply, WireError> {
        if !self.is_whole() {
            return Err(self.feed.cut());
        }
        self.gather.finish()
    }
}

/// What the events have brought.
#[derive(Debug, Default)]
struct Gather {
    most_calls: usize,
    blocks: Vec<Open>,
    calls: usize,
    tokens: Tokens,
    id: Option<String>,
    model: Option<String>,
    stop: Option<String>,
    details: Option<Box<RawValue>>,
    is_whole: bool,
}

impl Gather {
    fn event(&mut self, data: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if self.is_whole {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_slice(data)
            .map_err(|error| WireError::malformed(Dialect::Anthropic, "an event", error, data))?;
        match event.kind.0.as_ref() {
            "content_block_delta" => {
                let piece = event.delta.ok_or_else(|| {
                    WireError::malformed(Dialect::Anthropic, "an event", "it has no `delta`", data)
                })?;
                let block = event
                    .index
                    .and_then(|index| self.blocks.get_mut(index))
                    .filter(|block| !block.is_done);
                let block = block.ok_or_else(|| {
                    WireError::malformed(
                        Dialect::Anthropic,
                        "an event",
                        "its block is not open",
                        data,
                    )
                })?;
                add(block, piece, data, deltas)?;
            }
            "content_block_start" => self.start(&event, data, deltas)?,
            "content_block_stop" => {
                let block = event.index.and_then(|index| self.blocks.get_mut(index));
                block
                    .ok_or_else(|| {
                        WireError::malformed(
                            Dialect::Anthropic,
                            "an event",
                            "its block has not begun",
                            data,
                        )
                    })?
                    .is_done = true;
            }
            "message_start" => {
                if let Some(start) = event.message {
                    self.id = Text::owned(start.id).or(self.id.take());
                    self.model = Text::owned(start.model).or(self.model.take());
                    self.tokens.update(start.usage);
                }
            }
            "message_delta" => {
                self.tokens.update(event.usage.unwrap_or_default());
                if let Some(delta) = event.delta {
                    self.stop = Text::owned(delta.stop_reason).or(self.stop.take());
                    self.details = delta
                        .stop_details
                        .map(RawValue::to_owned)
                        .or(self.details.take());
                }
            }
            "message_stop" => self.is_whole = true,
            "error" => {
                let fault = event.error.ok_or_else(|| {
                    WireError::malformed(Dialect::Anthropic, "an event", "it has no `error`", data)
                })?;
                return Err(fault.into());
            }
            // `ping`, and kinds that are added later: the provider says that they are to be passed over.
            _ => {}
        }
        Ok(())
    }

    fn start(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let (Some(index), Some(raw)) = (event.index, event.content_block) else {
            return Err(WireError::malformed(
                Dialect::Anthropic,
                "an event",
                "it has no `index` or no `content_block`",
                data,
            ));
        };
        if self
            .blocks
            .get(index)
            .is_some_and(|block| block.is_fresh(raw))
        {
            return Ok(());
        }
        if index != self.blocks.len() {
            return Err(WireError::malformed(
                Dialect::Anthropic,
                "an event",
                "its block is not the next one",
                data,
            ));
        }
        let block: Block<'_> = serde_json::from_str(raw.get())
            .map_err(|error| WireError::malformed(Dialect::Anthropic, "a block", error, data))?;
        let call = block.is_call().then_some(self.calls);
        if let Some(index) = call {
            if index == self.most_calls {
                return Err(WireError::TooManyCalls(self.most_calls));
            }
            self.calls += 1;
            let name = Text::owned(block.name).unwrap_or_default();
            deltas.push(Delta::Call { index, name });
        }
        self.blocks.push(Open::new(raw, call));
        Ok(())
    }

    fn finish(self) -> Result<Reply, WireError> {
        let mut raw = vec![b'['];
        let mut items = Vec::with_capacity(self.blocks.len());
        for block in self.blocks {
            let item = block.finish(&mut raw).map_err(|reason| {
                WireError::malformed(Dialect::Anthropic, "a block", reason, b"")
            })?;
            items.extend(item);
        }
        raw.push(b']');
        let raw = String::from_utf8(raw)
            .map_err(|error| WireError::malformed(Dialect::Anthropic, "a reply", error, b""))?;
        let raw = RawValue::from_string(raw)
            .map_err(|error| WireError::malformed(Dialect::Anthropic, "a reply", error, b""))?;
        let stop = stop(self.stop.as_deref(), &items);
        items.extend(refusal(self.details.as_deref()));
        Ok(Reply {
            turn: Turn {
                dialect: Dialect::Anthropic,
                items,
                raw,
            },
            stop,
            usage: self.tokens.usage(),
            id: self.id,
            model: self.model,
        })
    }
}

/// Adds a piece to its block.
fn add(
    block: &mut Open,
    mut piece: Piece<'_>,
    data: &[u8],
    deltas: &mut Vec<Delta>,
) -> Result<(), WireError> {
    let kind = piece.kind.take();
    match (kind.as_ref().map_or("", |kind| kind.0.as_ref()), piece) {
        (
            "text_delta",
            Piece {
                text: Some(text), ..
            },
        ) => {
            block.add_text("text", &text.0);
            deltas.push(Delta::Text(text.0.into_owned()));
        }
        (
            "thinking_delta",
            Piece {
                thinking: Some(text),
                ..
            },
        ) => {
            block.add_text("thinking", &text.0);
            deltas.push(Delta::Thinking(text.0.into_owned()));
        }
        (
            "input_json_delta",
            Piece {
                partial_json: Some(text),
                ..
            },
        ) => {
            block.add_input(&text.0);
            if let Some(index) = block.call.filter(|_| !text.0.is_empty()) {
                deltas.push(Delta::Arguments {
                    index,
                    text: text.0.into_owned(),
                });
            }
        }
        (
            "citations_delta",
            Piece {
                citation: Some(citation),
                ..
            },
        ) => block.add_citation(citation),
        _ => add_any(block, data)?,
    }
    Ok(())
}

/// A piece of another kind (`signature_delta`, `compaction_delta`, later ones): each text in it adds to the member of its name.
fn add_any(block: &mut Open, data: &[u8]) -> Result<(), WireError> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        delta: &'a RawValue,
    }
    let raw: Raw<'_> = serde_json::from_slice(data)
        .map_err(|error| WireError::malformed(Dialect::Anthropic, "an event", error, data))?;
    let all = members(raw.delta.get())
        .map_err(|error| WireError::malformed(Dialect::Anthropic, "an event", error, data))?;
    for member in all.iter().filter(|member| !member.is("type")) {
        let name = serde_json::from_str::<String>(member.key());
        let text = serde_json::from_str::<String>(member.value().get());
        if let (Ok(name), Ok(text)) = (name, text) {
            block.add_text(&name, &text);
        }
    }
    Ok(())
}

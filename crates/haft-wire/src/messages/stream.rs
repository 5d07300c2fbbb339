//! Reads a reply from the events of a stream.

use haft_json::members::members;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::MessagesBlock;
use super::event::{MessagesDelta, MessagesEvent, malformed};
use super::open::PartialBlock;
use super::piece::{BlockDelta, BlockDeltaKind, quick};
use super::read::{MessagesUsage, refusal, stop};
use crate::borrowed::BorrowedText;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::feed::EventFeed;
use crate::limits::ReplyLimits;
use crate::reply::{Reply, Turn, Usage};
use crate::stream::Delta;

/// Reads a reply from events.
#[derive(Debug)]
pub(crate) struct MessagesStream {
    feed: EventFeed,
    gather: MessagesReplyBuilder,
}

impl MessagesStream {
    pub(crate) fn new(limits: ReplyLimits) -> Self {
        Self {
            feed: EventFeed::new(limits),
            gather: MessagesReplyBuilder {
                most_calls: limits.calls,
                ..MessagesReplyBuilder::default()
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

    pub(crate) fn usage(&self) -> Usage {
        self.gather.tokens.usage()
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

/// The data of the events so far.
#[derive(Debug, Default)]
struct MessagesReplyBuilder {
    most_calls: usize,
    blocks: Vec<PartialBlock>,
    calls: usize,
    tokens: MessagesUsage,
    id: Option<String>,
    model: Option<String>,
    stop: Option<String>,
    details: Option<Box<RawValue>>,
    is_whole: bool,
}

impl MessagesReplyBuilder {
    fn event(&mut self, data: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if self.is_whole {
            return Ok(());
        }
        if let Some(piece) = quick(data) {
            let block = self.open(Some(piece.index), data)?;
            add(block, piece, deltas);
            return Ok(());
        }
        let event: MessagesEvent<'_> =
            serde_json::from_slice(data).map_err(|error| malformed(error, data))?;
        match event.kind.0.as_ref() {
            "content_block_delta" => {
                let piece = event
                    .delta
                    .ok_or_else(|| malformed("it has no `delta`", data))?;
                change(self.open(event.index, data)?, piece, data, deltas)?;
            }
            "content_block_start" => self.start(&event, data, deltas)?,
            "content_block_stop" => {
                let block = event.index.and_then(|index| self.blocks.get_mut(index));
                block
                    .ok_or_else(|| malformed("its block has not begun", data))?
                    .is_done = true;
            }
            "message_start" => {
                if let Some(start) = event.message {
                    self.id = BorrowedText::owned(start.id).or(self.id.take());
                    self.model = BorrowedText::owned(start.model).or(self.model.take());
                    self.tokens.update(start.usage);
                }
            }
            "message_delta" => {
                self.tokens.update(event.usage.unwrap_or_default());
                if let Some(delta) = event.delta {
                    self.stop = BorrowedText::owned(delta.stop_reason).or(self.stop.take());
                    self.details = delta
                        .stop_details
                        .map(RawValue::to_owned)
                        .or(self.details.take());
                }
            }
            "message_stop" => self.is_whole = true,
            "error" => {
                let fault = event
                    .error
                    .ok_or_else(|| malformed("it has no `error`", data))?;
                return Err(fault.into());
            }
            // `ping`, and kinds added later: the provider's documentation says to ignore them.
            _ => {}
        }
        Ok(())
    }

    /// Returns a block that has started and not ended.
    fn open(&mut self, index: Option<usize>, data: &[u8]) -> Result<&mut PartialBlock, WireError> {
        let block = index.and_then(|index| self.blocks.get_mut(index));
        block
            .filter(|block| !block.is_done)
            .ok_or_else(|| malformed("its block is not open", data))
    }

    fn start(
        &mut self,
        event: &MessagesEvent<'_>,
        data: &[u8],
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let (Some(index), Some(raw)) = (event.index, event.content_block) else {
            return Err(malformed("it has no `index` or no `content_block`", data));
        };
        if self
            .blocks
            .get(index)
            .is_some_and(|block| block.is_fresh(raw))
        {
            return Ok(());
        }
        if index != self.blocks.len() {
            return Err(malformed("its block is not the next one", data));
        }
        let block: MessagesBlock<'_> =
            serde_json::from_str(raw.get()).map_err(|error| malformed(error, data))?;
        let call = block.is_call().then_some(self.calls);
        if let Some(index) = call {
            if index == self.most_calls {
                return Err(WireError::TooManyCalls(self.most_calls));
            }
            self.calls += 1;
            let name = BorrowedText::owned(block.name).unwrap_or_default();
            deltas.push(Delta::Call { index, name });
        }
        self.blocks.push(PartialBlock::new(raw, call));
        Ok(())
    }

    fn finish(self) -> Result<Reply, WireError> {
        let mut raw = vec![b'['];
        let mut items = Vec::with_capacity(self.blocks.len());
        for block in self.blocks {
            let item = block
                .finish(&mut raw)
                .map_err(|reason| malformed(reason, b""))?;
            items.extend(item);
        }
        raw.push(b']');
        let raw = String::from_utf8(raw).map_err(|error| malformed(error, b""))?;
        let raw = RawValue::from_string(raw).map_err(|error| malformed(error, b""))?;
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
fn add(block: &mut PartialBlock, piece: BlockDelta<'_>, deltas: &mut Vec<Delta>) {
    match piece.kind {
        BlockDeltaKind::Text => {
            block.add_text("text", &piece.text);
            deltas.push(Delta::Text(piece.text.into_owned()));
        }
        BlockDeltaKind::Thinking => {
            block.add_text("thinking", &piece.text);
            deltas.push(Delta::Thinking(piece.text.into_owned()));
        }
        BlockDeltaKind::Input => {
            block.add_input(&piece.text);
            if let Some(index) = block.call.filter(|_| !piece.text.is_empty()) {
                let text = piece.text.into_owned();
                deltas.push(Delta::Arguments { index, text });
            }
        }
    }
}

/// Adds a piece in an unusual format.
fn change(
    block: &mut PartialBlock,
    mut change: MessagesDelta<'_>,
    data: &[u8],
    deltas: &mut Vec<Delta>,
) -> Result<(), WireError> {
    let kind = change.kind.take();
    let (kind, text) = match (kind.as_ref().map_or("", |kind| kind.0.as_ref()), change) {
        (
            "text_delta",
            MessagesDelta {
                text: Some(text), ..
            },
        ) => (BlockDeltaKind::Text, text),
        (
            "thinking_delta",
            MessagesDelta {
                thinking: Some(text),
                ..
            },
        ) => (BlockDeltaKind::Thinking, text),
        (
            "input_json_delta",
            MessagesDelta {
                partial_json: Some(text),
                ..
            },
        ) => (BlockDeltaKind::Input, text),
        (
            "citations_delta",
            MessagesDelta {
                citation: Some(citation),
                ..
            },
        ) => {
            block.add_citation(citation);
            return Ok(());
        }
        _ => return add_any(block, data),
    };
    let piece = BlockDelta {
        index: 0,
        kind,
        text: text.0,
    };
    add(block, piece, deltas);
    Ok(())
}

/// Adds a piece of another kind (`signature_delta`, `compaction_delta`, later ones): appends each text to the member with its name.
fn add_any(block: &mut PartialBlock, data: &[u8]) -> Result<(), WireError> {
    #[derive(Deserialize)]
    struct RawDelta<'a> {
        #[serde(borrow)]
        delta: &'a RawValue,
    }
    let raw: RawDelta<'_> = serde_json::from_slice(data).map_err(|error| malformed(error, data))?;
    let all = members(raw.delta.get()).map_err(|error| malformed(error, data))?;
    for member in all.iter().filter(|member| !member.is("type")) {
        let name = serde_json::from_str::<String>(member.key());
        let text = serde_json::from_str::<String>(member.value().get());
        if let (Ok(name), Ok(text)) = (name, text) {
            block.add_text(&name, &text);
        }
    }
    Ok(())
}

//! Reads a reply from events: each is a complete reply of its own, with the parts added since the previous one.

use super::parts::PartCollector;
use super::read::{GeminiCandidate, GeminiChunk, GeminiContent, GeminiUsage, message, stop};
use crate::borrowed::BorrowedText;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::feed::EventFeed;
use crate::limits::ReplyLimits;
use crate::reply::{Reply, StopReason, Turn, Usage};
use crate::stream::Delta;

/// Reads a reply from events.
#[derive(Debug)]
pub(crate) struct GeminiStream {
    feed: EventFeed,
    gather: GeminiReplyBuilder,
}

impl GeminiStream {
    pub(crate) fn new(limits: ReplyLimits) -> Self {
        Self {
            feed: EventFeed::new(limits),
            gather: GeminiReplyBuilder {
                most_calls: limits.calls,
                parts: PartCollector::new(limits.calls),
                tokens: GeminiUsage::default(),
                id: None,
                model: None,
                stop: None,
                is_blocked: false,
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
        self.gather.is_whole() && !self.feed.has_failed()
    }

    pub(crate) fn finish(self) -> Result<Reply, WireError> {
        if !self.is_whole() {
            return Err(self.feed.cut());
        }
        self.gather.finish()
    }
}

/// The data of the events so far.
#[derive(Debug)]
struct GeminiReplyBuilder {
    most_calls: usize,
    parts: PartCollector,
    tokens: GeminiUsage,
    id: Option<String>,
    model: Option<String>,
    stop: Option<String>,
    is_blocked: bool,
}

impl GeminiReplyBuilder {
    fn is_whole(&self) -> bool {
        self.stop.is_some() || self.is_blocked
    }

    fn event(&mut self, data: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if self.is_whole() {
            return Ok(());
        }
        let chunk: GeminiChunk<'_> = serde_json::from_slice(data)
            .map_err(|error| WireError::malformed(Dialect::Gemini, "an event", error, data))?;
        if let Some(fault) = chunk.error {
            return Err(fault.into());
        }
        self.tokens = chunk.usage_metadata.unwrap_or(self.tokens);
        if self.id.is_none() {
            self.id = BorrowedText::owned(chunk.response_id);
            self.model = BorrowedText::owned(chunk.model_version);
        }
        self.is_blocked |= chunk
            .prompt_feedback
            .is_some_and(|feedback| feedback.block_reason.is_some());
        let first = |candidate: &GeminiCandidate<'_>| candidate.index.unwrap_or_default() == 0;
        let Some(candidate) = chunk.candidates.into_iter().flatten().find(first) else {
            return Ok(());
        };
        if let Some(content) = candidate.content {
            let content: GeminiContent<'_> = serde_json::from_str(content.get())
                .map_err(|error| WireError::malformed(Dialect::Gemini, "`content`", error, data))?;
            for part in content.parts.into_iter().flatten() {
                let pushed = self.parts.push(part, deltas);
                pushed.map_err(|fault| fault.error(self.most_calls, part.get()))?;
            }
        }
        self.stop = BorrowedText::owned(candidate.finish_reason);
        Ok(())
    }

    fn finish(self) -> Result<Reply, WireError> {
        let is_cut = self.stop.as_deref() == Some("MAX_TOKENS");
        let finished = self.parts.finish(is_cut);
        let (items, parts) = finished.map_err(|fault| fault.error(self.most_calls, ""))?;
        let stop = match self.stop {
            None => StopReason::Filter,
            Some(word) => stop(Some(&word), &items),
        };
        Ok(Reply {
            turn: Turn {
                dialect: Dialect::Gemini,
                items,
                raw: message(&parts)?,
            },
            stop,
            usage: self.tokens.usage(),
            id: self.id,
            model: self.model,
        })
    }
}

//! `ReplyReader`: reads a reply from a stream of events that arrives in arbitrary pieces.

use crate::dialect::Dialect;
use crate::error::WireError;
use crate::limits::ReplyLimits;
use crate::reply::{Reply, Usage};
use crate::stream::Delta;
use crate::{chat, gemini, messages, responses};

/// Reads a reply from a stream.
#[derive(Debug)]
pub struct ReplyReader(Dialects);

#[derive(Debug)]
enum Dialects {
    Chat(Box<chat::ChatStream>),
    Responses(Box<responses::ResponsesStream>),
    Messages(Box<messages::MessagesStream>),
    Gemini(Box<gemini::GeminiStream>),
}

impl ReplyReader {
    pub(crate) fn new(dialect: Dialect, limits: ReplyLimits) -> Self {
        Self(match dialect {
            Dialect::OpenAiChat => Dialects::Chat(Box::new(chat::ChatStream::new(limits))),
            Dialect::OpenAiResponses => {
                Dialects::Responses(Box::new(responses::ResponsesStream::new(limits)))
            }
            Dialect::Anthropic => {
                Dialects::Messages(Box::new(messages::MessagesStream::new(limits)))
            }
            Dialect::Gemini => Dialects::Gemini(Box::new(gemini::GeminiStream::new(limits))),
        })
    }

    /// Takes a piece, cut at any position by the network.
    ///
    /// # Errors
    /// If a limit is exceeded, the piece is not in the dialect's format, or the provider reports an error. Nothing more
    /// must be pushed then.
    pub fn push(&mut self, piece: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        match &mut self.0 {
            Dialects::Chat(stream) => stream.push(piece, deltas),
            Dialects::Responses(stream) => stream.push(piece, deltas),
            Dialects::Messages(stream) => stream.push(piece, deltas),
            Dialects::Gemini(stream) => stream.push(piece, deltas),
        }
    }

    /// Returns whether the provider has marked the reply as complete; anything that follows is not needed.
    pub fn is_whole(&self) -> bool {
        match &self.0 {
            Dialects::Chat(stream) => stream.is_whole(),
            Dialects::Responses(stream) => stream.is_whole(),
            Dialects::Messages(stream) => stream.is_whole(),
            Dialects::Gemini(stream) => stream.is_whole(),
        }
    }

    /// Returns the usage that the provider has reported so far: for a reply that breaks off, all that is known.
    pub fn usage(&self) -> Usage {
        let usage = match &self.0 {
            Dialects::Chat(stream) => stream.usage(),
            Dialects::Responses(stream) => stream.usage(),
            Dialects::Messages(stream) => stream.usage(),
            Dialects::Gemini(stream) => stream.usage(),
        };
        Some(usage).filter(Usage::is_possible).unwrap_or_default()
    }

    /// Returns the reply once the stream has ended.
    ///
    /// # Errors
    /// If the stream ended before the reply was complete, or the reported usage is impossible.
    pub fn finish(self) -> Result<Reply, WireError> {
        let reply = match self.0 {
            Dialects::Chat(stream) => stream.finish(),
            Dialects::Responses(stream) => stream.finish(),
            Dialects::Messages(stream) => stream.finish(),
            Dialects::Gemini(stream) => stream.finish(),
        };
        reply.and_then(Reply::checked)
    }
}

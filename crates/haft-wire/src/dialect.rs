//! `Dialect`: the wire formats, and the one place that leads to each.

use std::fmt;
use std::str::FromStr;

use crate::error::WireError;
use crate::limits::Limits;
use crate::reply::Reply;
use crate::request::Request;
use crate::stream::Reader;
use crate::{chat, gemini, messages, responses};

/// A wire format of tool calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI Chat Completions, and the many providers that speak it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// Its word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The path of a request below the provider's base URL, which ends before it (`https://api.openai.com`).
    pub fn path(self, model: &str, stream: bool) -> String {
        match self {
            Self::OpenAiChat => "/v1/chat/completions".to_owned(),
            Self::OpenAiResponses => "/v1/responses".to_owned(),
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Gemini if stream => {
                format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
            }
            Self::Gemini => format!("/v1beta/models/{model}:generateContent"),
        }
    }

    /// Writes the body of a request: compact JSON, the same bytes for the same request.
    ///
    /// # Errors
    /// Something of the request cannot be said in this dialect.
    pub fn write(self, request: &Request<'_>) -> Result<Vec<u8>, WireError> {
        match self {
            Self::OpenAiChat => chat::write(request),
            Self::OpenAiResponses => responses::write(request),
            Self::Anthropic => messages::write(request),
            Self::Gemini => gemini::write(request),
        }
    }

    /// Reads the body of a reply that is not streamed.
    ///
    /// # Errors
    /// It is over a limit, is not what this dialect sends, or reports an error of the provider.
    pub fn read(self, body: &[u8], limits: Limits) -> Result<Reply, WireError> {
        if body.len() > limits.reply {
            return Err(WireError::TooLarge {
                what: "a reply",
                limit: limits.reply,
            });
        }
        match self {
            Self::OpenAiChat => chat::read(body, limits),
            Self::OpenAiResponses => responses::read(body, limits),
            Self::Anthropic => messages::read(body, limits),
            Self::Gemini => gemini::read(body, limits),
        }
    }

    /// Reads a reply that comes as a stream.
    pub fn reader(self, limits: Limits) -> Reader {
        Reader::new(self, limits)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no dialect.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no dialect: openai-chat, openai-responses, anthropic or gemini")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(word: &str) -> Result<Self, UnknownDialect> {
        let mut all = Self::ALL.into_iter();
        all.find(|dialect| dialect.as_str() == word)
            .ok_or_else(|| UnknownDialect(crate::error::quote(word)))
    }
}

//! `Dialect`: the wire formats of tool calling.

use std::fmt;
use std::str::FromStr;

/// A wire format of tool calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI Chat Completions, and the many providers that use it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 4] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// Returns its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the path of a request below the provider's base URL, which ends before it (`https://api.openai.com`).
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
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a word that does not name a dialect.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a dialect; use openai-chat, openai-responses, anthropic or gemini")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(word: &str) -> Result<Self, UnknownDialect> {
        let mut all = Self::ALL.into_iter();
        all.find(|dialect| dialect.as_str() == word)
            .ok_or_else(|| UnknownDialect(crate::error::quote(word)))
    }
}

//! Maps a dialect to its implementation; `reader.rs` does the same for streams, `names.rs` for names.

use crate::declared::ToolDeclaration;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::fragment::DialectFragment;
use crate::limits::ReplyLimits;
use crate::names::ToolNames;
use crate::reader::ReplyReader;
use crate::reply::Reply;
use crate::request::Request;
use crate::{chat, gemini, messages, responses};

impl Dialect {
    /// Writes the body of a request: compact JSON, the same bytes for the same request.
    ///
    /// # Errors
    /// If this dialect cannot express part of the request.
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
    /// If it exceeds a limit, is not in this dialect's format, or reports an error of the provider.
    pub fn read(self, body: &[u8], limits: ReplyLimits) -> Result<Reply, WireError> {
        if body.len() > limits.reply {
            return Err(WireError::TooLarge {
                what: "a reply",
                limit: limits.reply,
            });
        }
        let reply = match self {
            Self::OpenAiChat => chat::read(body, limits),
            Self::OpenAiResponses => responses::read(body, limits),
            Self::Anthropic => messages::read(body, limits),
            Self::Gemini => gemini::read(body, limits),
        };
        reply.and_then(Reply::checked)
    }

    /// Returns a reader for a streamed reply.
    pub fn reader(self, limits: ReplyLimits) -> ReplyReader {
        ReplyReader::new(self, limits)
    }
}

/// Returns a tool's declaration in a dialect; `None` if it cannot express the tool.
pub(crate) fn fragment(
    dialect: Dialect,
    tool: &ToolDeclaration,
    names: &ToolNames,
) -> Option<DialectFragment> {
    match dialect {
        Dialect::OpenAiChat => chat::fragment(tool, names),
        Dialect::OpenAiResponses => responses::fragment(tool, names),
        Dialect::Anthropic => messages::fragment(tool, names),
        Dialect::Gemini => gemini::fragment(tool, names),
    }
}

//! `OriginalResult`: a tool result as its server sent it, so that it can be forwarded without loss.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The result of an MCP server's tool, byte for byte, and whether the outcome holds all of it. Models, records and limits use the
/// outcome's content and data; MCP clients get this.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OriginalResult {
    /// The result of `tools/call`, or the protocol error that came instead: one JSON object.
    pub result: Box<RawValue>,
    /// Whether it is a protocol error (`code`, `message`), of which the outcome holds only the text.
    #[serde(default)]
    pub is_refusal: bool,
    /// Whether the outcome's content is complete.
    pub content: bool,
    /// Whether the outcome's data is the complete structured content.
    pub data: bool,
}

impl OriginalResult {
    /// Creates an original that is not cut yet.
    pub fn new(result: Box<RawValue>) -> Self {
        Self {
            result,
            is_refusal: false,
            content: true,
            data: true,
        }
    }

    /// Creates an original from a protocol error in place of a result.
    pub fn refusal(error: Box<RawValue>) -> Self {
        Self {
            is_refusal: true,
            ..Self::new(error)
        }
    }
}

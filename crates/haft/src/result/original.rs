//! `Original`: a result as the server of its tool sent it, to be sent on without losing anything.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A result of an MCP server's tool, byte for byte, with how much of it the outcome holds as it came. Models, records and
/// limits go by the outcome's content and data; a client that speaks MCP gets this.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Original {
    /// The result of its `tools/call`, or the error of the protocol that came instead: one JSON object.
    pub result: Box<RawValue>,
    /// Whether it is an error of the protocol (`code`, `message`), of which the outcome holds the words alone.
    #[serde(default)]
    pub is_refusal: bool,
    /// Whether the outcome's content is all of the result's.
    pub content: bool,
    /// Whether the outcome's data is all of the result's structured content.
    pub data: bool,
}

impl Original {
    /// A result that nobody has cut yet.
    pub fn new(result: Box<RawValue>) -> Self {
        Self {
            result,
            is_refusal: false,
            content: true,
            data: true,
        }
    }

    /// An error of the protocol in place of a result.
    pub fn refusal(error: Box<RawValue>) -> Self {
        Self {
            is_refusal: true,
            ..Self::new(error)
        }
    }
}

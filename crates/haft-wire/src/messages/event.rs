//! An event of a stream, as parsed by `serde_json`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::{Fault, Tokens};
use crate::borrowed::Text;
use crate::dialect::Dialect;
use crate::error::WireError;

#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Text<'a>,
    #[serde(default)]
    pub(crate) index: Option<usize>,
    #[serde(borrow, default)]
    pub(crate) delta: Option<Change<'a>>,
    #[serde(borrow, default)]
    pub(crate) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) message: Option<Start<'a>>,
    #[serde(default)]
    pub(crate) usage: Option<Tokens>,
    #[serde(borrow, default)]
    pub(crate) error: Option<Fault<'a>>,
}

/// The change that an event makes.
#[derive(Debug, Deserialize)]
pub(crate) struct Change<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) stop_details: Option<&'a RawValue>,
}

/// The start of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Start<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) model: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) usage: Tokens,
}

/// Returns the error for an event that is not in the provider's format.
pub(crate) fn malformed(reason: impl std::fmt::Display, data: &[u8]) -> WireError {
    WireError::malformed(Dialect::Anthropic, "an event", reason, data)
}

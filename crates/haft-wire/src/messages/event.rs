//! An event of a stream, as parsed by `serde_json`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::{MessagesErrorObject, MessagesUsage};
use crate::borrowed::BorrowedText;
use crate::dialect::Dialect;
use crate::error::WireError;

#[derive(Debug, Deserialize)]
pub(crate) struct MessagesEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: BorrowedText<'a>,
    #[serde(default)]
    pub(crate) index: Option<usize>,
    #[serde(borrow, default)]
    pub(crate) delta: Option<MessagesDelta<'a>>,
    #[serde(borrow, default)]
    pub(crate) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) message: Option<MessageStart<'a>>,
    #[serde(default)]
    pub(crate) usage: Option<MessagesUsage>,
    #[serde(borrow, default)]
    pub(crate) error: Option<MessagesErrorObject<'a>>,
}

/// The change that an event makes.
#[derive(Debug, Deserialize)]
pub(crate) struct MessagesDelta<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) text: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) thinking: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) partial_json: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) stop_details: Option<&'a RawValue>,
}

/// The start of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageStart<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) model: Option<BorrowedText<'a>>,
    #[serde(default)]
    pub(crate) usage: MessagesUsage,
}

/// Returns the error for an event that is not in the provider's format.
pub(crate) fn malformed(reason: impl std::fmt::Display, data: &[u8]) -> WireError {
    WireError::malformed(Dialect::Anthropic, "an event", reason, data)
}

//! `Message`: the history of a conversation, in the neutral format.

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::value::RawValue;

use crate::reply::{Call, CallKind, Turn};

/// The type of the item that asks for an approval.
const APPROVAL: &str = "mcp_approval_request";

/// One message of the history.
#[derive(Debug, Clone)]
pub enum Message {
    /// A message of the user.
    User(Vec<ContentPart>),
    /// A note of the host to the model in addition to the user's messages: about the run, or about tools that have become available.
    Host(String),
    /// A turn of the model.
    Model(Turn),
    /// The answers to all calls of the previous turn, in the order of the calls.
    Results(Vec<ToolOutput>),
}

impl Message {
    /// Creates a user message with a text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![ContentPart::Text(text.into())])
    }
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentPart {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its media type.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// Audio.
    Audio {
        /// Its media type.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// A file, such as a PDF.
    File {
        /// Its name.
        name: String,
        /// Its media type.
        media_type: String,
        /// Base64.
        data: String,
    },
}

/// The answer to one call.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// The call, as received.
    pub call: Call,
    /// The answer's content; the model reads its texts.
    pub parts: Vec<ContentPart>,
    /// Whether the call failed. Dialects that have no flag for it only get the text.
    pub is_error: bool,
    /// Tools found by a search, by their wire names: a dialect that can load them is told so in its own format.
    pub loads: Vec<String>,
    /// The whole item in the provider's own format, for calls of [`CallKind::Provider`].
    pub item: Option<Box<RawValue>>,
}

impl ToolOutput {
    /// Creates an answer with a text.
    pub fn text(call: Call, text: impl Into<String>) -> Self {
        Self {
            call,
            parts: vec![ContentPart::Text(text.into())],
            is_error: false,
            loads: Vec::new(),
            item: None,
        }
    }

    /// Creates the answer to a provider that asked whether it may run its own tool ([`TurnItem::Approval`](crate::TurnItem::Approval)). It is
    /// one of the answers of its turn; it is only sent in the dialect that asked.
    pub fn approval(id: &str, approve: bool, reason: Option<&str>) -> Self {
        let mut item = Vec::new();
        let mut member = Writer::begin(&mut item);
        member
            .key("type")
            .extend_from_slice(b"\"mcp_approval_response\"");
        string(member.key("approval_request_id"), id);
        member
            .key("approve")
            .extend_from_slice(if approve { b"true" } else { b"false" });
        if let Some(reason) = reason {
            string(member.key("reason"), reason);
        }
        member.end();
        let item = String::from_utf8(item)
            .ok()
            .and_then(|item| RawValue::from_string(item).ok());
        Self {
            item,
            parts: Vec::new(),
            ..Self::text(
                Call {
                    id: id.to_owned(),
                    item: None,
                    kind: CallKind::Provider(APPROVAL.to_owned()),
                    name: String::new(),
                    namespace: None,
                    toolset: None,
                    caller: None,
                    arguments: String::new(),
                },
                String::new(),
            )
        }
    }

    /// Returns whether it answers a request for [approval](Self::approval).
    pub fn is_approval(&self) -> bool {
        self.call.kind == CallKind::Provider(APPROVAL.to_owned())
    }

    /// Returns its texts, one per line.
    pub fn texts(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    /// Creates the answer to a call that was not run because an earlier one of its toolset failed: the calls of one toolset in a turn are a
    /// batch, run in order, and Anthropic requires this text for each call after a failure.
    pub fn not_executed(call: Call) -> Self {
        Self::error(
            call,
            "Not executed: an earlier computer action in this turn failed.",
        )
    }

    /// Creates an error answer with a text.
    pub fn error(call: Call, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(call, text)
        }
    }
}

//! `Message`: the history of a conversation, in the neutral shape.

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::value::RawValue;

use crate::reply::{Call, CallKind, Turn};

/// The type of the item that asks for an approval.
const APPROVAL: &str = "mcp_approval_request";

/// One message of the history.
#[derive(Debug, Clone)]
pub enum Message {
    /// What the user says.
    User(Vec<Part>),
    /// What the host tells the model beside the user's words: a note about the run, tools that have become available.
    Host(String),
    /// What the model said.
    Model(Turn),
    /// The answers to all calls of the turn before, in the order of the calls.
    Results(Vec<Answer>),
}

impl Message {
    /// A user's text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![Part::Text(text.into())])
    }
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its media type.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// Sound.
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
pub struct Answer {
    /// The call, as it came.
    pub call: Call,
    /// The answer's content; its texts are what the model reads.
    pub parts: Vec<Part>,
    /// Whether the call failed. Dialects that have no flag for it get it as the text alone.
    pub is_error: bool,
    /// Tools that a search found, by their wire names: a dialect that can load them is told so in its own words.
    pub loads: Vec<String>,
    /// The whole item in the provider's own shape, for calls of [`CallKind::Provider`].
    pub item: Option<Box<RawValue>>,
}

impl Answer {
    /// A text as the answer.
    pub fn text(call: Call, text: impl Into<String>) -> Self {
        Self {
            call,
            parts: vec![Part::Text(text.into())],
            is_error: false,
            loads: Vec::new(),
            item: None,
        }
    }

    /// The answer to a provider that asked whether it may run a tool of its own ([`Item::Approval`](crate::Item::Approval)). It stands
    /// among the answers of its turn; a dialect other than the one that asked is not given it.
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

    /// Whether it is [an approval](Self::approval).
    pub fn is_approval(&self) -> bool {
        self.call.kind == CallKind::Provider(APPROVAL.to_owned())
    }

    /// Its texts, one to a line.
    pub fn texts(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    /// The answer to a call that was not run because an earlier one of its toolset failed: the calls of one toolset in a turn are a batch,
    /// run in order, and Anthropic wants these words for each that follows a failure.
    pub fn not_executed(call: Call) -> Self {
        Self::error(
            call,
            "Not executed: an earlier computer action in this turn failed.",
        )
    }

    /// The same, for a call that failed.
    pub fn error(call: Call, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(call, text)
        }
    }
}

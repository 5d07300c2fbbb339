//! `Message`: the history of a conversation, in the neutral shape.

use serde_json::value::RawValue;

use crate::reply::{Call, Turn};

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
    /// The whole item in the provider's own shape, for calls of [`CallKind::Provider`](crate::CallKind::Provider).
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

    /// The same, for a call that failed.
    pub fn error(call: Call, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(call, text)
        }
    }
}

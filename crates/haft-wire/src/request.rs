//! `Request`: what a model is asked next.

use serde_json::value::RawValue;

use crate::declarations::Declarations;
use crate::message::Message;

/// What a model is asked next; a [`Dialect`](crate::Dialect) writes it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the provider names it.
    pub model: &'a str,
    /// The instructions; empty for none.
    pub system: &'a str,
    /// The history.
    pub messages: &'a [Message],
    /// The tools, declared for this dialect.
    pub tools: &'a Declarations,
    /// Which of them may or must be called.
    pub choice: &'a Choice,
    /// Whether one turn may hold several calls.
    pub parallel: bool,
    /// The most tokens to write. Anthropic needs one: 8,192 where it is `None`.
    pub max_tokens: Option<u32>,
    /// Whether the reply is to come as a stream.
    pub stream: bool,
    /// Further members of the body, by name (`temperature`, `reasoning`, …); one that haft writes itself is refused.
    pub extra: &'a [(String, Box<RawValue>)],
}

/// Which tools may or must be called. Names are those on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// As the model likes.
    #[default]
    Auto,
    /// None, though they are declared.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
    /// These alone, without another declaration of all, so that the provider's cache holds.
    Allowed {
        /// Their names.
        names: Vec<String>,
        /// Whether one of them must be called.
        required: bool,
    },
}

//! `Request`: the next request to a model.

use serde_json::value::RawValue;

use crate::declarations::Declarations;
use crate::message::Message;

/// The next request to a model; a [`Dialect`](crate::Dialect) writes it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the provider names it.
    pub model: &'a str,
    /// The instructions; may be empty.
    pub system: &'a str,
    /// The history.
    pub messages: &'a [Message],
    /// The tools, declared for this dialect.
    pub tools: &'a Declarations,
    /// Which of them the model may or must call.
    pub choice: &'a ToolChoice,
    /// Whether one turn may hold several calls.
    pub parallel: bool,
    /// Maximum number of tokens to write. Anthropic requires one: 8,192 if it is `None`.
    pub max_tokens: Option<u32>,
    /// Whether the reply should be streamed.
    pub stream: bool,
    /// Additional members of the body, by name (`temperature`, `reasoning`, …); one that haft writes itself is refused.
    pub extra: &'a [(String, Box<RawValue>)],
}

/// Which tools the model may or must call, by their wire names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool, although they are declared.
    None,
    /// At least one.
    Required,
    /// This tool.
    Tool(String),
    /// Only these, without changing the declarations, so that the provider's cache stays valid.
    Allowed {
        /// The names of the tools.
        names: Vec<String>,
        /// Whether one of them must be called.
        required: bool,
    },
}

//! `Reply`: a model's answer, in the neutral format and as it was sent.

use std::fmt;

use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::error::WireError;

/// A complete answer of a model.
#[derive(Debug)]
pub struct Reply {
    /// Its text and calls.
    pub turn: Turn,
    /// The reason why the model stopped.
    pub stop: StopReason,
    /// The tokens used, as far as the provider reports them.
    pub usage: Usage,
    /// The provider's id of the reply.
    pub id: Option<String>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
}

impl Reply {
    /// Returns the reply if its reported usage is possible.
    pub(crate) fn checked(self) -> Result<Self, WireError> {
        if self.usage.is_possible() {
            return Ok(self);
        }
        let Usage { input, output, .. } = self.usage;
        Err(WireError::Malformed {
            dialect: self.turn.dialect.as_str(),
            what: "the usage of a reply",
            reason: format!(
                "{input} tokens read and {output} written are more than the {MAX_TOKENS} that a reply can cost"
            ),
        })
    }
}

/// A turn of the model in the history.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The dialect that it came in.
    pub dialect: Dialect,
    /// Its items, in order.
    pub items: Vec<TurnItem>,
    /// What the provider sent: the message (Chat, Gemini), the list of output items (Responses) or of content blocks (Anthropic). It is
    /// sent back to the same dialect unchanged; another dialect gets the items that it can express.
    pub raw: Box<RawValue>,
}

impl Turn {
    /// Returns the calls that the host must answer, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.items.iter().filter_map(|item| match item {
            TurnItem::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns its texts, joined.
    pub fn text(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            TurnItem::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// One piece of a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TurnItem {
    /// Text for the user.
    Text(String),
    /// Thinking, or a summary of it, as far as the provider shows it.
    Thinking(String),
    /// A refusal, in the model's words.
    Refusal(String),
    /// A call that the host must run and answer.
    Call(Call),
    /// A tool call that the provider ran itself, or its result: shown, never answered.
    Hosted {
        /// The item's type on the wire (`web_search_call`, `server_tool_use`, `executableCode`, …).
        kind: String,
        /// The tool's name, if the item has one.
        name: Option<String>,
        /// The item as it was sent.
        raw: Box<RawValue>,
    },
    /// A request of the provider to run its own tool (`mcp_approval_request`).
    Approval {
        /// The id to answer to.
        id: String,
        /// The server's label.
        server: String,
        /// The tool.
        name: String,
        /// Its arguments as JSON text.
        arguments: String,
    },
    /// An item of a type unknown to this crate; it is preserved.
    Unknown {
        /// Its type on the wire.
        kind: String,
        /// The item as it was sent.
        raw: Box<RawValue>,
    },
}

/// A call that a model makes.
#[derive(Debug, Clone)]
pub struct Call {
    /// The id that its result refers to. If the provider gave none (Gemini), haft's own: `call-N` by position.
    pub id: String,
    /// The provider's second id of the item (Responses).
    pub item: Option<String>,
    /// The kind of call.
    pub kind: CallKind,
    /// The tool's name on the wire; see [`ToolNames::canonical`](crate::names::ToolNames::canonical).
    pub name: String,
    /// The namespace that the tool was declared in (Responses).
    pub namespace: Option<String>,
    /// The toolset that it is a member of (Anthropic's computer and browser).
    pub toolset: Option<String>,
    /// The caller, if it is not the model itself: a program that the provider runs.
    pub caller: Option<Box<RawValue>>,
    /// The arguments as sent: JSON text of a function or a provider-defined call, plain text of a freeform one. They may be
    /// invalid JSON: the code that runs the call checks them.
    pub arguments: String,
}

/// The kind of a call, which determines the format of its result on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallKind {
    /// A function with a JSON Schema.
    Function,
    /// A freeform tool, with a text argument.
    Freeform,
    /// A search for tools that the host runs (`tool_search` of Responses).
    ToolSearch,
    /// A provider-defined tool that the host runs, by its wire type: `shell_call`, `local_shell_call`, `apply_patch_call`,
    /// `computer_call`. Its arguments are the whole item. Anthropic's arrive as [`Function`](Self::Function) with their names.
    Provider(String),
}

/// The reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The model has finished its answer.
    End,
    /// The model waits for results of its calls.
    Calls,
    /// The limit of output tokens was reached: calls of this turn may be truncated.
    Length,
    /// A filter of the provider stopped it.
    Filter,
    /// The model wants to continue: send the same request with this turn in it (Anthropic's `pause_turn`).
    Pause,
    /// Another reason, in the provider's word.
    Other(String),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::End => "end",
            Self::Calls => "calls",
            Self::Length => "length",
            Self::Filter => "filter",
            Self::Pause => "pause",
            Self::Other(word) => word,
        })
    }
}

/// The maximum number of tokens of each kind that a reply may report: a thousand times the largest windows. More is a mistake or a
/// trick, and would use up any budget at once.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Tokens used by one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read, including those from a cache.
    pub input: u64,
    /// The tokens of `input` that were read from a cache.
    pub cached: u64,
    /// Tokens written, including thinking.
    pub output: u64,
    /// The tokens of `output` that were thinking.
    pub thinking: u64,
}

impl Usage {
    /// Returns whether a reply can have used this many tokens.
    pub(crate) fn is_possible(&self) -> bool {
        let counts = [self.input, self.cached, self.output, self.thinking];
        counts.into_iter().all(|tokens| tokens <= MAX_TOKENS)
    }
}

//! `Reply`: what a model answered, in the neutral shape and as it was sent.

use std::fmt;

use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::error::WireError;

/// A whole answer of a model.
#[derive(Debug)]
pub struct Reply {
    /// What it said and asked for.
    pub turn: Turn,
    /// Why it stopped.
    pub stop: Stop,
    /// What it cost, as far as the provider says it.
    pub usage: Usage,
    /// The provider's id of the reply.
    pub id: Option<String>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
}

impl Reply {
    /// The reply, where it can have cost what it says.
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

/// A model's part of the history.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The dialect that it came in.
    pub dialect: Dialect,
    /// What it holds, in order.
    pub items: Vec<Item>,
    /// What the provider sent: the message (Chat, Gemini), the list of output items (Responses) or of content blocks (Anthropic). It goes
    /// back to the same dialect as it is; another dialect is given the items that it can express.
    pub raw: Box<RawValue>,
}

impl Turn {
    /// The calls that the host must answer, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Its texts, joined.
    pub fn text(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            Item::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// One piece of a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Item {
    /// Text for the user.
    Text(String),
    /// Thoughts, or a summary of them, as far as the provider shows them.
    Thinking(String),
    /// The model declines, in its words.
    Refusal(String),
    /// A call that the host must run and answer.
    Call(Call),
    /// What the provider ran itself, or its result: shown, never answered.
    Hosted {
        /// The item's type on the wire (`web_search_call`, `server_tool_use`, `executableCode`, …).
        kind: String,
        /// The tool's name, where the item has one.
        name: Option<String>,
        /// The item as it was sent.
        raw: Box<RawValue>,
    },
    /// The provider asks whether it may run a tool of its own (`mcp_approval_request`).
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
    /// An item of a type that this crate does not know; carried along.
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
    /// The id that its result names. Where the provider gave none (Gemini), one that haft made: `call-N` by position.
    pub id: String,
    /// The provider's second id of the item (Responses).
    pub item: Option<String>,
    /// What sort of call.
    pub kind: CallKind,
    /// The tool's name on the wire; see [`Names::canonical`](crate::names::Names::canonical).
    pub name: String,
    /// The namespace that the tool was declared in (Responses).
    pub namespace: Option<String>,
    /// The toolset that it is a member of (Anthropic's computer and browser).
    pub toolset: Option<String>,
    /// Who calls, where it is not the model itself: a program that the provider runs.
    pub caller: Option<Box<RawValue>>,
    /// The arguments as they were sent: JSON text of a function or a provider-defined call, plain text of a freeform one. They may be
    /// no JSON at all: whoever runs the call checks them.
    pub arguments: String,
}

/// What sort of call it is, and so what its result looks like on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallKind {
    /// A function by its JSON Schema.
    Function,
    /// A freeform tool: its argument is a text.
    Freeform,
    /// A search for tools that the host runs (`tool_search` of Responses).
    ToolSearch,
    /// A tool that the provider defines and the host runs, by its wire type: `shell_call`, `local_shell_call`, `apply_patch_call`,
    /// `computer_call`. Its arguments are the whole item. Anthropic's arrive as [`Function`](Self::Function) with their names.
    Provider(String),
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It has said what it had to say.
    End,
    /// It waits for results of its calls.
    Calls,
    /// The limit of output tokens: calls of this turn may be cut.
    Length,
    /// A filter of the provider.
    Filter,
    /// It wants to go on: the same request with this turn in it (Anthropic's `pause_turn`).
    Pause,
    /// Something else, in the provider's word.
    Other(String),
}

impl fmt::Display for Stop {
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

/// The most tokens that a reply can say it cost, of each kind: a thousand times the largest windows there are. More is a mistake or a
/// trick, and would use up any budget at once.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Tokens of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Read, those from a cache included.
    pub input: u64,
    /// Of these, read from a cache.
    pub cached: u64,
    /// Written, thoughts included.
    pub output: u64,
    /// Of these, thoughts.
    pub thinking: u64,
}

impl Usage {
    /// Whether a reply can cost this.
    pub(crate) fn is_possible(&self) -> bool {
        let counts = [self.input, self.cached, self.output, self.thinking];
        counts.into_iter().all(|tokens| tokens <= MAX_TOKENS)
    }
}

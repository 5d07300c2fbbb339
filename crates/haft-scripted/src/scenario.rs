//! `Scenario`: the expected requests of a client and the model's answers, read from TOML or JSON.
//!
//! The guide's page "A scripted model server" describes the format with examples. Unknown members are errors.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

mod check;

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 1 << 20;

/// A script for a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its title.
    pub title: String,
    /// The seed that determines where streams are cut.
    #[serde(default)]
    pub seed: u64,
    /// How the next turn is determined.
    #[serde(default)]
    pub follow: TurnOrder,
    /// How a stream is cut into pieces.
    #[serde(default)]
    pub pieces: StreamCut,
    /// The pause between two pieces, in milliseconds.
    #[serde(default)]
    pub pause_ms: u64,
    /// The only accepted key; without it, any key is accepted.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether calls have ids in Gemini's dialect; older models send none.
    #[serde(default = "yes")]
    pub gemini_ids: bool,
    /// The turns of the model, in order.
    pub turns: Vec<ScenarioTurn>,
    /// Replies to requests outside the conversation, such as one for a summary: the first one whose expectations hold is used.
    #[serde(default)]
    pub asides: Vec<ScenarioTurn>,
    /// The reply to every request after the last turn; without it such a request is an error.
    #[serde(default)]
    pub end: Option<String>,
}

fn yes() -> bool {
    true
}

/// How the next turn is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOrder {
    /// By the turns of the model in the request: a repeated request gets the same turn, and several conversations
    /// do not affect each other.
    #[default]
    History,
    /// Each answered request advances to the next turn: for clients that shorten their history.
    Requests,
}

/// How a stream is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamCut {
    /// Anywhere, determined by the seed: inside events, texts and characters.
    #[default]
    Random,
    /// After each byte.
    Bytes,
    /// After each event.
    Events,
    /// Nowhere.
    Whole,
}

/// One turn of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioTurn {
    /// What the request must contain.
    #[serde(default)]
    pub expect: Expectation,
    /// Faults injected one after another, one per request for this turn; then the reply is sent.
    #[serde(default)]
    pub faults: Vec<InjectedFault>,
    /// The pause before the reply, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Headers of the reply, such as those about rate limits.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The model's answer.
    pub say: Vec<ReplyPiece>,
    /// The stop reason; without it, the one that fits the reply: `calls` or `end`.
    #[serde(default)]
    pub stop: Option<ScenarioStop>,
    /// The tokens used; without it, a quarter of the bytes.
    #[serde(default)]
    pub usage: Option<ReplyUsage>,
}

/// What a request must contain.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// A text that the user's last text contains.
    #[serde(default)]
    pub user: Option<String>,
    /// Texts that the instructions contain.
    #[serde(default)]
    pub system: Vec<String>,
    /// Tools that are declared.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Tools that are not declared.
    #[serde(default)]
    pub no_tools: Vec<String>,
    /// The name of the model.
    #[serde(default)]
    pub model: Option<String>,
    /// Texts that headers contain, by header name.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What the results of earlier calls contain.
    #[serde(default)]
    pub results: Vec<ExpectedResult>,
}

/// What the result of a call contains.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedResult {
    /// The id of the call in this scenario.
    pub call: String,
    /// A text that the result contains.
    #[serde(default)]
    pub contains: Option<String>,
    /// A text that the result does not contain.
    #[serde(default)]
    pub lacks: Option<String>,
    /// Whether it is marked as an error. Only checked where the dialect has such a mark: in results of Anthropic and
    /// Gemini, and in those of patches in Responses.
    #[serde(default)]
    pub error: Option<bool>,
}

/// One piece of a reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyPiece {
    /// Text for the user.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A refusal of the model, in these words.
    Refusal(String),
    /// A call of a tool.
    Call(CallPiece),
    /// A change of a file: the provider's own `apply_patch` if it is declared, else the function `apply_patch`.
    Patch(PatchPiece),
    /// Commands: the provider's own shell if it is declared, else the function `run_command`, once per command.
    Shell(ShellPiece),
    /// An item in wire format, by dialect; left out in other dialects. For `openai-chat`: members of the message.
    Item(BTreeMap<String, Value>),
}

impl ReplyPiece {
    fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Patch(_) | Self::Shell(_))
    }

    /// Returns the id that the scenario gives to a call.
    fn id(&self) -> Option<&str> {
        match self {
            Self::Call(call) => call.id.as_deref(),
            Self::Patch(patch) => patch.id.as_deref(),
            Self::Shell(shell) => shell.id.as_deref(),
            _ => None,
        }
    }
}

/// A call of a tool, with at most one of `arguments`, `raw` and `input`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallPiece {
    /// Its id; without it, made from the position.
    #[serde(default)]
    pub id: Option<String>,
    /// The tool's name, as haft knows it: `docs.search` also finds `docs__search`.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    /// The arguments as text, to send invalid JSON. Not where a dialect carries an object: Gemini, and Anthropic without a stream.
    #[serde(default)]
    pub raw: Option<String>,
    /// The argument of a freeform tool; a tool that is declared as a function gets it as `input`.
    #[serde(default)]
    pub input: Option<String>,
    /// Calls the tool by exactly this name even if it is not declared.
    #[serde(default)]
    pub undeclared: bool,
}

/// A change of one file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchPiece {
    /// Its id; without it, made from the position.
    #[serde(default)]
    pub id: Option<String>,
    /// What to do.
    pub action: PatchAction,
    /// The file.
    pub path: String,
    /// The lines of a V4A patch below its file's heading; `None` if a file is deleted.
    #[serde(default)]
    pub diff: Option<String>,
}

/// What to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchAction {
    /// Create it.
    Create,
    /// Change it.
    Update,
    /// Delete it.
    Delete,
}

/// Commands of a shell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellPiece {
    /// Its id; without it, made from the position. If it becomes several calls, the second one's ends in `_2`.
    #[serde(default)]
    pub id: Option<String>,
    /// The commands.
    pub commands: Vec<String>,
    /// The time limit of each command, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// The reason why a model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioStop {
    /// The model has finished its answer.
    End,
    /// The model waits for results.
    Calls,
    /// The limit of tokens was reached.
    Length,
    /// A filter of the provider stopped it.
    Filter,
    /// The model wants to continue (Anthropic's `pause_turn`; `end` elsewhere).
    Pause,
}

/// Tokens used by a reply.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyUsage {
    /// Tokens read, including those from a cache.
    pub input: u64,
    /// The tokens of `input` that were read from a cache.
    #[serde(default)]
    pub cached: u64,
    /// Tokens written, including thinking.
    pub output: u64,
    /// The tokens of `output` that were thinking.
    #[serde(default)]
    pub thinking: u64,
}

/// A fault to inject.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InjectedFault {
    /// The response is an error.
    Status(ErrorResponse),
    /// The connection breaks after this many bytes of the body.
    AbortAfter(usize),
    /// After this many bytes of the body nothing more is sent; the connection stays open.
    HangAfter(usize),
    /// A stream ends normally before the events with the end of the reply; a body ends in its middle.
    Unterminated,
    /// A stream has the provider's error event in its middle and ends there; without a stream the response is an error.
    ErrorEvent(ErrorEvent),
    /// The event with this number, from 0, is sent twice; a negative number counts from the end. A body is sent once.
    RepeatEvent(i64),
    /// A byte in the middle is invalid UTF-8.
    BrokenUtf8,
}

/// An error response.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorResponse {
    /// The HTTP status.
    pub code: u16,
    /// How long the client should wait, in seconds: sent as the header `retry-after`, and as Gemini's `RetryInfo`.
    #[serde(default)]
    pub retry_after_s: Option<u64>,
    /// The provider's message; without it, one that fits the status.
    #[serde(default)]
    pub message: Option<String>,
    /// Additional headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The whole body, instead of the provider's: for what a proxy on the way would send.
    #[serde(default)]
    pub body: Option<String>,
}

/// An error inside a stream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEvent {
    /// The provider's error type (`overloaded_error`, `server_error`, `UNAVAILABLE`, …); without it, the dialect's type for 529.
    #[serde(default)]
    pub kind: Option<String>,
    /// The error message.
    pub message: String,
}

/// The reason why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The error.
        reason: String,
    },
    /// It is not valid TOML or JSON of this format.
    #[error("the scenario is not valid: {0}")]
    Malformed(String),
    /// Something in it cannot be played.
    #[error("the scenario cannot be played: {place}: {reason}")]
    Unplayable {
        /// The place: `turn 2, piece 1`, both from 1.
        place: String,
        /// The reason, and what to do.
        reason: String,
    },
}

impl Scenario {
    /// Reads a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// If it cannot be read, is larger than 1 MiB, or is not a scenario.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let unreadable = |reason: String| ScenarioError::Unreadable {
            path: path.display().to_string(),
            reason,
        };
        let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if size.len() > LARGEST {
            return Err(unreadable(format!(
                "it has {} bytes; at most {LARGEST} are read",
                size.len()
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        if path.extension().is_some_and(|ending| ending == "json") {
            Self::from_json(&text)
        } else {
            Self::from_toml(&text)
        }
    }

    /// Reads TOML.
    ///
    /// # Errors
    /// If it is not a scenario.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(malformed)?;
        scenario.check()
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// If it is not a scenario.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_str(text).map_err(malformed)?;
        scenario.check()
    }

    /// Sets the seed, so that streams are cut elsewhere.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets how streams are cut.
    pub fn with_pieces(self, pieces: StreamCut) -> Self {
        Self { pieces, ..self }
    }

    /// Returns the turn of a call, and its position among the turn's calls, both from 0.
    pub(crate) fn place(&self, id: &str) -> Option<(usize, usize)> {
        let turns = self.turns.iter().enumerate();
        turns.rev().find_map(|(at, turn)| {
            let mut calls = turn.say.iter().filter(|piece| piece.is_call());
            calls
                .position(|piece| piece.id() == Some(id))
                .map(|place| (at, place))
        })
    }

    fn check(self) -> Result<Self, ScenarioError> {
        check::check(&self)?;
        Ok(self)
    }
}

fn malformed(error: impl fmt::Display) -> ScenarioError {
    ScenarioError::Malformed(error.to_string().trim_end().to_owned())
}

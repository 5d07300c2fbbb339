//! `Scenario`: what is expected of a client and what the model answers, read from TOML or JSON.
//!
//! The guide's page "A scripted model server" has the format with examples. Unknown members are errors.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

mod check;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// A script for a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    pub title: String,
    /// Where streams are cut; another seed cuts them elsewhere.
    #[serde(default)]
    pub seed: u64,
    /// How it is known which turn comes next.
    #[serde(default)]
    pub follow: Follow,
    /// How a stream is cut into the pieces that are sent.
    #[serde(default)]
    pub pieces: Cut,
    /// The pause between two pieces, in milliseconds.
    #[serde(default)]
    pub pause_ms: u64,
    /// The only key that is accepted; without it any key is.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether calls have ids in Gemini's dialect; older models send none.
    #[serde(default = "yes")]
    pub gemini_ids: bool,
    /// The turns of the model, in order.
    pub turns: Vec<Turn>,
    /// Replies to requests beside the conversation, such as one for a summary: the first whose expectations hold.
    #[serde(default)]
    pub asides: Vec<Turn>,
    /// The reply to every request after the last turn; without it such a request is an error.
    #[serde(default)]
    pub end: Option<String>,
}

fn yes() -> bool {
    true
}

/// How it is known which turn comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// By the turns of the model that the request holds: a request that is sent again gets the same turn, and several conversations
    /// do not disturb each other.
    #[default]
    History,
    /// Each answered request takes the next turn: for clients that shorten their history.
    Requests,
}

/// How a stream is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Anywhere, by the seed: within events, texts and characters.
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
pub struct Turn {
    /// What the request must hold.
    #[serde(default)]
    pub expect: Expect,
    /// What goes wrong, one after the other, each time that this turn is asked for; then comes the reply.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// The pause before the reply, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Headers of the reply, such as those about limits.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What the model answers.
    pub say: Vec<Piece>,
    /// Why it stops; without it as the reply has it: `calls` or `end`.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// What the reply costs; without it a fourth of its bytes.
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// What a request must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The last text of the user contains this.
    #[serde(default)]
    pub user: Option<String>,
    /// The instructions contain each of these.
    #[serde(default)]
    pub system: Vec<String>,
    /// These tools are declared.
    #[serde(default)]
    pub tools: Vec<String>,
    /// These are not.
    #[serde(default)]
    pub no_tools: Vec<String>,
    /// The model is this one.
    #[serde(default)]
    pub model: Option<String>,
    /// The header with this name contains this text.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What the results of earlier calls say.
    #[serde(default)]
    pub results: Vec<ExpectedResult>,
}

/// What the result of a call says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedResult {
    /// The id of the call in this scenario.
    pub call: String,
    /// Its text contains this.
    #[serde(default)]
    pub contains: Option<String>,
    /// Its text does not contain this.
    #[serde(default)]
    pub lacks: Option<String>,
    /// It is marked as an error, or not. Looked at in the dialects that have a mark: Anthropic's and Gemini's.
    #[serde(default)]
    pub error: Option<bool>,
}

/// One piece of a reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// Text for the user.
    Text(String),
    /// Thoughts.
    Thinking(String),
    /// The model declines, in these words.
    Refusal(String),
    /// A call of a tool.
    Call(Call),
    /// A change of a file: the provider's own `apply_patch` where it is declared, else the function `apply_patch`.
    Patch(Patch),
    /// Commands: the provider's own shell where it is declared, else the function `run_command`, once for each command.
    Shell(Shell),
    /// An item as it stands on the wire, by dialect; left out where its dialect is not named. For `openai-chat` members of the message.
    Item(BTreeMap<String, Value>),
}

impl Piece {
    fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Patch(_) | Self::Shell(_))
    }

    /// The id that the scenario gives a call.
    fn id(&self) -> Option<&str> {
        match self {
            Self::Call(call) => call.id.as_deref(),
            Self::Patch(patch) => patch.id.as_deref(),
            Self::Shell(shell) => shell.id.as_deref(),
            _ => None,
        }
    }
}

/// A call of a tool. Of `arguments`, `raw` and `input` one at most.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id; made by position where it has none.
    #[serde(default)]
    pub id: Option<String>,
    /// The tool, as haft knows it: `docs.search` is found as `docs__search`, too.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    /// The arguments as text, to send what is no JSON. Not where a dialect carries an object: Gemini, and Anthropic without a stream.
    #[serde(default)]
    pub raw: Option<String>,
    /// The argument of a freeform tool; a tool that is declared as a function gets it as `input`.
    #[serde(default)]
    pub input: Option<String>,
    /// Calls the tool by the name as it stands here even if it is not declared.
    #[serde(default)]
    pub undeclared: bool,
}

/// A change of one file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Its id; made by position where it has none.
    #[serde(default)]
    pub id: Option<String>,
    /// What is done.
    pub action: PatchAction,
    /// The file.
    pub path: String,
    /// The lines of a V4A patch below its file's heading; none where a file is deleted.
    #[serde(default)]
    pub diff: Option<String>,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchAction {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

/// Commands of a shell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// Its id; made by position where it has none. Where several calls come of it, the second ends in `_2`.
    #[serde(default)]
    pub id: Option<String>,
    /// The commands.
    pub commands: Vec<String>,
    /// The longest that one may take, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// Why a model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said what it had to say.
    End,
    /// It waits for results.
    Calls,
    /// The limit of tokens.
    Length,
    /// A filter of the provider.
    Filter,
    /// It wants to go on (Anthropic's `pause_turn`; `end` elsewhere).
    Pause,
}

/// Tokens of a reply.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Read, those from a cache included.
    pub input: u64,
    /// Of these, from a cache.
    #[serde(default)]
    pub cached: u64,
    /// Written, thoughts included.
    pub output: u64,
    /// Of these, thoughts.
    #[serde(default)]
    pub thinking: u64,
}

/// What goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The response is an error.
    Status(Status),
    /// The connection breaks after this many bytes of the body.
    AbortAfter(usize),
    /// After this many bytes of the body nothing more comes; the connection stays.
    HangAfter(usize),
    /// A stream ends in good order before the events that say how the reply ends; a body ends in its middle.
    Unterminated,
    /// A stream has the provider's error event in its middle and ends; without a stream the response is an error.
    ErrorEvent(ErrorEvent),
    /// The event with this number comes twice, from 0; a negative number counts from the end. A body comes once.
    RepeatEvent(i64),
    /// A byte in the middle is no UTF-8.
    BrokenUtf8,
}

/// An error response.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// How long the client shall wait, in seconds: the header `retry-after`, and Gemini's `RetryInfo`.
    #[serde(default)]
    pub retry_after_s: Option<u64>,
    /// The provider's words; a fitting text where there are none.
    #[serde(default)]
    pub message: Option<String>,
    /// Headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The whole body, in place of the provider's: what a proxy on the way sends.
    #[serde(default)]
    pub body: Option<String>,
}

/// An error within a stream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEvent {
    /// The provider's word (`overloaded_error`, `server_error`, `UNAVAILABLE`, …); the dialect's word for 529 where there is none.
    #[serde(default)]
    pub kind: Option<String>,
    /// Its words.
    pub message: String,
}

/// A scenario that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// It is not TOML or JSON of this format.
    #[error("the scenario is not valid: {0}")]
    Malformed(String),
    /// Something in it cannot be played.
    #[error("the scenario cannot be played: {place}: {reason}")]
    Unplayable {
        /// Where: `turn 2, piece 1`, both from 1.
        place: String,
        /// Why not, and what to do.
        reason: String,
    },
}

impl Scenario {
    /// Reads a file: JSON where its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// It cannot be read, is larger than 1 MiB, or is not a scenario.
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
    /// It is not a scenario.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(malformed)?;
        scenario.check()
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// It is not a scenario.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_str(text).map_err(malformed)?;
        scenario.check()
    }

    /// The same with streams cut elsewhere.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same with streams cut in another way.
    pub fn with_pieces(self, pieces: Cut) -> Self {
        Self { pieces, ..self }
    }

    /// The turn of a call, and its place among the calls of it, both from 0.
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

//! `ToolSpec`: a tool's description of itself, and which parts of it are only hints.

use crate::text::hex;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

mod listing;

pub use listing::{Listing, SpecMember};

/// Maximum length of a tool name, in bytes: the guidance of MCP 2025-11-25.
pub(crate) const MAX_NAME: usize = 128;

/// A tool's name: 1 to 128 characters of `A-Z a-z 0-9 _ . -`, the guidance of MCP 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Arc<str>);

/// Why a text is not a valid tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool name {0:?} is not 1 to 128 of A-Z a-z 0-9 _ . -")]
pub struct NameError(String);

impl ToolName {
    /// Creates a name after checking it.
    ///
    /// # Errors
    /// [`NameError`] if the text is not a valid tool name; the error states which names are.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            return Err(NameError(name.chars().take(MAX_NAME).collect()));
        }
        Ok(Self(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ToolName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(&name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.as_str().to_owned()
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// How much harm a call can do, ordered `Safe < High < Critical`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Only reads, or changes nothing that outlives the run.
    #[default]
    Safe,
    /// Changes files, runs commands, or reaches the network.
    High,
    /// Destroys data that cannot be restored.
    Critical,
}

impl Risk {
    /// Returns the word used in settings and outcomes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Unproven hints for users and models, with MCP's names. They decide nothing but whether a server's tool may be called again once the run
/// has read what that very server says: the server gets the arguments in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// It changes nothing (`readOnlyHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy or overwrite data (`destructiveHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more (`idempotentHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches the world outside the host: the web, a server (`openWorldHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Whether a tool is listed, and whether it can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// Listed and callable.
    #[default]
    Listed,
    /// Callable and found by search, but not listed.
    Searchable,
    /// Found by search; callable once expanded by its exact name.
    Deferred,
    /// Callable, never listed.
    Unlisted,
    /// Neither listed nor callable; may change at run time.
    Hidden,
}

/// A class of tools with a name known from coding agents; rules may name it instead of tools.
///
/// A class rule with a specifier covers effects of its kind, whichever tool has them. A bare one also covers plain calls of the
/// tools that declare the class ([`ToolSpec::class`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolClass {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Runs commands.
    Bash,
    /// Reads from the web.
    WebFetch,
    /// Connects commands to network hosts.
    Network,
    /// Lets commands use the host's logins.
    Sign,
}

impl ToolClass {
    /// All classes.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Edit,
        Self::Bash,
        Self::WebFetch,
        Self::Network,
        Self::Sign,
    ];

    /// Returns the name used in rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Edit => "Edit",
            Self::Bash => "Bash",
            Self::WebFetch => "WebFetch",
            Self::Network => "Network",
            Self::Sign => "Sign",
        }
    }
}

/// When a call of a tool may wait for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Suspension {
    /// Before it runs.
    #[default]
    Before,
    /// Also in a nested call; made again, it continues where it was. Requires a tool that keeps a journal.
    Within,
    /// Also after it ran, about what it did; made again, it receives the decision.
    After,
}

/// A user interface that belongs to a tool (MCP Apps).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolUi {
    /// The page's URI: `ui://…`.
    pub resource_uri: String,
    /// The content security policy that the page requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csp: Option<Value>,
    /// The browser permissions that the page requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Value>,
    /// Whether to draw a border around it.
    #[serde(default)]
    pub prefers_border: bool,
}

impl ToolUi {
    /// Creates the user interface whose page is the tool's own (`ui://haft/NAME`), and which requests no permissions.
    pub fn of(tool: &ToolName) -> Self {
        Self {
            resource_uri: format!("ui://haft/{tool}"),
            ..Self::default()
        }
    }
}

/// The page as the tool returns it, not validated yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPage {
    /// Its declared media type: `text/html`, with or without parameters.
    pub media_type: String,
    /// The bytes of the page.
    pub bytes: Vec<u8>,
}

impl ToolPage {
    /// Creates an HTML page.
    pub fn html(text: impl Into<String>) -> Self {
        Self {
            media_type: "text/html".to_owned(),
            bytes: text.into().into_bytes(),
        }
    }
}

/// How to handle a result over the inline limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Store it whole as an artifact, and answer with a preview and its ref.
    Store,
    /// Cut it to the limit; the rest is not stored.
    Clip,
    /// Fail the call; the result is stored as an artifact.
    Fail,
}

/// How the tool is declared to the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Declaration {
    /// By its JSON Schema, in every dialect.
    #[default]
    Schema,
    /// By a declaration that the provider defines, keyed by provider id. A provider without an entry never sees the tool.
    Provider {
        /// Exact declarations by provider id.
        specs: BTreeMap<String, Value>,
        /// Wire types of the calls this tool answers (`shell_call`, …); empty for a hosted tool.
        call_types: Vec<String>,
    },
}

/// What is said of a call that waits for its decision, did not run on it, or may not have: parts of sentences. A tool that carries on
/// what another call has begun says that this one has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPhrases {
    /// It waits for its approval: the verb of a sentence.
    pub waits: &'static str,
    /// It did not run.
    pub undone: &'static str,
    /// It may have run: the process that began to run it has exited.
    pub in_doubt: &'static str,
}

impl Default for CallPhrases {
    fn default() -> Self {
        Self {
            waits: "waits for the user's approval",
            undone: "nothing ran",
            in_doubt: "the call may have run",
        }
    }
}

/// The `source` of haft's own tools.
pub const BUILTIN: &str = "builtin";

/// The prefix of the `source` of tools that another program runs itself: `hook:AGENT`.
pub const FOREIGN: &str = "hook:";

/// A tool's description of itself. Everything but the name and schemas has a safe default.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a tool has or has not"
)]
pub struct ToolSpec {
    /// The name that callers use.
    pub name: ToolName,
    /// A display name.
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// Descriptions in other languages, by language tag.
    pub i18n: BTreeMap<String, String>,
    /// JSON Schema (2020-12) of the arguments: an object schema.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the structured result, checked after each call.
    pub output_schema: Option<Arc<Value>>,
    /// Whether a result that does not match `output_schema` is delivered with a note, instead of an error: for the tools of servers, whose
    /// calls have run by then.
    pub is_output_advisory: bool,
    /// The minimum risk of any call; a call's permissions may raise it.
    pub risk: Risk,
    /// Hints for users and models, which decide nothing.
    pub annotations: Annotations,
    /// Whether it may run in parallel with other calls of a batch.
    pub concurrency_safe: bool,
    /// Whether running it twice has the same effect as running it once.
    pub idempotent: bool,
    /// The class whose rules apply to the tool.
    pub class: Option<ToolClass>,
    /// Whether it only touches the run's own state, so that no active skill removes it. Trusted for built-in tools only.
    pub stays_in_run: bool,
    /// Whether strangers may write its results and read its arguments: a web page, a server's tool. The host declares this.
    pub open_world: bool,
    /// The category to browse by: `files`, `commands`, `web`, …
    pub category: Option<String>,
    /// Words that search finds it by.
    pub tags: Vec<String>,
    /// Other names for search; never callable.
    pub aliases: Vec<String>,
    /// The tool's own page.
    pub ui: Option<ToolUi>,
    /// Whether it is listed and callable.
    pub exposure: Exposure,
    /// The tool's own deadline, below the session's limit per call.
    pub timeout: Option<Duration>,
    /// When its calls may wait for a decision.
    pub suspension: Suspension,
    /// How to handle a large result; the session's default if absent.
    pub overflow: Option<Overflow>,
    /// Inline limit in tokens; the session's if absent.
    pub inline_tokens: Option<usize>,
    /// How it is declared to the model.
    pub declaration: Declaration,
    /// Its source: `builtin`, `host`, `mcp:SERVER`, `hook:AGENT`.
    pub source: String,
    /// Its listing by its own server, for a tool of an MCP server.
    pub listing: Option<Arc<Listing>>,
    /// What is said of its calls that did not run on their decision.
    pub phrases: CallPhrases,
}

impl ToolSpec {
    /// Creates a safe, listed tool of this host with this input schema.
    pub fn new(name: ToolName, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name,
            title: None,
            description: description.into(),
            i18n: BTreeMap::new(),
            input_schema: Arc::new(input_schema),
            output_schema: None,
            is_output_advisory: false,
            risk: Risk::Safe,
            annotations: Annotations::default(),
            concurrency_safe: false,
            idempotent: false,
            class: None,
            stays_in_run: false,
            open_world: false,
            category: None,
            tags: Vec::new(),
            aliases: Vec::new(),
            ui: None,
            exposure: Exposure::Listed,
            timeout: None,
            suspension: Suspension::default(),
            overflow: None,
            inline_tokens: None,
            declaration: Declaration::Schema,
            source: "host".into(),
            listing: None,
            phrases: CallPhrases::default(),
        }
    }

    /// Returns whether another program runs it, so that haft only judges and records.
    pub fn is_foreign(&self) -> bool {
        self.source.starts_with(FOREIGN)
    }

    /// Returns the hash of what the model sees: name, description, schemas, hints. Hex SHA-256; changes when that text changes.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        let parts = [
            self.name.as_str().to_owned(),
            self.description.clone(),
            self.input_schema.to_string(),
            self.output_schema
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            serde_json::to_string(&self.annotations).unwrap_or_default(),
        ];
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hex(&hasher.finalize())
    }

    /// Returns the description in this language: by exact tag, then primary language, then the base text.
    pub fn description_in(&self, locale: &str) -> &str {
        let primary = locale.split(['-', '_']).next().unwrap_or(locale);
        self.i18n
            .get(locale)
            .or_else(|| self.i18n.get(primary))
            .unwrap_or(&self.description)
    }
}

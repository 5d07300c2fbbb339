//! `ToolSpec`: what a tool says of itself, and what of that is proven.

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

pub(crate) use listing::Described;
pub use listing::Listing;

/// Longest tool name: the guidance of MCP 2025-11-25.
pub(crate) const MAX_NAME: usize = 128;

/// A tool's name: 1 to 128 of `A-Z a-z 0-9 _ . -` (the guidance of MCP 2025-11-25).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Arc<str>);

/// Why a text is no tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool name {0:?} is not 1 to 128 of A-Z a-z 0-9 _ . -")]
pub struct NameError(String);

impl ToolName {
    /// Checks and keeps a name.
    ///
    /// # Errors
    /// [`NameError`] where the text is not a valid tool name; the error says which names are.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            return Err(NameError(name.chars().take(MAX_NAME).collect()));
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
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

/// How much harm a call can do; ordered, `Safe < High < Critical`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Reads, or changes nothing that outlives the run.
    #[default]
    Safe,
    /// Changes files, runs commands, or reaches the network.
    High,
    /// Destroys what cannot be brought back.
    Critical,
}

impl Risk {
    /// The word in settings and outcomes.
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

/// Unproven hints for people and models, in MCP's words; never used to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Idempotent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches a world outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Whether a tool is shown, and whether it can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// Shown and callable.
    #[default]
    Listed,
    /// Found by search and callable, not shown.
    Searchable,
    /// Found by search, expanded by exact name, then callable.
    Deferred,
    /// Callable, never shown.
    Unlisted,
    /// Neither; may change while running.
    Hidden,
}

/// A class of tools, under the name that users of coding agents know: a rule may name it instead of tools.
///
/// A rule of a class with a specifier covers effects of its kind, whatever tool has them; a bare one also covers the plain call of
/// the tools that declare the class ([`ToolSpec::class`]).
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
    /// Connects commands to hosts.
    Network,
}

impl ToolClass {
    /// All classes.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Edit,
        Self::Bash,
        Self::WebFetch,
        Self::Network,
    ];

    /// The name in rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Edit => "Edit",
            Self::Bash => "Bash",
            Self::WebFetch => "WebFetch",
            Self::Network => "Network",
        }
    }
}

/// When a call of a tool may wait for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Suspension {
    /// Before it runs.
    #[default]
    Before,
    /// Also in a call within it; then it goes on where it was when it is made again. Only a tool that keeps a journal can.
    Within,
    /// Also after it ran, about what it did; when it is made again, it is told what was decided.
    After,
}

/// A user interface that belongs to a tool (MCP Apps).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolUi {
    /// Where the page is: `ui://…`.
    pub resource_uri: String,
    /// Content security policy the page asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csp: Option<Value>,
    /// Browser permissions the page asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Value>,
    /// Draw a border round it.
    #[serde(default)]
    pub prefers_border: bool,
}

impl ToolUi {
    /// The page of this tool alone, with nothing asked for.
    pub fn of(tool: &ToolName) -> Self {
        Self {
            resource_uri: format!("ui://haft/{tool}"),
            ..Self::default()
        }
    }
}

/// The page of a tool as the tool gives it: not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPage {
    /// What it says it is: `text/html`, with or without parameters.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl ToolPage {
    /// A page of HTML.
    pub fn html(text: impl Into<String>) -> Self {
        Self {
            media_type: "text/html".to_owned(),
            bytes: text.into().into_bytes(),
        }
    }
}

/// What to do with a result over the inline limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Keep it whole as an artifact, answer with a preview and its ref.
    Store,
    /// Cut it.
    Clip,
    /// Fail the call; the result is kept as an artifact.
    Fail,
}

/// Who declares the tool to the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Declaration {
    /// By its JSON Schema, in every dialect.
    #[default]
    Schema,
    /// By a declaration that the provider defines, keyed by provider id. A provider without an entry never sees the tool.
    Provider {
        /// Provider id to the exact declaration.
        specs: BTreeMap<String, Value>,
        /// Wire types of the calls this tool answers (`shell_call`, …); empty for a hosted tool.
        call_types: Vec<String>,
    },
}

/// The source word of the tools that come with haft.
pub const BUILTIN: &str = "builtin";

/// The beginning of the source word of tools that another program runs by itself: `hook:AGENT`.
pub const FOREIGN: &str = "hook:";

/// What a tool says of itself. Everything but name and schemas has a safe default.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a tool has or has not"
)]
pub struct ToolSpec {
    /// The name callers use.
    pub name: ToolName,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// Descriptions in other languages, by language tag.
    pub i18n: BTreeMap<String, String>,
    /// JSON Schema (2020-12) of the arguments: an object schema.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the structured result, checked after each call.
    pub output_schema: Option<Arc<Value>>,
    /// The least risk of any call; a call's permissions may raise it.
    pub risk: Risk,
    /// Unproven hints.
    pub annotations: Annotations,
    /// May run beside other calls of one batch.
    pub concurrency_safe: bool,
    /// Running it twice is as running it once.
    pub idempotent: bool,
    /// The class whose rules speak of the tool.
    pub class: Option<ToolClass>,
    /// It reaches nothing beyond the run's own state, so no active skill takes it away. Believed of built-in tools alone.
    pub stays_in_run: bool,
    /// What it gives may be written by strangers, and what it is given may reach them: a web page, a server's tool. The host states it.
    pub open_world: bool,
    /// For browsing: `files`, `commands`, `web`, …
    pub category: Option<String>,
    /// For search.
    pub tags: Vec<String>,
    /// Other names for search; never callable.
    pub aliases: Vec<String>,
    /// A page of its own.
    pub ui: Option<ToolUi>,
    /// Shown and callable?
    pub exposure: Exposure,
    /// A deadline of its own, below the session's limit for every call.
    pub timeout: Option<Duration>,
    /// When its calls may wait for a person.
    pub suspension: Suspension,
    /// What to do with a large result; the session's default where absent.
    pub overflow: Option<Overflow>,
    /// Inline limit in tokens; the session's where absent.
    pub inline_tokens: Option<usize>,
    /// Who declares it.
    pub declaration: Declaration,
    /// Where it comes from: `builtin`, `host`, `mcp:SERVER`, `hook:AGENT`.
    pub source: String,
    /// What its own server says of it, for a tool of an MCP server.
    pub listing: Option<Arc<Listing>>,
}

impl ToolSpec {
    /// A safe, listed tool from this host with this input schema.
    pub fn new(name: ToolName, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name,
            title: None,
            description: description.into(),
            i18n: BTreeMap::new(),
            input_schema: Arc::new(input_schema),
            output_schema: None,
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
        }
    }

    /// Whether another program runs it by itself, and haft only judges and records.
    pub fn is_foreign(&self) -> bool {
        self.source.starts_with(FOREIGN)
    }

    /// Hash over what the model is told: name, description, schemas, hints. Hex SHA-256; changes when the text sent changes.
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

    /// The description in this language: exact tag, then its primary language, then the base text.
    pub fn description_in(&self, locale: &str) -> &str {
        let primary = locale.split(['-', '_']).next().unwrap_or(locale);
        self.i18n
            .get(locale)
            .or_else(|| self.i18n.get(primary))
            .unwrap_or(&self.description)
    }
}

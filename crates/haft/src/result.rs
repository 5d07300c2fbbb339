//! `ToolResult`: what a tool gives; `Outcome`: what the call came to (contract §3).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::{CallId, Origin, RunId};
use crate::error::{ErrorKind, ToolError};
use crate::json;

mod model;
mod original;
#[cfg(test)]
mod tests;

pub use original::Original;

/// One piece of content for the model, in MCP's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A resource with its text.
    Resource {
        /// Its address.
        uri: String,
        /// Its text.
        text: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A resource by address alone.
    ResourceLink {
        /// Its address.
        uri: String,
        /// A name for people.
        name: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its size in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
}

impl Content {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a tool gives back.
#[derive(Debug, Default)]
pub struct ToolResult {
    /// For the model and for people.
    pub content: Vec<Content>,
    /// Large results that the tool kept itself; those that the executor keeps are added to them.
    pub artifacts: Vec<Artifact>,
    /// Structured content: compact JSON. A value that is no object is wrapped as `{"result": value}` by the executor.
    pub data: Option<Box<RawValue>>,
    /// Set when the tool ran and did not succeed, yet has something to show (a command's output).
    pub error: Option<ToolError>,
    /// One bounded line for a person; made from the content when absent.
    pub summary: Option<String>,
    /// How strongly the call was confined, for tools that run something.
    pub strength: Option<String>,
    /// What an MCP server sent, of which content and data were read.
    pub original: Option<Original>,
}

impl ToolResult {
    /// A text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// Structured content alone.
    ///
    /// # Errors
    /// The value cannot be serialized to JSON.
    pub fn data<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        Self::default().with_data(value)
    }

    /// Adds structured content.
    ///
    /// # Errors
    /// The value cannot be serialized to JSON.
    pub fn with_data<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, ToolError> {
        let raw = json::raw::write(value)
            .map_err(|e| ToolError::failed("the tool's result is not JSON").with_source(e))?;
        self.data = Some(raw);
        Ok(self)
    }

    /// Adds the one line for a person.
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Marks it as a failure that keeps what there is to show.
    pub fn with_error(mut self, error: ToolError) -> Self {
        self.error = Some(error);
        self
    }
}

/// How a call ended. Honest: a timeout is not an error, a cancelled call is not ok.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ran and succeeded.
    Ok,
    /// It was refused as malformed, or ran and failed.
    Error,
    /// A rule, a guard or a person said no.
    Denied,
    /// It waits for an approval.
    Suspended,
    /// The deadline passed.
    Timeout,
    /// Somebody ended it.
    Cancelled,
}

impl Status {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Suspended => "suspended",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A large result kept aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// `sha256-` and the hex hash of its bytes.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// Its beginning, at most 1 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What sort.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// One line of a chain's trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TracedCall {
    /// Its number within the chain, from 1.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// SHA-256 of the canonical arguments.
    pub args_digest: String,
    /// How it ended.
    pub status: Status,
    /// How long it took.
    pub duration_ms: f64,
}

/// What a call came to: the whole answer, for every caller (contract §3).
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The run it belongs to.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The tool's name as it was asked for.
    pub tool: String,
    /// Who asked.
    pub origin: Origin,
    /// How it ended.
    pub status: Status,
    /// One bounded line for a person.
    pub summary: String,
    /// For the model; within the inline limit.
    pub content: Vec<Content>,
    /// Structured content; an object, within the inline limit.
    pub data: Option<Box<RawValue>>,
    /// Large results kept aside.
    pub artifacts: Vec<Artifact>,
    /// Why not, where it did not succeed.
    pub error: Option<Failure>,
    /// A chain's trace.
    pub calls: Vec<TracedCall>,
    /// How strongly it was confined.
    pub strength: Option<String>,
    /// The approval it waits for.
    pub approval: Option<String>,
    /// What the person who runs haft can do about it: a rule, a setting, an approval. It is no part of the outcome's JSON and
    /// of no reply to a model; hosts show it to people alone.
    pub operator: Option<String>,
    /// From the first check to the end.
    pub duration: Duration,
    /// What an MCP server sent, for clients that speak MCP. It is no part of the outcome's JSON.
    pub original: Option<Original>,
}

impl Outcome {
    /// An outcome with nothing in it but how it ended, for what shows outcomes. Those of calls are made by the executor.
    pub fn new(run: RunId, call: CallId, tool: impl Into<String>, status: Status) -> Self {
        Self {
            run,
            call,
            tool: tool.into(),
            origin: Origin::Host,
            status,
            summary: String::new(),
            content: Vec::new(),
            data: None,
            artifacts: Vec::new(),
            error: None,
            calls: Vec::new(),
            strength: None,
            approval: None,
            operator: None,
            duration: Duration::ZERO,
            original: None,
        }
    }

    /// Whether it succeeded.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    /// All texts of the content, joined by newlines; empty for a call that failed or gave structured content alone. For the model
    /// there is [`to_model`](Self::to_model).
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|c| match c {
            Content::Text { text } | Content::Resource { text, .. } => Some(text.as_str()),
            Content::Image { .. } | Content::Audio { .. } | Content::ResourceLink { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        OutcomeJson::from(self).serialize(serializer)
    }
}

impl Outcome {
    /// The JSON that is kept for a caller who hears of the outcome later: nothing of it is missing then.
    pub(crate) fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&OutcomeJson {
            original: self.original.as_ref(),
            ..OutcomeJson::from(self)
        })
    }
}

/// The shape of contract §3; absent members are left out, never null.
#[derive(Serialize)]
struct OutcomeJson<'a> {
    v: u32,
    run: &'a RunId,
    call: &'a CallId,
    tool: &'a str,
    origin: Origin,
    status: Status,
    ok: bool,
    summary: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    content: &'a [Content],
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [Artifact],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    calls: &'a [TracedCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    strength: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<&'a Original>,
}

impl<'a> From<&'a Outcome> for OutcomeJson<'a> {
    fn from(o: &'a Outcome) -> Self {
        Self {
            v: 1,
            run: &o.run,
            call: &o.call,
            tool: &o.tool,
            origin: o.origin,
            status: o.status,
            ok: o.is_ok(),
            summary: &o.summary,
            content: &o.content,
            data: o.data.as_deref(),
            artifacts: &o.artifacts,
            error: o.error.as_ref(),
            calls: &o.calls,
            strength: o.strength.as_deref(),
            approval: o.approval.as_deref(),
            duration_ms: milliseconds(o.duration),
            original: None,
        }
    }
}

/// Milliseconds with three digits, as outcomes and audit lines show them.
pub fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

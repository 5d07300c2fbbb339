//! `ToolResult`: what a tool returns; `Outcome`: the complete answer to a call (contract §3).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::{CallId, Origin, RunId};
use crate::error::{ErrorKind, ToolError};
use crate::json;

mod original;
mod render;
mod stored;
#[cfg(test)]
mod tests;

pub use original::OriginalResult;
pub use render::{PartMark, RecordedEnd, RenderedOutcome, RenderedPart};

/// One piece of content for the model, in MCP's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A resource with its text.
    Resource {
        /// Its URI.
        uri: String,
        /// Its text.
        text: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A link to a resource.
    ResourceLink {
        /// Its URI.
        uri: String,
        /// A display name.
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
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a tool returns.
#[derive(Debug, Default)]
pub struct ToolResult {
    /// Content for the model and the user.
    pub content: Vec<Content>,
    /// Large results that the tool stored itself; the executor adds those that it stores.
    pub artifacts: Vec<Artifact>,
    /// Structured content: compact JSON. The executor wraps a value that is not an object as `{"result": value}`.
    pub data: Option<Box<RawValue>>,
    /// Whether the texts say in words what the data says, so that a reader of texts does not need the data.
    pub data_is_for_programs: bool,
    /// Sentences about the call that are no output of the tool: what it could not see, what was left out. They never replace output.
    pub notes: Vec<String>,
    /// Set if the tool ran and failed, but still has content to show (a command's output).
    pub error: Option<ToolError>,
    /// Set if this call did its part, but the call that it is a part of failed: a command's changes were applied, and the command failed.
    pub outer_error: Option<ToolError>,
    /// One bounded line for the user; derived from the content if absent.
    pub summary: Option<String>,
    /// How strongly the call was confined, for tools that run programs.
    pub strength: Option<String>,
    /// The original response of an MCP server, from which content and data were read.
    pub original: Option<OriginalResult>,
}

impl ToolResult {
    /// Creates a result with only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// Creates a result with only structured content.
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

    /// Adds structured content for programs: the texts say the same in words.
    ///
    /// # Errors
    /// The value cannot be serialized to JSON.
    pub fn with_data_for_programs<T: Serialize + ?Sized>(
        self,
        value: &T,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            data_is_for_programs: true,
            ..self.with_data(value)?
        })
    }

    /// Adds a note about the call.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the one-line summary for the user.
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Marks the result as a failure; its content is kept.
    pub fn with_error(mut self, error: ToolError) -> Self {
        self.error = Some(error);
        self
    }
}

/// How a call ended. Accurate: a timeout is not an error, and a cancelled call is not ok.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The call ran and succeeded.
    Ok,
    /// The call was refused as malformed, or ran and failed.
    Error,
    /// A rule, a guard or the user denied it.
    Denied,
    /// The call waits for an approval.
    Suspended,
    /// The call's deadline passed.
    Timeout,
    /// The call was cancelled.
    Cancelled,
}

impl Status {
    pub(crate) const ALL: [Self; 6] = [
        Self::Ok,
        Self::Error,
        Self::Denied,
        Self::Suspended,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// Returns the word used on the wire.
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

/// A large result stored as an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// `sha256-` and the hex hash of its bytes.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The beginning of its content, at most 1 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// One entry of a chain's trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TracedCall {
    /// Its number within the chain, from 1.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// SHA-256 hash of the canonical arguments.
    pub args_digest: String,
    /// How it ended.
    pub status: Status,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
}

/// The complete answer to a call, for every caller (contract §3).
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The run it belongs to.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The tool's name as the caller wrote it.
    pub tool: String,
    /// The call's origin.
    pub origin: Origin,
    /// How it ended.
    pub status: Status,
    /// One bounded line for the user.
    pub summary: String,
    /// Content for the model; within the inline limit.
    pub content: Vec<Content>,
    /// Structured content; an object, within the inline limit.
    pub data: Option<Box<RawValue>>,
    /// Whether the texts say in words what the data says, so that a reader of texts does not need the data.
    pub data_is_for_programs: bool,
    /// What haft or the tool adds about the call; never a part of its output.
    pub notes: Vec<String>,
    /// Large results stored as artifacts.
    pub artifacts: Vec<Artifact>,
    /// Why the call did not succeed, if so.
    pub error: Option<Failure>,
    /// Why the call that this one is a part of did not succeed, although this one did.
    pub outer_error: Option<Failure>,
    /// A chain's trace.
    pub calls: Vec<TracedCall>,
    /// How strongly the call was confined.
    pub strength: Option<String>,
    /// The approval it waits for.
    pub approval: Option<String>,
    /// What the operator can do about it: a rule, a setting, an approval. It is not part of the outcome's JSON nor of any reply to a
    /// model; hosts show it to people only.
    pub operator: Option<String>,
    /// Time from the first check to the end.
    pub duration: Duration,
    /// The original response of an MCP server, for MCP clients. It is not part of the outcome's JSON.
    pub original: Option<OriginalResult>,
}

impl Outcome {
    /// Creates an outcome that only has a status, for code that displays outcomes. The executor creates those of calls.
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
            data_is_for_programs: false,
            notes: Vec::new(),
            artifacts: Vec::new(),
            error: None,
            outer_error: None,
            calls: Vec::new(),
            strength: None,
            approval: None,
            operator: None,
            duration: Duration::ZERO,
            original: None,
        }
    }

    /// Returns whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    /// Returns the outcome of a call's part as that of the call: it failed where that did.
    #[must_use]
    pub fn into_outer(mut self) -> Self {
        if let Some(failure) = self.outer_error.take() {
            self.status = status_of(failure.kind);
            first_line(&failure.message).clone_into(&mut self.summary);
            self.error = Some(failure);
        }
        self
    }

    /// Returns all texts of the content, joined by newlines; empty for a call that failed or returned only structured content. The text
    /// for the model is [`to_model`](Self::to_model).
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
    /// Returns the JSON stored for a caller that receives the outcome later; it contains everything.
    pub(crate) fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&OutcomeJson {
            original: self.original.as_ref(),
            ..OutcomeJson::from(self)
        })
    }
}

/// The JSON shape of contract §3; absent members are left out, never null.
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
    #[serde(
        rename = "data_for_programs",
        skip_serializing_if = "std::ops::Not::not"
    )]
    data_is_for_programs: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [Artifact],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outer_error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    calls: &'a [TracedCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    strength: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<&'a OriginalResult>,
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
            data_is_for_programs: o.data_is_for_programs,
            notes: &o.notes,
            artifacts: &o.artifacts,
            error: o.error.as_ref(),
            outer_error: o.outer_error.as_ref(),
            calls: &o.calls,
            strength: o.strength.as_deref(),
            approval: o.approval.as_deref(),
            duration_ms: milliseconds(o.duration),
            original: None,
        }
    }
}

/// Returns milliseconds with three decimals, as outcomes and audit lines show them.
pub fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// Returns the status for a failure of this kind.
pub(crate) fn status_of(kind: ErrorKind) -> Status {
    match kind {
        ErrorKind::Denied => Status::Denied,
        ErrorKind::Timeout => Status::Timeout,
        ErrorKind::Cancelled => Status::Cancelled,
        ErrorKind::NotFound
        | ErrorKind::InvalidArguments
        | ErrorKind::Conflict
        | ErrorKind::Budget
        | ErrorKind::Unavailable
        | ErrorKind::Failed => Status::Error,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

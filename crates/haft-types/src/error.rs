//! `ToolError`: a failure of a tool, or of a check before it, that the caller should see.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::approval_id::ApprovalId;

mod context;
mod failure;

pub use context::Context;
pub use failure::HostFailure;

/// The return type of a tool's function: `haft_types::error::Result<Balance>`.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// The kind of a failure; on the wire, `error.kind` of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No such tool, file, task or artifact.
    NotFound,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// The target changed since the caller last saw it, or exists already.
    Conflict,
    /// A limit of the run is used up.
    Budget,
    /// A part that the call needs is unavailable now: a jail, an archive, a server.
    Unavailable,
    /// The tool ran and failed.
    Failed,
    /// A rule, a guard or the user denied it.
    Denied,
    /// The host's deadline passed.
    Timeout,
    /// The caller or the session ended the call.
    Cancelled,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::NotFound,
        Self::InvalidArguments,
        Self::Conflict,
        Self::Budget,
        Self::Unavailable,
        Self::Failed,
        Self::Denied,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// Returns the word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::InvalidArguments => "invalid_arguments",
            Self::Conflict => "conflict",
            Self::Budget => "budget",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Maximum length of a failure's message or advice, in bytes. Both may repeat input, and go to every client unchanged.
pub const LONGEST_MESSAGE: usize = 4096;

/// Cuts the text to [`LONGEST_MESSAGE`] bytes.
pub fn bounded(mut text: String) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() > LONGEST_MESSAGE {
        text.truncate(text.floor_char_boundary(LONGEST_MESSAGE - ELLIPSIS.len()));
        text.push_str(ELLIPSIS);
    }
    text
}

/// A failure that the caller should see: what happened, and what to do next.
///
/// Message and advice reach the model. What only the operator can do about it (a rule, a setting, an approval) goes into
/// [`for_operator`](Self::for_operator); the `source` is for the log. Neither of these reaches the model.
#[derive(Debug)]
pub struct ToolError {
    kind: ErrorKind,
    message: String,
    advice: Option<String>,
    operator: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    waits_for: Option<ApprovalId>,
}

impl ToolError {
    /// Creates a failure of this kind; `message` is a lower-case fragment that names the thing, cut at [`LONGEST_MESSAGE`].
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: bounded(message.into()),
            advice: None,
            operator: None,
            source: None,
            waits_for: None,
        }
    }

    /// Not a failure: ends the call as suspended; it continues once this request is decided.
    pub fn suspended(approval: ApprovalId, message: impl Into<String>) -> Self {
        Self {
            waits_for: Some(approval),
            ..Self::new(ErrorKind::Unavailable, message)
        }
    }

    /// Returns the request that a suspended call waits for.
    pub fn waits_for(&self) -> Option<&ApprovalId> {
        self.waits_for.as_ref()
    }

    /// Creates the error of a tool that ran and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Creates the error for wrong arguments.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArguments, message)
    }

    /// Creates the error for something that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Creates the error for something that changed or exists already.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// Creates the error of a tool's own guard that refuses.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// Creates the error for a needed part that is missing now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Sets what the caller can do next, cut at [`LONGEST_MESSAGE`].
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(bounded(advice.into()));
        self
    }

    /// Sets what the operator can do about it, cut at [`LONGEST_MESSAGE`]; never sent to a model.
    pub fn for_operator(mut self, advice: impl Into<String>) -> Self {
        self.operator = Some(bounded(advice.into()));
        self
    }

    /// Sets the cause, for the log.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns what happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do next, if there is advice.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// Returns what the operator can do about it, if there is advice.
    pub fn operator_advice(&self) -> Option<&str> {
        self.operator.as_deref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

//! `ToolError`: how a tool, or a check before it, may fail so that the caller should hear it.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::approval::id::ApprovalId;

mod context;
mod failure;

pub use context::Context;
pub use failure::Failure;

/// What a tool's function returns: `haft::Result<Balance>`.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// What sort of failure it was; the word on the wire (`error.kind` of an outcome).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No such tool, file, task or artifact.
    NotFound,
    /// The arguments are not what the tool's schema allows.
    InvalidArguments,
    /// The thing changed since the caller last saw it, or exists already.
    Conflict,
    /// A limit of the run is used up.
    Budget,
    /// A part that the call needs is not there now: a jail, an archive, a server.
    Unavailable,
    /// The tool ran and did not succeed.
    Failed,
    /// A rule, a guard or a person said no.
    Denied,
    /// The host's deadline passed.
    Timeout,
    /// The caller or the session ended the call.
    Cancelled,
}

impl ErrorKind {
    /// The word on the wire.
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

/// The longest message or advice of a failure, in bytes. Both may repeat what came in, and go to every client as they are.
pub const LONGEST_MESSAGE: usize = 4096;

/// The text, or its beginning where it is longer than [`LONGEST_MESSAGE`].
pub fn bounded(mut text: String) -> String {
    const CUT: &str = "…";
    if text.len() > LONGEST_MESSAGE {
        text.truncate(text.floor_char_boundary(LONGEST_MESSAGE - CUT.len()));
        text.push_str(CUT);
    }
    text
}

/// A failure the caller should hear: what happened, and what to do next.
///
/// Message and advice reach the model. What only the person who runs haft can do about it (a rule, a setting, an approval)
/// is [`for_operator`](Self::for_operator) alone; the `source` is for the log. Neither reaches the model.
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
    /// A failure of this kind; `message` is a lower-case fragment that names the thing, cut at [`LONGEST_MESSAGE`].
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

    /// No failure: the call goes on when a person has decided about this request, and ends as suspended here.
    pub fn suspended(approval: ApprovalId, message: impl Into<String>) -> Self {
        Self {
            waits_for: Some(approval),
            ..Self::new(ErrorKind::Unavailable, message)
        }
    }

    /// What the call waits for, where it is suspended.
    pub fn waits_for(&self) -> Option<&ApprovalId> {
        self.waits_for.as_ref()
    }

    /// The tool ran and did not succeed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// The arguments are wrong.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArguments, message)
    }

    /// No such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// It changed, or exists already.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// A guard of the tool's own refuses.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// A needed part is missing now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Adds what the caller can do next, cut at [`LONGEST_MESSAGE`].
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(bounded(advice.into()));
        self
    }

    /// Adds what the person who runs haft can do about it, cut at [`LONGEST_MESSAGE`]; no model is told.
    pub fn for_operator(mut self, advice: impl Into<String>) -> Self {
        self.operator = Some(bounded(advice.into()));
        self
    }

    /// Adds the cause, for the log.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What sort of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do next, where there is something.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// What the person who runs haft can do about it, where there is something.
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

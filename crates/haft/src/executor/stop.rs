//! `Stop`: why a call ends before its last stage.

use crate::audit::AuditError;
use crate::error::{ErrorKind, ToolError};
use crate::result::{Artifact, Failure, Status, ToolResult};

/// Why a call ended early, and what there is to show for it.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) status: Status,
    pub(super) failure: Failure,
    pub(super) artifacts: Vec<Artifact>,
}

impl Stop {
    /// An early end of this kind; the status follows from the kind.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let failure = Failure {
            kind,
            message: message.into(),
            advice: None,
        };
        Self {
            status: status(kind),
            failure,
            artifacts: Vec::new(),
        }
    }

    /// Adds what to do next; nothing where the text is empty.
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.failure.advice = Some(advice.into()).filter(|text| !text.is_empty());
        self
    }
}

/// The honest status of a failure.
pub(super) fn status(kind: ErrorKind) -> Status {
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

/// What the caller hears of a tool's failure; its cause goes to the log.
pub(super) fn failure(error: &ToolError) -> Failure {
    if let Some(source) = std::error::Error::source(error) {
        tracing::debug!(error = %error, cause = %source, "tool failed");
    }
    Failure {
        kind: error.kind(),
        message: error.message().to_owned(),
        advice: error.advice().map(str::to_owned),
    }
}

impl From<ToolError> for Stop {
    fn from(error: ToolError) -> Self {
        Self {
            status: status(error.kind()),
            failure: failure(&error),
            artifacts: Vec::new(),
        }
    }
}

impl From<AuditError> for Stop {
    fn from(error: AuditError) -> Self {
        Self::new(
            ErrorKind::Unavailable,
            format!("the call was refused: {error}"),
        )
        .advise("nothing runs unrecorded; make room or mend the state folder, then call again")
    }
}

/// What a tool gave: a result, or a failure without anything to show.
pub(super) type Given = Result<ToolResult, ToolError>;

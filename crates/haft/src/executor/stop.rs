//! `Stop`: why a call ends before its last stage.

use crate::approval::{ApprovalId, ApprovalRequest};
use crate::audit::AuditError;
use crate::error::{ErrorKind, ToolError, bounded};
use crate::executor::shape::Shaped;
use crate::result::{Artifact, Content, Failure, Status, ToolResult};

/// Why a call ended early, and what there is to show for it.
pub(super) struct Stop {
    pub(super) status: Status,
    pub(super) failure: Failure,
    /// What people can do about it; no model is told.
    pub(super) operator: Option<String>,
    pub(super) artifacts: Vec<Artifact>,
    /// The whole answer, where it is no failure: suspended, or answered without the tool.
    pub(super) instead: Option<Box<Shaped>>,
}

impl Stop {
    /// An end that is no failure.
    pub(super) fn instead(shaped: Shaped) -> Self {
        let mut stop = Self::new(ErrorKind::Unavailable, "");
        stop.instead = Some(Box::new(shaped));
        stop
    }

    /// The call waits for a person, and nobody waits for the call.
    pub(super) fn suspended(request: &ApprovalRequest) -> Self {
        let what = if request.is_question() {
            "answer"
        } else {
            "approve"
        };
        Self::waiting(
            &request.id,
            &format!(
                "{} waits for a person ({}). Calling again with the same arguments gives the result once they have decided.",
                request.tool, request.reason
            ),
        )
        .for_operator(format!("`haft approvals {what} {}`", request.id))
    }

    /// The call waits for what another call asked.
    pub(super) fn waiting(approval: &ApprovalId, words: &str) -> Self {
        Self::instead(Shaped {
            status: Status::Suspended,
            summary: Some(format!("waits for a person: approval {approval}")),
            content: vec![Content::text(words)],
            data: None,
            artifacts: Vec::new(),
            error: None,
            strength: None,
            approval: Some(approval.to_string()),
            calls: None,
            operator: None,
        })
    }

    /// An early end of this kind; the status follows from the kind.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let failure = Failure {
            kind,
            message: bounded(message.into()),
            advice: None,
        };
        Self {
            status: status(kind),
            failure,
            operator: None,
            artifacts: Vec::new(),
            instead: None,
        }
    }

    /// Adds a note to the whole answer, where there is one; else to the failure.
    pub(super) fn with_note(mut self, note: String) -> Self {
        match &mut self.instead {
            Some(shaped) => {
                if let Some(summary) = &mut shaped.summary {
                    *summary = format!("earlier outcome: {summary}");
                }
                shaped.content.push(Content::text(note));
                self
            }
            None => self.advise(note),
        }
    }

    /// Adds what to do next, where nothing is said of that yet.
    pub(super) fn or_advise(self, advice: &str) -> Self {
        if self.failure.advice.is_some() || self.instead.is_some() {
            return self;
        }
        self.advise(advice)
    }

    /// Adds what people can do about it, cut at [`LONGEST_MESSAGE`](crate::error::LONGEST_MESSAGE); nothing where the text is
    /// empty.
    pub(super) fn for_operator(mut self, advice: impl Into<String>) -> Self {
        self.operator = Some(bounded(advice.into())).filter(|text| !text.is_empty());
        self
    }

    /// The same, where nothing is said of that yet.
    pub(super) fn or_for_operator(self, advice: &str) -> Self {
        if self.operator.is_some() || self.instead.is_some() {
            return self;
        }
        self.for_operator(advice)
    }

    /// Adds what to do next; nothing where the text is empty.
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.failure.advice = Some(bounded(advice.into())).filter(|text| !text.is_empty());
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
        if let Some(approval) = error.waits_for() {
            let waiting = Self::waiting(approval, error.message());
            return waiting.for_operator(error.operator_advice().unwrap_or_default());
        }
        Self {
            status: status(error.kind()),
            failure: failure(&error),
            operator: error.operator_advice().map(str::to_owned),
            artifacts: Vec::new(),
            instead: None,
        }
    }
}

impl From<AuditError> for Stop {
    fn from(error: AuditError) -> Self {
        Self::new(
            ErrorKind::Unavailable,
            format!("the call was refused: {error}"),
        )
        .advise("nothing runs unrecorded; call again when the record can be written")
        .for_operator("make room or mend the state folder")
    }
}

/// What a tool gave: a result, or a failure without anything to show.
pub(super) type Given = Result<ToolResult, ToolError>;

//! `EarlyEnd`: why a call ended before its last stage.

use crate::approval::{ApprovalId, ApprovalRequest};
use crate::audit::AuditError;
use crate::error::{ErrorKind, ToolError, bounded};
use crate::executor::call_result::OutcomeContent;
use crate::result::{Artifact, Content, Failure, Status, ToolResult, status_of};

/// Why a call ended early.
pub(super) enum EarlyEnd {
    /// The call was refused, or it failed.
    Failed(FailedCall),
    /// The call waits for a decision.
    Suspended(SuspendedEnd),
    /// The call was answered without its tool.
    Answered(Box<OutcomeContent>),
}

/// A failure, with artifacts to show. The status follows from its kind.
pub(super) struct FailedCall {
    failure: Failure,
    artifacts: Vec<Artifact>,
    /// Set if it is the outcome of an earlier call.
    note: Option<Box<str>>,
    /// Advice for operators; never sent to a model.
    operator: Option<String>,
}

/// A call that waits for a decision.
pub(super) struct SuspendedEnd {
    /// The request that it waits for.
    pub(super) approval: ApprovalId,
    /// The message for its client.
    pub(super) words: String,
    note: Option<Box<str>>,
    /// Advice for operators; never sent to a model.
    operator: Option<String>,
}

impl EarlyEnd {
    /// Creates a failure of this kind.
    pub(super) fn failed(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Failed(FailedCall {
            failure: Failure {
                kind,
                message: bounded(message.into()),
                advice: None,
            },
            artifacts: Vec::new(),
            note: None,
            operator: None,
        })
    }

    /// Creates the end of a suspended call: its request is pending and nothing waits for it in this process.
    pub(super) fn suspended(request: &ApprovalRequest) -> Self {
        Self::pending_elsewhere(
            &request.id,
            format!(
                "{} needs approval ({}), and the request is pending. Call again with the same arguments to get the result once it is decided.",
                request.tool, request.reason
            ),
        )
        .for_operator(request.decision_advice())
    }

    /// Creates the end of a call that waits for a request of another call.
    pub(super) fn pending_elsewhere(approval: &ApprovalId, words: impl Into<String>) -> Self {
        Self::Suspended(SuspendedEnd {
            approval: approval.clone(),
            words: words.into(),
            note: None,
            operator: None,
        })
    }

    /// Creates the end of a call that was answered without its tool.
    pub(super) fn answered(result: OutcomeContent) -> Self {
        Self::Answered(Box::new(result))
    }

    /// Returns the kind of failure, if it is one.
    pub(super) fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Failed(failed) => Some(failed.failure.kind),
            Self::Suspended(_) | Self::Answered(_) => None,
        }
    }

    /// Converts it into a failure, for callers that only ask what would happen to a call.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Failed(failed) => failed.failure,
            Self::Suspended(waiting) => Failure {
                kind: ErrorKind::Unavailable,
                message: waiting.words,
                advice: None,
            },
            Self::Answered(result) => Failure {
                kind: ErrorKind::Unavailable,
                message: result.text(),
                advice: None,
            },
        }
    }

    /// Like [`into_failure`](Self::into_failure), with the advice for operators.
    pub(super) fn into_failure_for_people(self) -> Failure {
        let operator = match &self {
            Self::Failed(failed) => failed.operator.clone(),
            Self::Suspended(waiting) => waiting.operator.clone(),
            Self::Answered(result) => result.operator.clone(),
        };
        let failure = self.into_failure();
        Failure {
            advice: operator.or(failure.advice),
            ..failure
        }
    }

    /// Adds an artifact to a failure.
    pub(super) fn with_artifact(mut self, artifact: Artifact) -> Self {
        if let Self::Failed(failed) = &mut self {
            failed.artifacts.push(artifact);
        }
        self
    }

    /// Notes that the outcome is that of an earlier call.
    pub(super) fn note_earlier(mut self, note: String) -> Self {
        let slot = match &mut self {
            Self::Answered(result) => {
                if let Some(summary) = &mut result.summary {
                    *summary = format!("earlier outcome: {summary}");
                }
                result.notes.push(note);
                return self;
            }
            Self::Failed(failed) => &mut failed.note,
            Self::Suspended(waiting) => &mut waiting.note,
        };
        *slot = Some(note.into());
        self
    }

    /// Sets the advice of a failure; an empty text sets none.
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        if let Self::Failed(failed) = &mut self {
            failed.failure.advice = Some(bounded(advice.into())).filter(|text| !text.is_empty());
        }
        self
    }

    /// Sets the advice of a failure that has none yet.
    pub(super) fn or_advise(self, advice: &str) -> Self {
        match &self {
            Self::Failed(failed) if failed.failure.advice.is_none() => self.advise(advice),
            _ => self,
        }
    }

    /// Sets the advice for operators, cut at [`LONGEST_MESSAGE`](crate::error::LONGEST_MESSAGE); an empty text sets none.
    pub(super) fn for_operator(mut self, advice: impl Into<String>) -> Self {
        let advice = Some(bounded(advice.into())).filter(|text| !text.is_empty());
        match &mut self {
            Self::Failed(failed) => failed.operator = advice,
            Self::Suspended(waiting) => waiting.operator = advice,
            Self::Answered(result) => result.operator = advice,
        }
        self
    }

    /// Sets the advice for operators of a failure that has none yet.
    pub(super) fn or_for_operator(self, advice: &str) -> Self {
        match &self {
            Self::Failed(failed) if failed.operator.is_none() => self.for_operator(advice),
            _ => self,
        }
    }
}

/// The error that the asking tool receives; a suspended call stays suspended.
impl From<EarlyEnd> for ToolError {
    fn from(end: EarlyEnd) -> Self {
        let (error, operator) = match end {
            EarlyEnd::Suspended(waiting) => {
                let error = Self::suspended(waiting.approval, waiting.words);
                (error, waiting.operator)
            }
            EarlyEnd::Answered(result) => {
                let error = Self::new(ErrorKind::Failed, result.text());
                (error, result.operator)
            }
            EarlyEnd::Failed(failed) => {
                let error = Self::new(failed.failure.kind, failed.failure.message);
                let error = match failed.failure.advice {
                    Some(advice) => error.with_advice(advice),
                    None => error,
                };
                (error, failed.operator)
            }
        };
        match operator {
            Some(advice) => error.for_operator(advice),
            None => error,
        }
    }
}

impl From<EarlyEnd> for OutcomeContent {
    fn from(end: EarlyEnd) -> Self {
        match end {
            EarlyEnd::Answered(result) => *result,
            EarlyEnd::Failed(failed) => Self {
                artifacts: failed.artifacts,
                notes: failed.note.into_iter().map(String::from).collect(),
                operator: failed.operator,
                ..Self::of(status_of(failed.failure.kind)).with_error(failed.failure)
            },
            EarlyEnd::Suspended(waiting) => Self {
                summary: Some(format!("pending: approval {}", waiting.approval)),
                content: vec![Content::text(waiting.words)],
                notes: waiting.note.into_iter().map(String::from).collect(),
                approval: Some(waiting.approval.to_string()),
                operator: waiting.operator,
                ..Self::of(Status::Suspended)
            },
        }
    }
}

/// Returns the part of a tool's failure that the caller sees; its cause goes to the log.
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

impl From<ToolError> for EarlyEnd {
    fn from(error: ToolError) -> Self {
        let operator = error.operator_advice().map(str::to_owned);
        if let Some(approval) = error.waits_for() {
            return Self::pending_elsewhere(approval, error.message())
                .for_operator(operator.unwrap_or_default());
        }
        Self::Failed(FailedCall {
            failure: failure(&error),
            artifacts: Vec::new(),
            note: None,
            operator,
        })
    }
}

impl From<AuditError> for EarlyEnd {
    fn from(error: AuditError) -> Self {
        Self::failed(
            ErrorKind::Unavailable,
            format!("the call was refused: {error}"),
        )
        .advise("nothing runs unrecorded; call again when the record can be written")
        .for_operator("free disk space or repair the state folder")
    }
}

/// What a tool returned: a result, or a failure with no content.
pub(super) type ToolReturn = Result<ToolResult, ToolError>;

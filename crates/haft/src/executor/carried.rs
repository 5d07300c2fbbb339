//! `CarriedCall`: what is known of the call that a decided one carries on, so that it is not lost where the decided one does not run.

use std::sync::Arc;

use crate::approval::ApprovalRequest;
use crate::arguments::Arguments;
use crate::error::{ErrorKind, bounded};
use crate::executor::ExecutorParts;
use crate::executor::call_result::OutcomeContent;
use crate::executor::early_end::failure;
use crate::executor::effects;
use crate::result::Failure;
use crate::tool::Tool;

/// A decided call of an internal tool, which carries on what another call has begun.
pub(super) struct CarriedCall {
    tool: Arc<dyn Tool>,
    arguments: Arguments,
}

impl CarriedCall {
    /// Returns the call of this request if its tool is internal.
    pub(super) fn of(parts: &ExecutorParts, request: &ApprovalRequest) -> Option<Self> {
        let tool = parts.internal_tool(request)?;
        let arguments = Arguments::new(request.arguments.clone());
        Some(Self { tool, arguments })
    }

    /// Adds what the call that it carries on gave to the end of one that did not run.
    pub(super) fn complete(&self, end: OutcomeContent) -> OutcomeContent {
        let why = match &end.error {
            _ if end.data.is_some() => return end,
            Some(why) if matches!(why.kind, ErrorKind::Denied | ErrorKind::Conflict) => why.clone(),
            // It may have run in part.
            Some(_) => return end,
            None => answered(&end),
        };
        let Some(left) = effects::without_running(&self.tool, &self.arguments, &why) else {
            return end;
        };
        OutcomeContent {
            content: [end.content, left.content].concat(),
            data: left.data,
            data_is_for_programs: left.data_is_for_programs,
            notes: [end.notes, left.notes].concat(),
            artifacts: left.artifacts,
            strength: left.strength,
            outer_error: left.outer_error.as_ref().map(failure),
            ..end
        }
    }
}

/// Returns why a call did not run that a user has answered in place of its tool.
fn answered(end: &OutcomeContent) -> Failure {
    let by = end.summary.as_deref().unwrap_or("answered");
    Failure {
        kind: ErrorKind::Denied,
        message: bounded(format!("{by}: {}", end.text())),
        advice: None,
    }
}

//! `RequestClaim`: a decision that one call has claimed. The inbox gets the call's outcome, whatever happens.

use std::sync::Arc;

use serde_json::json;

use crate::approval::ApprovalId;
use crate::approval::inbox::WaitingCalls;
use crate::error::ErrorKind;
use crate::executor::call_result::OutcomeContent;
use crate::executor::early_end::EarlyEnd;
use crate::result::Outcome;

/// A claim to be finished. Dropping it reports the call as cancelled.
#[derive(Debug)]
pub(super) struct RequestClaim {
    inbox: Arc<dyn WaitingCalls>,
    id: ApprovalId,
    finished: bool,
}

impl RequestClaim {
    /// Creates the claim of this request.
    pub(super) fn new(inbox: &Arc<dyn WaitingCalls>, id: &ApprovalId) -> Self {
        Self {
            inbox: Arc::clone(inbox),
            id: id.clone(),
            finished: false,
        }
    }

    /// Returns the request.
    pub(super) fn id(&self) -> &ApprovalId {
        &self.id
    }

    /// Marks a question's answer as delivered; nothing runs because of it.
    pub(super) async fn mark_answered(mut self) {
        self.finished = true;
        let delivered = self.inbox.deliver(&self.id).await;
        if let Err(error) = delivered {
            tracing::error!(%error, id = %self.id, "say that an answer was taken in");
        }
    }

    /// Stores the call's outcome, and whether the client receives it now.
    pub(super) async fn finish(mut self, outcome: &Outcome, delivered: bool) {
        let Ok(text) = outcome.to_stored() else {
            return;
        };
        let finished = self.inbox.finish(&self.id, &text, delivered).await;
        self.finished = true;
        if let Err(error) = finished {
            // The call has run and is recorded; the inbox will mark the request as in doubt.
            tracing::error!(%error, id = %self.id, "say how an approved call ended");
        }
    }
}

impl Drop for RequestClaim {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (inbox, id) = (Arc::clone(&self.inbox), self.id.clone());
        let outcome = json!({
            "v": 1, "status": "cancelled", "ok": false, "summary": "the caller went away",
            "error": {"kind": "cancelled", "message": "the caller went away"},
        });
        runtime.spawn(async move { inbox.finish(&id, &outcome.to_string(), true).await });
    }
}

/// Returns the outcome of a request that another call ran, as this call's own.
pub(super) fn repeat_outcome(id: &ApprovalId, outcome: Option<&str>) -> EarlyEnd {
    match outcome.and_then(OutcomeContent::stored) {
        Some(result) => EarlyEnd::answered(result),
        None => EarlyEnd::failed(
            ErrorKind::Unavailable,
            format!("the call of approval {id} has run, but its outcome cannot be read"),
        ),
    }
}

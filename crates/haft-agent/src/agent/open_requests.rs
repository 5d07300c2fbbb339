//! Ends the requests of a call that gets its answer, so that no later decision runs a call about which the model was
//! told something else.

use haft::approval::ApprovalId;
use haft::approval::inbox::{InboxError, RequestEnding};
use haft::text::clip;

use crate::agent::Agent;

/// Maximum length of an answer that a withdrawn request quotes.
const MAX_QUOTE: usize = 200;

impl Agent {
    /// Withdraws the requests that a call waited for, because the call is answered now. A request that was acted on
    /// stays as it is.
    pub(super) async fn end_requests(&self, place: usize, answer: &str) {
        let slot = self.history.open().and_then(|open| open.slots.get(place));
        let Some(slot) = slot else { return };
        let ids = slot.approval.iter().chain(&slot.earlier);
        let ids: Vec<ApprovalId> = ids.map(|id| ApprovalId::new(id.as_str())).collect();
        let first = answer.lines().next().unwrap_or_default();
        let why = format!("its call has ended without it: {}", clip(first, MAX_QUOTE));
        for id in ids {
            if let Err(error) = self.end_request(&id, &why).await {
                tracing::warn!(%error, %id, "withdraw the request of a call that has ended");
            }
        }
    }

    async fn end_request(&self, id: &ApprovalId, why: &str) -> Result<(), InboxError> {
        let inbox = self.executor.inbox();
        // In this order, so that an approval that arrives in between is made void.
        inbox.end(id, RequestEnding::Withdrawn, why).await?;
        inbox.end(id, RequestEnding::Void, why).await
    }
}

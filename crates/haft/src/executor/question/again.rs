//! A question that a command asks again: each of its calls is a run of its own, and the inbox identifies questions by run.

use crate::approval::inbox::RequestStatus;
use crate::approval::suspended::{SuspendedCall, SuspendedError};
use crate::approval::{ApprovalId, ApprovalRequest, Decision};
use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::error::HostFailure;
use crate::executor::ExecutorParts;
use crate::executor::again::{of, unknown};
use crate::executor::ask::not_recorded;
use crate::executor::early_end::EarlyEnd;

/// The key that identifies a question when it is asked again; `None` if its own run finds it.
pub(super) struct RepeatKey {
    key: Option<String>,
}

/// The state of the question from an earlier call.
pub(super) enum EarlierQuestion {
    /// It was not asked before.
    None,
    /// It is pending.
    Waits(Box<ApprovalRequest>),
    /// The user decided it.
    Decided(Box<Decision>),
}

impl RepeatKey {
    /// Creates the key of this call's question.
    pub(super) fn of(parts: &ExecutorParts, context: &CallContext, arguments: &Arguments) -> Self {
        let session = &context.session;
        let alone = session.is_for_one_call() && session.nest().is_none();
        let key = alone.then(|| of(parts, session, &context.entry, arguments.as_str()));
        Self { key }
    }

    /// Returns the newest identical question that is pending or decided. A decision is returned once.
    pub(super) async fn find_earlier(
        &self,
        parts: &ExecutorParts,
    ) -> Result<EarlierQuestion, EarlyEnd> {
        let Some(key) = &self.key else {
            return Ok(EarlierQuestion::None);
        };
        let found = parts.suspended.find(key).await.map_err(|e| unknown(&e))?;
        for call in found.into_iter().filter(|call| call.alone) {
            let entry = parts.inbox.get(&call.approval).await;
            let entry = entry.map_err(|e| not_recorded(&e))?;
            let Some(entry) = entry.filter(|entry| entry.request.is_question()) else {
                continue;
            };
            if entry.is_open() {
                return Ok(EarlierQuestion::Waits(Box::new(entry.request)));
            }
            let forgotten = parts.suspended.forget(&call.run, &call.call).await;
            forgotten.map_err(|e| unknown(&e))?;
            let ended = matches!(
                entry.status,
                RequestStatus::Answered | RequestStatus::Denied | RequestStatus::Done
            );
            if let Some(decision) = entry.decision.filter(|_| ended) {
                // No other process needs to act on it any more.
                let _ = parts.inbox.claim(&call.approval).await;
                let _ = parts.inbox.deliver(&call.approval).await;
                return Ok(EarlierQuestion::Decided(Box::new(decision)));
            }
        }
        Ok(EarlierQuestion::None)
    }

    /// Notes the question if it is suspended.
    pub(super) async fn note(
        &self,
        parts: &ExecutorParts,
        stop: &EarlyEnd,
    ) -> Result<(), EarlyEnd> {
        let (Some(key), EarlyEnd::Suspended(waiting)) = (&self.key, stop) else {
            return Ok(());
        };
        let approval = waiting.approval.clone();
        let entry = parts.inbox.get(&approval).await;
        let Some(entry) = entry.map_err(|e| not_recorded(&e))? else {
            return Ok(());
        };
        let call = SuspendedCall {
            run: entry.request.run,
            call: entry.request.call,
            key: key.clone(),
            approval,
            within: false,
            alone: true,
            outcome: None,
        };
        let noted = parts.suspended.suspend(&call).await;
        noted.map_err(|e| unknown(&e))
    }

    /// Forgets the question once its answer is delivered: asked again, it is a new question.
    pub(super) async fn forget(&self, parts: &ExecutorParts, approval: &ApprovalId) {
        if self.key.is_none() {
            return;
        }
        let forgotten = async {
            let entry = parts.inbox.get(approval).await;
            let entry = entry.map_err(|e| SuspendedError(HostFailure::of(e)))?;
            let Some(request) = entry.map(|entry| entry.request) else {
                return Ok(());
            };
            parts.suspended.forget(&request.run, &request.call).await
        };
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, %approval, "forget a question that was answered");
        }
    }
}

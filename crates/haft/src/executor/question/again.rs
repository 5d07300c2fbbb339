//! A question that a command asks again: each of its calls is a run of its own, and the inbox identifies questions by run.

use crate::approval::inbox::RequestStatus;
use crate::approval::suspended::SuspendedCall;
use crate::approval::{ApprovalRequest, Decision};
use crate::arguments::Arguments;
use crate::context::CallContext;
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
        let found = parts.inbox.find_suspended(key).await;
        let found = found.map_err(|e| unknown(&e))?;
        for noted in found.into_iter().filter(|noted| noted.call.alone) {
            let approval = &noted.call.approval;
            let entry = parts.inbox.get(approval).await;
            let entry = entry.map_err(|e| not_recorded(&e))?;
            let Some(entry) = entry.filter(|entry| entry.request.is_question()) else {
                continue;
            };
            if entry.is_open() {
                return Ok(EarlierQuestion::Waits(Box::new(entry.request)));
            }
            // No other process needs to act on it any more.
            let _ = parts.inbox.claim(approval).await;
            let collected = parts.inbox.collect(&noted.call.run, &noted.call.call).await;
            if collected.map_err(|e| unknown(&e))?.is_none() {
                continue;
            }
            let ended = matches!(
                entry.status,
                RequestStatus::Answered | RequestStatus::Denied | RequestStatus::Done
            );
            if let Some(decision) = entry.decision.filter(|_| ended) {
                let _ = parts.inbox.deliver(approval).await;
                return Ok(EarlierQuestion::Decided(Box::new(decision)));
            }
        }
        Ok(EarlierQuestion::None)
    }

    /// Notes the question if it is suspended.
    pub(super) async fn note(
        &self,
        parts: &ExecutorParts,
        context: &CallContext,
        stop: &EarlyEnd,
    ) -> Result<(), EarlyEnd> {
        let (Some(key), EarlyEnd::Suspended(waiting)) = (&self.key, stop) else {
            return Ok(());
        };
        let call = SuspendedCall {
            run: context.session.run().clone(),
            call: context.call.clone(),
            key: key.clone(),
            approval: waiting.approval.clone(),
            within: false,
            alone: true,
        };
        let noted = parts.inbox.suspend(&call).await;
        noted.map_err(|e| unknown(&e))
    }

    /// Forgets the question once its answer is delivered: asked again, it is a new question.
    pub(super) async fn forget(&self, parts: &ExecutorParts, request: &ApprovalRequest) {
        if self.key.is_none() {
            return;
        }
        let ended = parts.inbox.end_suspended(&request.run, &request.call, None);
        if let Err(error) = ended.await {
            tracing::warn!(%error, approval = %request.id, "forget a question that was answered");
        }
    }
}

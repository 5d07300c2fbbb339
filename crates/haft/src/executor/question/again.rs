//! A question that is asked again in another run, where the inbox, which identifies questions by run, does not find it: by a command, each of
//! whose calls is a run of its own, or by a client whose server was killed.

use crate::approval::inbox::RequestStatus;
use crate::approval::{ApprovalRequest, Decision};
use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::executor::ExecutorParts;
use crate::executor::again::{of, same_calls, unknown};
use crate::executor::ask::not_recorded;
use crate::executor::early_end::EarlyEnd;
use crate::executor::noted::forget_noted;
use crate::session::Session;
use crate::session::nest::{CallScope, RepeatKey};

/// What identifies a question when it is asked again; `None` if the call around it is found.
pub(super) struct QuestionKey(Option<RepeatKey>);

/// The state of the question from an earlier call.
pub(super) enum EarlierQuestion {
    /// It was not asked before.
    None,
    /// It is pending.
    Waits(Box<ApprovalRequest>),
    /// The user decided it.
    Decided(Box<Decision>),
}

impl QuestionKey {
    /// Creates the key of this call's question.
    pub(super) fn of(parts: &ExecutorParts, context: &CallContext, arguments: &Arguments) -> Self {
        let session = &context.session;
        // A host that resumes the call finds the question in its run, and collects nothing in place of the client.
        let is_clients = session.is_for_one_call() || !session.is_resumed();
        let is_outermost = session.nest().is_none() && is_clients;
        let key = || of(parts, session, &context.entry, arguments.as_str());
        Self(is_outermost.then(|| RepeatKey {
            key: key(),
            alone: session.is_for_one_call(),
        }))
    }

    /// Returns the newest identical question that is pending or decided. A decision is returned once.
    pub(super) async fn find_earlier(
        &self,
        parts: &ExecutorParts,
        session: &Session,
    ) -> Result<EarlierQuestion, EarlyEnd> {
        let Some(RepeatKey { key, .. }) = &self.0 else {
            return Ok(EarlierQuestion::None);
        };
        let found = same_calls(parts, session, key).await;
        let found = found.map_err(|e| unknown(&e))?;
        for noted in found {
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

    /// Sets the key by which the question is found when it is asked again: what waits for its answer is noted under that key.
    pub(super) fn add_to(&self, nest: &CallScope) {
        if let Some(key) = &self.0 {
            nest.repeat().key.get_or_insert_with(|| key.clone());
        }
    }

    /// Forgets the question once it is over: asked again, it is a new question.
    pub(super) async fn forget(&self, parts: &ExecutorParts, nest: &CallScope) {
        if self.0.is_some() {
            forget_noted(parts, nest).await;
        }
    }
}

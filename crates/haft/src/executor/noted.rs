//! `NotedCall`: a call that is found when it is made again. It is noted before anybody is asked, so that whatever becomes of
//! this process, the request has a caller to whom its outcome is owed.

use std::sync::Arc;

use crate::approval::inbox::{InboxError, WaitingCalls};
use crate::approval::suspended::SuspendedCall;
use crate::approval::{ApprovalId, ApprovalRequest};
use crate::call::Origin;
use crate::executor::ExecutorParts;
use crate::result::{Outcome, Status};
use crate::session::nest::{CallScope, RepeatKey, RepeatState};
use crate::session::running_calls::RunningCallGuard;
use crate::session::{Session, WaitMode};

/// A call that is recognised when it is made again. Dropping this forgets a call that was cancelled with its client and is over; one that
/// can be resumed, or whose request stays pending, stays noted.
#[derive(Debug)]
pub(super) struct NotedCall {
    store: Arc<dyn WaitingCalls>,
    nest: Arc<CallScope>,
    /// Set once the call has begun: no other call runs under its id.
    present: Option<RunningCallGuard>,
    settled: bool,
}

impl Drop for NotedCall {
    fn drop(&mut self) {
        if self.settled || self.nest.is_resumable() {
            return;
        }
        let RepeatState { noted, is_left, .. } = self.nest.repeat().clone();
        // The outcome of a request that stays pending is owed to the call that is made again.
        let Some(noted) = noted.filter(|_| !is_left) else {
            return;
        };
        // Without a runtime the process is exiting; the note stays, and what it owes is collected.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = Arc::clone(&self.store);
            let present = self.present.take();
            runtime.spawn(async move {
                forget(&*store, &noted).await;
                // An identical call that waits for this one must not find the note.
                drop(present);
            });
        }
    }
}

/// How a noted call ended.
#[derive(Clone, Copy)]
pub(super) struct NotedEnd {
    /// Whether its client receives the outcome.
    pub(super) heard: bool,
    /// Whether it can still be resumed: it did not reach its end.
    pub(super) resumable: bool,
}

impl NotedCall {
    /// Creates the entry of a call that has not begun, or that begins now.
    pub(super) fn new(
        parts: &ExecutorParts,
        nest: &Arc<CallScope>,
        key: RepeatKey,
        present: Option<RunningCallGuard>,
    ) -> Self {
        {
            let mut repeat = nest.repeat();
            repeat.key = Some(key);
            repeat.has_begun |= present.is_some();
        }
        Self {
            store: Arc::clone(&parts.inbox),
            nest: Arc::clone(nest),
            present,
            settled: false,
        }
    }

    /// Creates the entry of a call that was suspended before and continues now, maybe in a session that serves other calls, too.
    pub(super) fn resumed(
        parts: &ExecutorParts,
        nest: &Arc<CallScope>,
        noted: SuspendedCall,
        present: RunningCallGuard,
    ) -> Self {
        *nest.repeat() = RepeatState {
            key: Some(RepeatKey {
                key: noted.key.clone(),
                alone: noted.alone,
            }),
            has_begun: true,
            noted: Some(noted),
            is_left: false,
        };
        Self {
            store: Arc::clone(&parts.inbox),
            nest: Arc::clone(nest),
            present: Some(present),
            settled: false,
        }
    }

    /// Ends the entry in favour of another one of the same call.
    pub(super) fn replace(mut self) {
        self.settled = true;
    }

    /// Notes how the call ended, for when it is made again.
    pub(super) async fn ended(mut self, session: &Session, outcome: &mut Outcome, end: NotedEnd) {
        // From here on the note stays, even if this is dropped: what it owes is collected, and nothing runs again unseen.
        self.settled = true;
        let waits = outcome.approval.as_deref();
        let waits = waits.filter(|_| outcome.status == Status::Suspended);
        let noted = self.nest.repeat().noted.clone();
        let result = match (waits, noted) {
            (Some(approval), Some(noted)) if noted.approval.as_str() == approval => Ok(()),
            (Some(approval), _) => self.suspend(session, outcome, approval).await,
            (None, None) => Ok(()),
            (None, Some(_)) if end.resumable => Ok(()),
            (None, Some(noted)) if end.heard => hand_over(&*self.store, &noted).await,
            (None, Some(noted)) => {
                let text = outcome.to_stored().unwrap_or_default();
                let (run, call) = (&noted.run, &noted.call);
                self.store.end_suspended(run, call, Some(&text)).await
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, call = %outcome.call, "note how a call that waited stands");
            let what = if outcome.status == Status::Suspended {
                "it could not be noted that this call waits: resume the run instead of calling again"
            } else {
                "it could not be noted that you have this outcome: the same call, made again, may return it once more"
            };
            outcome.notes.push(what.to_owned());
        }
    }

    /// Notes a call that ended suspended on a request that another call made.
    async fn suspend(
        &self,
        session: &Session,
        outcome: &Outcome,
        approval: &str,
    ) -> Result<(), InboxError> {
        let RepeatState { key, has_begun, .. } = self.nest.repeat().clone();
        let Some(RepeatKey { key, alone }) = key else {
            return Ok(());
        };
        let call = SuspendedCall {
            run: session.run().clone(),
            call: outcome.call.clone(),
            key,
            approval: ApprovalId::new(approval),
            within: has_begun,
            alone,
        };
        self.store.suspend(&call).await
    }
}

/// Notes the outermost call around this one as waiting for a request, if it is looked for when it is made again and the request can outlive
/// this process: one that would be withdrawn with its call is about that call alone, and what an agent runs itself nobody else can.
pub(super) async fn note_waiting(
    parts: &ExecutorParts,
    session: &Session,
    nest: &CallScope,
    request: &ApprovalRequest,
) -> Result<(), InboxError> {
    let outermost = nest.outermost();
    let repeat = outermost.repeat().clone();
    let outlives = parts.inbox.is_durable()
        && session.wait_mode() != WaitMode::WaitThenWithdraw
        && request.origin != Origin::Hook;
    let Some(RepeatKey { key, alone }) = repeat.key.filter(|_| outlives) else {
        return Ok(());
    };
    let (run, call) = if repeat.has_begun {
        (session.run(), outermost.call())
    } else {
        (&request.run, &request.call)
    };
    let waits = SuspendedCall {
        run: run.clone(),
        call: call.clone(),
        key,
        approval: request.id.clone(),
        within: repeat.has_begun,
        alone,
    };
    parts.inbox.suspend(&waits).await?;
    let before = outermost.repeat().noted.replace(waits.clone());
    if let Some(before) = before.filter(|one| (&one.run, &one.call) != (&waits.run, &waits.call)) {
        forget(&*parts.inbox, &before).await;
    }
    Ok(())
}

/// Forgets a noted call whose client receives the outcome now; with that, the outcome of its request is delivered.
async fn hand_over(store: &dyn WaitingCalls, noted: &SuspendedCall) -> Result<(), InboxError> {
    let (run, call) = (&noted.run, &noted.call);
    if !noted.within {
        if store.collect(run, call).await?.is_some() {
            return Ok(());
        }
        // An identical call shares the note and has ended it, or nothing came of the request.
        let request = store.get(&noted.approval).await?;
        if request.is_some_and(|request| request.outcome.is_some()) {
            store.deliver(&noted.approval).await?;
        }
    }
    store.end_suspended(run, call, None).await
}

/// Forgets what a call was noted as, because it is over or is noted otherwise.
pub(super) async fn forget_noted(parts: &ExecutorParts, nest: &CallScope) {
    let noted = nest.repeat().noted.take();
    if let Some(noted) = noted {
        forget(&*parts.inbox, &noted).await;
    }
}

/// Forgets a suspended call.
pub(super) async fn forget(store: &dyn WaitingCalls, call: &SuspendedCall) {
    if let Err(error) = store.end_suspended(&call.run, &call.call, None).await {
        // The call is looked up again, but its outcome is not delivered twice.
        tracing::warn!(%error, call = %call.call, "forget a suspended call");
    }
}

//! `JournaledCall`: a call that is recognised when it is made again, and the note of how it ended.

use std::sync::Arc;

use crate::approval::ApprovalId;
use crate::approval::inbox::{InboxError, WaitingCalls};
use crate::approval::suspended::SuspendedCall;
use crate::call::{CallId, RunId};
use crate::executor::ExecutorParts;
use crate::result::{Outcome, Status};
use crate::session::Session;
use crate::session::at_work::RunningCallGuard;
use crate::session::nest::CallScope;

/// A call that is recognised when it is made again.
#[derive(Debug)]
pub(super) struct JournaledCall {
    pub(super) key: String,
    /// Set once the call has begun: no other call runs under its id.
    present: Option<RunningCallGuard>,
    /// Set if the call was suspended before.
    noted: Option<SuspendedNote>,
}

/// A call that is noted as suspended. Dropping this forgets the call if it was cancelled with its client and is over; a call that
/// can be resumed stays noted.
#[derive(Debug)]
struct SuspendedNote {
    store: Arc<dyn WaitingCalls>,
    run: RunId,
    call: CallId,
    nest: Arc<CallScope>,
    present: Option<RunningCallGuard>,
    dropped: bool,
}

impl Drop for SuspendedNote {
    fn drop(&mut self) {
        if !self.dropped || self.nest.is_resumable() {
            return;
        }
        // Without a runtime the process is exiting; the journal then tells what the call did.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (store, run, call) = (Arc::clone(&self.store), self.run.clone(), self.call.clone());
            let present = self.present.take();
            runtime.spawn(async move {
                if let Err(error) = store.end_suspended(&run, &call, None).await {
                    tracing::warn!(%error, %call, "forget a cancelled call");
                }
                // An identical call that waits for this one must not find the note.
                drop(present);
            });
        }
    }
}

/// How a journaled call ended.
#[derive(Clone, Copy)]
pub(super) struct JournaledEnd {
    /// Whether its client receives the outcome.
    pub(super) heard: bool,
    /// Whether it can still be resumed: it did not reach its end.
    pub(super) resumable: bool,
}

impl JournaledCall {
    /// Creates the entry of a call that has not begun, or that begins now.
    pub(super) fn new(key: String, present: Option<RunningCallGuard>) -> Self {
        Self {
            key,
            present,
            noted: None,
        }
    }

    /// Creates the entry of a call that was suspended before and continues now.
    pub(super) fn noted(
        key: String,
        present: RunningCallGuard,
        parts: &ExecutorParts,
        run: &RunId,
        nest: &Arc<CallScope>,
    ) -> Self {
        let noted = SuspendedNote {
            store: Arc::clone(&parts.inbox),
            run: run.clone(),
            call: nest.call().clone(),
            nest: Arc::clone(nest),
            present: Some(present),
            dropped: true,
        };
        Self {
            key,
            present: None,
            noted: Some(noted),
        }
    }

    fn has_started(&self) -> bool {
        self.present.is_some() || self.noted.is_some()
    }

    /// Notes how the call ended, for when it is made again.
    pub(super) async fn ended(
        mut self,
        parts: &ExecutorParts,
        session: &Session,
        outcome: &mut Outcome,
        end: JournaledEnd,
    ) {
        let suspended = outcome.status == Status::Suspended;
        let waits = outcome.approval.clone().filter(|_| suspended);
        let (run, call) = (session.run(), &outcome.call);
        let noted_before = self.noted.as_mut().map(|noted| noted.dropped = false);
        let noted = if let Some(approval) = waits {
            let approval = ApprovalId::new(approval);
            self.suspended(parts, session, &outcome.call, approval)
                .await
        } else if noted_before.is_none() || end.resumable {
            Ok(())
        } else {
            let text = (!end.heard).then(|| outcome.to_stored().unwrap_or_default());
            parts.inbox.end_suspended(run, call, text.as_deref()).await
        };
        if let Err(error) = noted {
            tracing::error!(%error, %run, call = %outcome.call, "note how a suspended call stands");
            let what = "it could not be noted that this call waits: resume the run instead of calling again";
            outcome.notes.push(what.to_owned());
        }
    }

    async fn suspended(
        &self,
        parts: &ExecutorParts,
        session: &Session,
        call: &CallId,
        approval: ApprovalId,
    ) -> Result<(), InboxError> {
        let suspended = SuspendedCall {
            run: session.run().clone(),
            call: call.clone(),
            key: self.key.clone(),
            approval,
            within: self.has_started(),
            alone: session.is_for_one_call(),
        };
        parts.inbox.suspend(&suspended).await
    }
}

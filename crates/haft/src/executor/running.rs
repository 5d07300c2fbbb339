//! Waits for the call of a decided request that another process runs.

use std::time::Duration;

use tokio::time::Instant;

use crate::approval::ApprovalId;
use crate::approval::inbox::{InboxError, RequestStatus, StoredApproval};
use crate::executor::{Executor, ExecutorParts};
use crate::session::Session;

/// Interval between looks at the request: that its process exited is no change of it.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long even a session that waits for no decision waits for one that is made: longer than it takes to notice that a process exited.
const LEAST: Duration = Duration::from_secs(10);

impl Executor {
    /// Waits until the call of this request no longer runs, as long as the session's calls wait for decisions, and at least some seconds.
    /// Returns the request as it is then: in doubt if its process has exited.
    ///
    /// # Errors
    /// The inbox does not answer.
    pub async fn wait_while_running(
        &self,
        session: &Session,
        id: &ApprovalId,
    ) -> Result<Option<StoredApproval>, InboxError> {
        wait(&self.parts, session, id).await
    }
}

pub(super) async fn wait(
    parts: &ExecutorParts,
    session: &Session,
    id: &ApprovalId,
) -> Result<Option<StoredApproval>, InboxError> {
    let mut changes = parts.inbox.changes();
    let limit = if session.waits_for_decisions() {
        session.patience().max(LEAST)
    } else {
        LEAST
    };
    let deadline = Instant::now() + limit;
    loop {
        let entry = parts.inbox.get(id).await?;
        let runs = |entry: &StoredApproval| entry.status == RequestStatus::Running;
        let is_over = session.waits_cancelled().is_cancelled()
            || session.cancellation().is_cancelled()
            || Instant::now() >= deadline;
        if is_over || !entry.as_ref().is_some_and(runs) {
            return Ok(entry);
        }
        tokio::select! {
            _ = changes.recv() => {}
            () = tokio::time::sleep_until(deadline.min(Instant::now() + POLL_INTERVAL)) => {}
            () = session.waits_cancelled().cancelled() => {}
            () = session.cancellation().cancelled() => {}
        }
    }
}

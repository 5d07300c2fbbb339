//! `Queue`: how many requests of one run may wait for a person at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::approval::ApprovalRequest;
use crate::approval::inbox::{Inbox, InboxError};

/// Most requests of a run that wait at a time: more are no question to a person, and fill the inbox for everybody.
pub(crate) const MOST_WAITING: usize = 100;

/// The requests that a session has written, and is about to write.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Written so far. The inbox is asked only when there could be too many.
    written: AtomicUsize,
    /// About to be written: the inbox does not know of them yet.
    coming: AtomicUsize,
}

/// A place in the queue while a request is written.
#[derive(Debug)]
pub(crate) struct Coming<'a>(&'a Queue);

impl Queue {
    /// A place for a request; none where too many of its run wait.
    pub(crate) async fn place(
        &self,
        inbox: &dyn Inbox,
        request: &ApprovalRequest,
        resumed: bool,
    ) -> Result<Option<Coming<'_>>, InboxError> {
        let others = self.coming.fetch_add(1, Ordering::AcqRel);
        let place = Coming(self);
        let written = self.written.fetch_add(1, Ordering::AcqRel);
        if written < MOST_WAITING && !resumed {
            return Ok(Some(place));
        }
        let most = MOST_WAITING.saturating_sub(others);
        let room = inbox.has_room(request, most).await?;
        Ok(room.then_some(place))
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, Ordering::AcqRel);
    }
}

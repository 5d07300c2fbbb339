//! `Queue`: bounds the approval requests that wait at a time, per run and for all runs that clients opened.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::approval::ApprovalRequest;
use crate::approval::inbox::{Inbox, InboxError, WaitingLimits};
use crate::bounds::Class;

/// Most requests of a run that wait at a time: more are no question to a person, and fill the inbox for everybody.
pub(crate) const MOST_WAITING: usize = 100;
/// Most requests that may wait when a client's run writes one. A client can open any number of runs: the rest of the inbox
/// stays free for the operator.
pub(crate) const MOST_OF_CLIENTS: usize = 5_000;

/// Most rules that the calls of a run propose.
const MOST_PROPOSALS: usize = 5;

/// Most bytes of requests that may wait when a client's run writes a long one.
pub(crate) const BYTES_OF_CLIENTS: usize = 256 << 20;
/// From so many bytes on a request is long; of shorter ones [`MOST_OF_CLIENTS`] stay below the bound.
const LONG: usize = BYTES_OF_CLIENTS / MOST_OF_CLIENTS;

/// The requests that a session has written, and is about to write.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Who opened the run.
    class: Class,
    /// Written so far. The inbox is asked only when there could be too many.
    written: AtomicUsize,
    /// About to be written: the inbox does not know of them yet.
    coming: AtomicUsize,
    /// Rules that calls of the run proposed.
    proposed: AtomicUsize,
}

/// A place in the queue while a request is written.
#[derive(Debug)]
pub(crate) struct Coming<'a>(&'a Queue);

impl Default for Queue {
    fn default() -> Self {
        Self::of(Class::Operator)
    }
}

impl Queue {
    /// An empty queue of a run that a caller of this class opened.
    pub(crate) fn of(class: Class) -> Self {
        Self {
            class,
            written: AtomicUsize::new(0),
            coming: AtomicUsize::new(0),
            proposed: AtomicUsize::new(0),
        }
    }

    /// Whether one more rule may be proposed in the run; counts it.
    pub(crate) fn may_propose(&self) -> bool {
        self.proposed.fetch_add(1, Ordering::AcqRel) < MOST_PROPOSALS
    }

    /// Reserves a place for a request; none where too many wait.
    pub(crate) async fn place(
        &self,
        inbox: &dyn Inbox,
        request: &ApprovalRequest,
        resumed: bool,
    ) -> Result<Option<Coming<'_>>, InboxError> {
        let others = self.coming.fetch_add(1, Ordering::AcqRel);
        let place = Coming(self);
        let written = self.written.fetch_add(1, Ordering::AcqRel);
        // So few that the run holds its bound whatever the inbox knows: it may not know yet of those that come.
        let few = written < MOST_WAITING && !resumed;
        let is_operators = self.class == Class::Operator;
        if is_operators && few {
            return Ok(Some(place));
        }
        let of_clients = |limit| if is_operators { usize::MAX } else { limit };
        let limits = WaitingLimits {
            per_run: if few {
                usize::MAX
            } else {
                MOST_WAITING.saturating_sub(others)
            },
            total: of_clients(MOST_OF_CLIENTS),
            bytes: if request.bytes() < LONG {
                usize::MAX
            } else {
                of_clients(BYTES_OF_CLIENTS)
            },
        };
        let room = inbox.has_room(request, limits).await?;
        Ok(room.then_some(place))
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, Ordering::AcqRel);
    }
}

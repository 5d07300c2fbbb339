//! `RequestQueue`: limits the number of pending approval requests, per run and for all runs that clients started.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::approval::ApprovalRequest;
use crate::approval::inbox::{InboxError, WaitingCalls, WaitingLimits};
use crate::bounds::CallerClass;

/// Maximum number of pending requests of a run: no user can answer more, and they would fill the inbox for everyone.
pub(crate) const MAX_PENDING: usize = 100;
/// Maximum number of pending requests when a client's run submits one. A client can start any number of runs, so the rest of
/// the inbox stays free for the operator.
pub(crate) const MAX_CLIENT_REQUESTS: usize = 5_000;

/// Maximum number of rules that the calls of a run may propose.
const MAX_PROPOSALS: usize = 5;

/// Maximum number of requests of a run that a reviewer is asked about: a run that a model denies again and again must not cost without end.
const MAX_REVIEWS: usize = 200;

/// Number of requests of a run that a reviewer may deny before it is asked about no further one: what is refused again and again in other
/// words must not run by the one time that a model errs.
const MAX_DENIALS: usize = 3;

/// Maximum total size, in bytes, of pending requests when a client's run submits a long one.
pub(crate) const MAX_CLIENT_BYTES: usize = 256 << 20;
/// Size in bytes from which a request is long; [`MAX_CLIENT_REQUESTS`] shorter ones stay below the limit.
const LONG_REQUEST: usize = MAX_CLIENT_BYTES / MAX_CLIENT_REQUESTS;

/// The requests that a session has submitted or is about to submit.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    /// The class of the caller that started the run.
    class: CallerClass,
    /// Number of requests submitted so far. The inbox is asked only when there could be too many.
    written: AtomicUsize,
    /// Number of requests about to be submitted, which the inbox does not know yet.
    coming: AtomicUsize,
    /// Number of rules that calls of the run have proposed.
    proposed: AtomicUsize,
    /// Number of requests of the run that a reviewer was asked about.
    reviewed: AtomicUsize,
    /// Number of these that it denied.
    denied: AtomicUsize,
}

/// A place in the queue while a request is submitted.
#[derive(Debug)]
pub(crate) struct QueueSlot<'a>(&'a RequestQueue);

impl Default for RequestQueue {
    fn default() -> Self {
        Self::of(CallerClass::Operator)
    }
}

impl RequestQueue {
    /// Creates the queue of a run that a caller of this class started.
    pub(crate) fn of(class: CallerClass) -> Self {
        Self {
            class,
            written: AtomicUsize::new(0),
            coming: AtomicUsize::new(0),
            proposed: AtomicUsize::new(0),
            reviewed: AtomicUsize::new(0),
            denied: AtomicUsize::new(0),
        }
    }

    /// Returns the class of the caller that started the run.
    pub(crate) fn class(&self) -> CallerClass {
        self.class
    }

    /// Returns whether the run may propose one more rule, and counts it.
    pub(crate) fn may_propose(&self) -> bool {
        self.proposed.fetch_add(1, Ordering::AcqRel) < MAX_PROPOSALS
    }

    /// Checks whether a reviewer may be asked about one more request of the run, and counts it.
    ///
    /// # Errors
    /// Why a person is asked instead.
    pub(crate) fn may_review(&self) -> Result<(), &'static str> {
        if self.denied.load(Ordering::Acquire) >= MAX_DENIALS {
            return Err("it has denied three requests of this run");
        }
        if self.reviewed.fetch_add(1, Ordering::AcqRel) >= MAX_REVIEWS {
            return Err("this run has had the most reviews that a run gets");
        }
        Ok(())
    }

    /// Counts a request of the run that the reviewer denied.
    pub(crate) fn note_denial(&self) {
        self.denied.fetch_add(1, Ordering::AcqRel);
    }

    /// Reserves a place for a request; `None` if too many are pending.
    pub(crate) async fn place(
        &self,
        inbox: &dyn WaitingCalls,
        request: &ApprovalRequest,
        resumed: bool,
    ) -> Result<Option<QueueSlot<'_>>, InboxError> {
        let others = self.coming.fetch_add(1, Ordering::AcqRel);
        let place = QueueSlot(self);
        let written = self.written.fetch_add(1, Ordering::AcqRel);
        // Few enough that the run stays within its limit whatever the inbox reports, which may not know the ones about to be submitted.
        let few = written < MAX_PENDING && !resumed;
        let is_operators = self.class == CallerClass::Operator;
        if is_operators && few {
            return Ok(Some(place));
        }
        let of_clients = |limit| if is_operators { usize::MAX } else { limit };
        let limits = WaitingLimits {
            per_run: if few {
                usize::MAX
            } else {
                MAX_PENDING.saturating_sub(others)
            },
            total: of_clients(MAX_CLIENT_REQUESTS),
            bytes: if request.bytes() < LONG_REQUEST {
                usize::MAX
            } else {
                of_clients(MAX_CLIENT_BYTES)
            },
        };
        let room = inbox.has_room(request, limits).await?;
        Ok(room.then_some(place))
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, Ordering::AcqRel);
    }
}

//! `WaitingCalls`: where calls wait for decisions. One row holds the request, its decision, its outcome and the calls that ended suspended
//! on it; each is decided once and claimed once, however many processes try at a time.

use tokio::sync::broadcast;

use crate::approval::review::Review;
use crate::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use crate::approval::transition::{CallState, TransitionError};
use crate::approval::{ApprovalId, ApprovalRequest, Decision};
use crate::call::{CallId, RunId};
use crate::clock;
use crate::error::HostFailure;
use crate::future::BoxFuture;
use haft_types::opaque_debug;

pub use crate::approval::status::{RequestEnding, RequestStatus};

/// Limits on the number of pending requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingLimits {
    /// Maximum number of requests per run.
    pub per_run: usize,
    /// Maximum number of requests of all runs of a tenant.
    pub total: usize,
    /// Maximum total size in bytes; `usize::MAX` for no limit.
    pub bytes: usize,
}

/// Maximum total size, in bytes, of expired and withdrawn requests that are kept, newest first: a client can create such requests
/// without end, and no call runs on them. The records of their runs stay.
pub const ENDED_BYTES: usize = 32 << 20;

/// Stores the calls that wait for decisions. If [`is_durable`](Self::is_durable), every change that it reports survives this process.
///
/// A request moves in one direction: pending, then decided (or expired, or withdrawn), then claimed, then finished;
/// [`transition`](crate::approval::transition::transition) defines the steps. Each step is a compare-and-set: of any number of
/// processes that decide or claim, one wins.
///
/// A call that waits for a request, or ended suspended on it, is part of the request's row until its client has [collected](Self::collect) the outcome: that
/// of the request's call, which is delivered by this, or, if the request's call is nested in it, its own.
///
/// ```
/// use std::sync::Arc;
/// use haft::approval::inbox::WaitingCalls;
/// use haft::approval::memory::MemoryInbox;
/// use haft::session::WaitMode;
/// use haft::{Decision, Executor, Policy, Session, ToolCall, ToolRegistry, tool};
///
/// /// Close an account.
/// #[tool(risk = "high")]
/// fn close(account: String) -> String {
///     format!("closed {account}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let inbox = Arc::new(MemoryInbox::new());
/// // The requests of this approver stay unanswered: the decision is made in the inbox.
/// let (approver, _unanswered) = haft::approval::channel(8);
/// let executor = Executor::new(Policy::workspace()).with_approver(approver).with_inbox(inbox.clone());
/// let session = Session::builder(Arc::new(ToolRegistry::new().with(close)?))
///     .with_wait_mode(WaitMode::WaitThenDeny)
///     .build()?;
/// let mut changes = inbox.changes();
/// let decided = async {
///     let id = changes.recv().await.unwrap();
///     inbox.decide(&id, &Decision::approve("ann", "console")).await
/// };
/// let call = ToolCall::new("close", r#"{"account":"a"}"#);
/// let (outcome, decided) = tokio::join!(executor.execute(&session, call), decided);
/// assert_eq!(decided?.request.tool.as_str(), "close");
/// assert_eq!(outcome.text(), "closed a");
/// # Ok(()) }
/// ```
pub trait WaitingCalls: Send + Sync {
    /// Returns whether requests survive the process; only then can a call be suspended.
    fn is_durable(&self) -> bool;

    /// Stores a request, attended by this process, unless one of the same run and fingerprint already answers it: pending, decided
    /// and not yet claimed, running, denied, or finished and not [`delivered`](Self::deliver).
    fn submit<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> BoxFuture<'a, Result<Submission, InboxError>>;

    /// Returns whether a request may be stored within the limits: fewer and smaller ones are pending, or one that
    /// answers the same call is stored already.
    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> BoxFuture<'a, Result<bool, InboxError>>;

    /// Returns the request of this id; `None` if there is none.
    fn get<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>>;

    /// Returns the request of this run with this fingerprint that answers an identical call, if there is one: the one that
    /// [`submit`](Self::submit) would return.
    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>>;

    /// Returns one page of a tenant's requests, oldest first; see [`RequestPage`](crate::approval::listing::RequestPage). For all of them, use
    /// [`each`](crate::approval::listing::each).
    fn list<'a>(
        &'a self,
        filter: &'a RequestFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>>;

    /// Decides a pending request. The first decision counts; later ones get [`InboxError::Decided`]. A request that has expired is
    /// marked as such and refused.
    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>>;

    /// Claims a decided request, **before** anything runs. The first claim succeeds; later ones get [`InboxError::Claimed`].
    fn claim<'a>(&'a self, id: &'a ApprovalId)
    -> BoxFuture<'a, Result<StoredApproval, InboxError>>;

    /// Stores the outcome of a claimed request (contract §3 as JSON), and whether the client has received it.
    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Marks the outcome of a finished request as delivered; returns true for the first caller only.
    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>>;

    /// Sets whether this process attends the request. If no process does, the one that decides it also runs its call.
    fn set_attended<'a>(
        &'a self,
        id: &'a ApprovalId,
        attended: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Ends an unclaimed request; [`RequestEnding::applies_to`] states which. Any other request stays unchanged. `why` is the reason, for
    /// whoever reads about the request; empty if its status says all.
    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Stores what a reviewer says of a request, or a person's word on that, if what is stored is still `was`: none for the first. Returns
    /// whether it did. An inbox that stores no reviews returns false, and nothing is reviewed.
    fn set_review<'a>(
        &'a self,
        id: &'a ApprovalId,
        was: Option<&'a Review>,
        now: &'a Review,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        let _ = (id, was, now);
        Box::pin(async { Ok(false) })
    }

    /// Notes that a call waits for a request or ended suspended on it, in place of what the same call waited for before; durable when this
    /// returns. The request may be stored later: until then nothing is owed. A call whose outcome is that of the request's call is noted under the names in the request, which an identical call shares.
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Returns the suspended calls with this key, newest first.
    fn find_suspended<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedEntry>, InboxError>>;

    /// Returns this suspended call of this run; `None` if it is not stored, or was collected.
    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedEntry>, InboxError>>;

    /// Ends a suspended call: stores the outcome (contract §3 as JSON) of one that the request's call is nested in, for a client that makes
    /// it again, or forgets the call if nothing is owed to its client.
    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Takes what is owed to a suspended call, and forgets the call; `None` while it waits, and for all but the first caller.
    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<CollectedCall>, InboxError>>;

    /// Returns a receiver of new and changed requests, also by other processes. A receiver that lags must read the inbox again.
    fn changes(&self) -> broadcast::Receiver<ApprovalId>;
}

opaque_debug!(WaitingCalls);

/// The result of submitting a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Submission {
    /// The request was stored and is pending.
    New,
    /// An identical request already exists.
    Existing(Box<StoredApproval>),
}

/// A request with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredApproval {
    /// The request as it was stored.
    pub request: ApprovalRequest,
    /// Its status.
    pub status: RequestStatus,
    /// The decision, if there is one.
    pub decision: Option<Decision>,
    /// Whether the process that made the request is alive and waits.
    pub attended: bool,
    /// Whether it was claimed to run its call.
    pub claimed: bool,
    /// The outcome: contract §3 as JSON.
    pub outcome: Option<String>,
    /// Whether the client has received the outcome.
    pub delivered: bool,
    /// Why it ended without its call, in a sentence without a period, if a reason was given.
    pub why: Option<String>,
}

impl StoredApproval {
    /// Returns whether it can still be decided now.
    pub fn is_open(&self) -> bool {
        self.status == RequestStatus::Pending && self.request.expires > clock::now()
    }

    /// Returns its state at this moment, without a suspended call: one whose time is over has expired.
    pub fn state(&self) -> CallState {
        let status = match self.status {
            RequestStatus::Pending if !self.is_open() => RequestStatus::Expired,
            status => status,
        };
        CallState {
            claimed: self.claimed,
            has_outcome: self.outcome.is_some(),
            delivered: self.delivered,
            ..CallState::of(status)
        }
    }

    /// Returns whether it answers an identical call; otherwise a new request is stored.
    pub fn answers_again(&self) -> bool {
        self.state().answers_again()
    }
}

/// Selects requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only requests of this tenant.
    pub tenant: String,
    /// Accepted statuses; empty for all.
    pub status: Vec<RequestStatus>,
    /// Only requests of this run.
    pub run: Option<RunId>,
    /// Only requests after this one.
    pub after: Option<ApprovalId>,
    /// Maximum number of requests; a page that is full of bytes has fewer.
    pub limit: usize,
}

/// Why an inbox refused an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The request does not exist.
    #[error("no approval {0}")]
    NotFound(ApprovalId),
    /// The request was decided already.
    #[error("approval {id} was already decided: {status}, by {by}")]
    Decided {
        /// The request.
        id: ApprovalId,
        /// Its status.
        status: RequestStatus,
        /// Who decided it.
        by: String,
    },
    /// The request ended without a decision.
    #[error("approval {id} is {status}{}", reason(.why.as_deref()))]
    Over {
        /// The request.
        id: ApprovalId,
        /// How it ended.
        status: RequestStatus,
        /// Why, if a reason was given.
        why: Option<String>,
    },
    /// The request is not decided yet.
    #[error("approval {0} is not decided yet")]
    Open(ApprovalId),
    /// Another call runs it or has run it.
    #[error("approval {0} was already claimed")]
    Claimed(ApprovalId),
    /// The storage does not answer, or is full.
    #[error("the inbox cannot be used: {0}")]
    Unavailable(#[source] HostFailure),
}

impl TransitionError {
    /// Returns the error for a request in this state.
    pub fn error(self, entry: &StoredApproval) -> InboxError {
        let id = entry.request.id.clone();
        // An approval that was void says nothing about how the request ended.
        let is_over = entry.state().is_over();
        let decision = entry.decision.as_ref().filter(|_| !is_over);
        match (self, decision) {
            (Self::Undecided, _) => InboxError::Open(id),
            (Self::Claimed, _) => InboxError::Claimed(id),
            (Self::Settled, Some(decision)) => InboxError::Decided {
                id,
                status: entry.status,
                by: decision.by.clone(),
            },
            (Self::Settled, None) => InboxError::Over {
                id,
                status: entry.status,
                why: entry.why.clone(),
            },
        }
    }
}

/// Returns the reason of an ending as the end of a sentence.
fn reason(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

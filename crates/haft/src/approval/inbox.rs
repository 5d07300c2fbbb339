//! `Inbox`: where requests wait for a person; decided once, claimed once, whoever tries and however many at a time.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::approval::{ApprovalId, ApprovalRequest, Decision};
use crate::call::RunId;
use crate::clock;
use crate::error::Failure;
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;

/// How many requests may wait for a decision at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingLimits {
    /// Of one run.
    pub per_run: usize,
    /// Of all runs of a tenant.
    pub total: usize,
    /// Bytes of all of them together; `usize::MAX` for any number.
    pub bytes: usize,
}

/// Bytes of expired and withdrawn requests that are kept, the newest ones: a client can write such requests without end, and no
/// call runs on them. The records of their runs stay.
pub const ENDED_BYTES: usize = 32 << 20;

/// Keeps requests. Everything it says has happened survives this process, where [`is_durable`](Self::is_durable).
///
/// A request goes one way: pending, then decided (or expired, or withdrawn), then claimed, then finished; what follows on what is
/// said by [`transition`](crate::approval::transition::transition). Each step is a compare-and-set: of any number of deciders or
/// claimers in any number of processes, one wins.
///
/// ```
/// use std::sync::Arc;
/// use haft::approval::inbox::Inbox;
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
pub trait Inbox: Send + Sync {
    /// Whether requests survive the process: only then can a call be suspended.
    fn is_durable(&self) -> bool;

    /// Writes a request, attended by this process, unless one of the same run and fingerprint stands that answers it:
    /// pending, decided and not yet claimed, at work, denied, or finished and not [`delivered`](Self::deliver).
    fn submit<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> BoxFuture<'a, Result<Submission, InboxError>>;

    /// Whether a request may be written within the limits: fewer wait, or one with the same fingerprint stands already.
    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> BoxFuture<'a, Result<bool, InboxError>>;

    /// A request.
    fn get<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>>;

    /// Requests of a tenant, oldest first: one page of them, see [`Page`](crate::approval::listing::Page). For all of them use
    /// [`each`](crate::approval::listing::each).
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>>;

    /// Decides a pending request: the first decision stands, later ones hear [`InboxError::Decided`]. One that has expired
    /// is marked so and refused.
    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>>;

    /// Takes a decided request for oneself, **before** anything runs: the first one gets it, later ones hear
    /// [`InboxError::Claimed`].
    fn claim<'a>(&'a self, id: &'a ApprovalId)
    -> BoxFuture<'a, Result<StoredApproval, InboxError>>;

    /// Says how a claimed request ended (contract §3 as JSON), and whether whoever asked has heard of it.
    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Takes the outcome of a finished request, once: true for the first.
    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>>;

    /// Says whether this process attends the request: whoever decides about one that nobody attends runs it.
    fn attend<'a>(
        &'a self,
        id: &'a ApprovalId,
        attended: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Ends a request that nobody has claimed; what each ending applies to, it says itself. Any other request stays as it is.
    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: Ending,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Hears of every request that is new or changes, also by other processes. Whoever lags reads the inbox again.
    fn changes(&self) -> broadcast::Receiver<ApprovalId>;
}

opaque_debug!(Inbox);

/// What became of filing a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Submission {
    /// It was written and waits.
    New,
    /// One that says the same stands already.
    Existing(Box<StoredApproval>),
}

/// How a request ends that no call runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Pending, and its time is over.
    Expired,
    /// Pending, and the client is not interested any more.
    Withdrawn,
    /// Approved and not claimed, and the call would not do any more what was shown: the client was told so. It is kept as
    /// withdrawn.
    Void,
}

impl Ending {
    /// The status that a request has after it.
    pub fn status(self) -> RequestStatus {
        match self {
            Self::Expired => RequestStatus::Expired,
            Self::Withdrawn | Self::Void => RequestStatus::Withdrawn,
        }
    }

    /// The status that a request must have for it.
    pub fn applies_to(self) -> RequestStatus {
        match self {
            Self::Expired | Self::Withdrawn => RequestStatus::Pending,
            Self::Void => RequestStatus::Approved,
        }
    }
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// It waits for an approval.
    Pending,
    /// It was approved and waits to be run.
    Approved,
    /// Somebody said no.
    Denied,
    /// Somebody answered, in place of the tool where it was a call.
    Answered,
    /// It runs.
    Running,
    /// It has run.
    Done,
    /// Nobody decided in time.
    Expired,
    /// Whoever asked went away.
    Withdrawn,
    /// It was claimed by a process that is gone: it may have run.
    InDoubt,
}

impl RequestStatus {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Answered,
        Self::Running,
        Self::Done,
        Self::Expired,
        Self::Withdrawn,
        Self::InDoubt,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Answered => "answered",
            Self::Running => "running",
            Self::Done => "done",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::InDoubt => "in_doubt",
        }
    }

    /// The status of this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl std::fmt::Display for RequestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredApproval {
    /// What is asked.
    pub request: ApprovalRequest,
    /// Where it stands.
    pub status: RequestStatus,
    /// What was decided.
    pub decision: Option<Decision>,
    /// Whether the process that asked is alive and waits.
    pub attended: bool,
    /// Whether somebody took it to run it.
    pub claimed: bool,
    /// How it ended: contract §3 as JSON.
    pub outcome: Option<String>,
    /// Whether whoever asked has heard how it ended.
    pub delivered: bool,
}

impl StoredApproval {
    /// Whether it can still be decided now.
    pub fn is_open(&self) -> bool {
        self.status == RequestStatus::Pending && self.request.expires > clock::now()
    }

    /// Whether a call that says the same is answered by this one; a new request is written otherwise.
    pub fn answers_again(&self) -> bool {
        match self.status {
            RequestStatus::Pending => self.is_open(),
            RequestStatus::Approved
            | RequestStatus::Running
            | RequestStatus::InDoubt
            | RequestStatus::Denied => true,
            RequestStatus::Answered | RequestStatus::Done => !self.delivered,
            RequestStatus::Expired | RequestStatus::Withdrawn => false,
        }
    }
}

/// Which requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whose.
    pub tenant: String,
    /// With one of these statuses; all where none is named.
    pub status: Vec<RequestStatus>,
    /// Of this run alone.
    pub run: Option<RunId>,
    /// Those after this one.
    pub after: Option<ApprovalId>,
    /// At most so many; fewer where a page is full of bytes before.
    pub limit: usize,
}

/// Why an inbox refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// There is no such request.
    #[error("no approval {0}")]
    NotFound(ApprovalId),
    /// Somebody was first.
    #[error("approval {id} was decided already: {status}, by {by}")]
    Decided {
        /// The request.
        id: ApprovalId,
        /// Where it stands.
        status: RequestStatus,
        /// Who was first.
        by: String,
    },
    /// It ended undecided.
    #[error("approval {id} is {status}")]
    Over {
        /// The request.
        id: ApprovalId,
        /// How it ended.
        status: RequestStatus,
    },
    /// Nobody has decided yet.
    #[error("approval {0} is not decided yet")]
    Open(ApprovalId),
    /// Somebody else runs it or has.
    #[error("approval {0} was taken already")]
    Claimed(ApprovalId),
    /// The place where requests are kept does not answer, or is full.
    #[error("the inbox cannot be used: {0}")]
    Unavailable(#[source] Failure),
}

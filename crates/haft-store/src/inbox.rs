//! The inboxes of both databases and what they share: writing requests, reading rows, and limits.

use haft::approval::inbox::{InboxError, RequestStatus, StoredApproval, WaitingLimits};
use haft::approval::transition::{RequestEvent, TransitionError, transition};
use haft::approval::{ApprovalRequest, Choice, Decision};
use haft::error::HostFailure;
use haft::journal;

use crate::number::nanoseconds;

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// Maximum number of pending requests per tenant: no user can decide about more than that.
pub(crate) const MAX_PENDING: u32 = 10_000;

/// Maximum length of a request as JSON, in bytes: some megabytes of arguments with their escapes, and the preview of a file
/// change.
pub(crate) const MAX_REQUEST: usize = 16 << 20;

/// Maximum number of changes that a slow listener may lag behind.
pub(crate) const LISTENER_BUFFER: usize = 4096;

/// How long requests are kept after they end, in nanoseconds: 30 days.
pub(crate) const RETENTION: i64 = 30 * 24 * 3600 * 1_000_000_000;

/// Bytes of new requests after which the inbox checks again whether requests that ended undecided take up too much space.
pub(crate) const SWEEP_BYTES: usize = 8 << 20;

/// A request to be written.
#[derive(Debug)]
pub(crate) struct RequestDraft {
    pub(crate) tenant: String,
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) fingerprint: String,
    pub(crate) created: i64,
    pub(crate) expires: i64,
    #[cfg(feature = "postgres")]
    pub(crate) digest: String,
    pub(crate) request: String,
}

impl RequestDraft {
    /// Prepares a request for storage; fails if it is too long.
    pub(crate) fn of(request: &ApprovalRequest) -> Result<Self, InboxError> {
        let json = serde_json::to_string(request).map_err(|e| unavailable(HostFailure::of(e)))?;
        if json.len() > MAX_REQUEST {
            let bytes = json.len();
            return Err(unavailable(format!(
                "the request has {bytes} bytes, at most {MAX_REQUEST} are kept; pass big arguments as artifacts"
            )));
        }
        Ok(Self {
            tenant: request.principal.tenant.to_string(),
            id: request.id.to_string(),
            run: request.run.to_string(),
            fingerprint: request.fingerprint.clone(),
            created: nanoseconds(request.created),
            expires: nanoseconds(request.expires),
            #[cfg(feature = "postgres")]
            digest: request.args_digest.clone(),
            request: json,
        })
    }
}

/// What determines whether one more request may be pending.
#[derive(Debug)]
pub(crate) struct CapacityCheck {
    pub(crate) tenant: String,
    pub(crate) run: String,
    pub(crate) fingerprint: String,
    pub(crate) per_run: i64,
    pub(crate) total: i64,
    /// `None` means no limit on the bytes.
    pub(crate) bytes: Option<i64>,
}

impl CapacityCheck {
    pub(crate) fn of(request: &ApprovalRequest, limits: WaitingLimits) -> Self {
        let number = |most: usize| i64::try_from(most).unwrap_or(i64::MAX);
        Self {
            tenant: request.principal.tenant.to_string(),
            run: request.run.to_string(),
            fingerprint: request.fingerprint.clone(),
            per_run: number(limits.per_run),
            total: number(limits.total),
            bytes: Some(limits.bytes)
                .filter(|most| *most < usize::MAX)
                .map(number),
        }
    }
}

/// A decision to be written.
#[derive(Debug)]
pub(crate) struct DecisionRow {
    pub(crate) event: RequestEvent,
    /// The status that a pending request gets.
    pub(crate) status: &'static str,
    pub(crate) json: String,
    pub(crate) edited_digest: Option<String>,
}

impl DecisionRow {
    pub(crate) fn of(decision: &Decision) -> Result<Self, InboxError> {
        let event = RequestEvent::from(&decision.choice);
        let edited = match &decision.choice {
            Choice::Approve { edited, .. } => edited.as_deref(),
            Choice::Deny { .. } | Choice::Answer { .. } => None,
        };
        let status = transition(RequestStatus::Pending, event);
        let json = serde_json::to_string(decision).map_err(|e| unavailable(HostFailure::of(e)))?;
        if json.len() > MAX_REQUEST {
            return Err(unavailable(format!(
                "the decision has {} bytes, at most {MAX_REQUEST} are kept",
                json.len()
            )));
        }
        Ok(Self {
            event,
            status: status
                .map_err(|refused| unavailable(format!("{refused:?}")))?
                .as_str(),
            json,
            edited_digest: edited.map(journal::digest),
        })
    }
}

/// A row as read.
#[derive(Debug)]
pub(crate) struct StoredRow {
    pub(crate) request: String,
    pub(crate) status: String,
    pub(crate) decision: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) delivered: bool,
    /// Whether the process that waits for the decision is alive.
    pub(crate) attended: bool,
    /// Whether the process that claimed it is alive; `None` if it is unclaimed.
    pub(crate) claimer_lives: Option<bool>,
    pub(crate) why: Option<String>,
}

impl StoredRow {
    /// Returns the approval that the row describes at the given time.
    pub(crate) fn entry(self, now: i128) -> Result<StoredApproval, InboxError> {
        let request: ApprovalRequest =
            serde_json::from_str(&self.request).map_err(|e| unavailable(format!("a row: {e}")))?;
        let decision: Option<Decision> = self
            .decision
            .map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(|e| unavailable(format!("the decision of {}: {e}", request.id)))?;
        let status = match RequestStatus::parse(&self.status) {
            Some(RequestStatus::Pending) if request.expires <= now => RequestStatus::Expired,
            Some(RequestStatus::Running) if self.claimer_lives != Some(true) => {
                RequestStatus::InDoubt
            }
            Some(status) => status,
            None => return Err(unavailable(format!("{} is `{}`", request.id, self.status))),
        };
        Ok(StoredApproval {
            attended: self.attended,
            claimed: self.claimer_lives.is_some(),
            status,
            request,
            decision,
            outcome: self.outcome,
            delivered: self.delivered,
            why: self.why,
        })
    }
}

/// Returns why an event did not apply to a request that was read afterwards. A request's status only moves forward: if the
/// event is possible now, the request was still undecided then.
pub(crate) fn refusal(entry: &StoredApproval, event: RequestEvent) -> InboxError {
    let refused = transition(entry.status, event).err();
    refused.unwrap_or(TransitionError::Undecided).error(entry)
}

/// Returns the error for one request too many.
pub(crate) fn inbox_full() -> InboxError {
    unavailable(format!(
        "{MAX_PENDING} requests are already pending; decide some, or let them expire"
    ))
}

pub(crate) fn unavailable(why: impl Into<HostFailure>) -> InboxError {
    InboxError::Unavailable(why.into())
}

/// Returns the stored statuses of rows that may have one of the wanted statuses; empty means any.
pub(crate) fn stored_statuses(wanted: &[RequestStatus]) -> Vec<&'static str> {
    let mut statuses = Vec::new();
    for status in wanted {
        let names: &[RequestStatus] = match status {
            // Expired requests are marked as such only in passing.
            RequestStatus::Expired => &[RequestStatus::Expired, RequestStatus::Pending],
            RequestStatus::InDoubt => &[RequestStatus::Running],
            other => std::slice::from_ref(other),
        };
        statuses.extend(names.iter().map(|name| name.as_str()));
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

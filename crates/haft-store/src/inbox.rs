//! The waiting calls of both databases and what they share: writing requests, reading rows, and limits.

use haft::approval::inbox::{InboxError, RequestStatus, StoredApproval, WaitingLimits};
use haft::approval::review::Review;
use haft::approval::transition::{CallState, TransitionError, WaitingEvent, transition};
use haft::approval::{ApprovalRequest, Choice, Decision};
use haft::error::HostFailure;
use haft::journal;

use crate::request_draft::MAX_REQUEST;

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// Maximum number of pending requests per tenant: no user can decide about more than that.
pub(crate) const MAX_PENDING: u32 = 10_000;

/// How long requests are kept after they end, in nanoseconds: 30 days.
pub(crate) const RETENTION: i64 = 30 * 24 * 3600 * 1_000_000_000;

/// Bytes of new requests after which the inbox checks again whether requests that ended undecided take up too much space.
pub(crate) const SWEEP_BYTES: usize = 8 << 20;

/// Maximum number of suspended calls per key to look at.
pub(crate) const MAX_FOUND: i64 = 100;

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
    pub(crate) event: WaitingEvent,
    pub(crate) json: String,
    pub(crate) edited_digest: Option<String>,
}

impl DecisionRow {
    pub(crate) fn of(decision: &Decision) -> Result<Self, InboxError> {
        let event = WaitingEvent::from(&decision.choice);
        let edited = match &decision.choice {
            Choice::Approve { edited, .. } => edited.as_deref(),
            Choice::Deny { .. } | Choice::Answer { .. } => None,
        };
        let json = serde_json::to_string(decision).map_err(|e| unavailable(HostFailure::of(e)))?;
        if json.len() > MAX_REQUEST {
            return Err(unavailable(format!(
                "the decision has {} bytes, at most {MAX_REQUEST} are kept",
                json.len()
            )));
        }
        Ok(Self {
            event,
            json,
            edited_digest: edited.map(journal::digest),
        })
    }
}

/// A review to be written where the stored one is still as it was.
#[derive(Debug)]
pub(crate) struct ReviewChange {
    pub(crate) was: Option<String>,
    pub(crate) now: String,
}

impl ReviewChange {
    pub(crate) fn of(was: Option<&Review>, now: &Review) -> Result<Self, InboxError> {
        let json = |review: &Review| {
            serde_json::to_string(review).map_err(|e| unavailable(HostFailure::of(e)))
        };
        Ok(Self {
            was: was.map(json).transpose()?,
            now: json(now)?,
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
    /// What a reviewer says of it, as JSON.
    pub(crate) review: Option<String>,
}

impl StoredRow {
    /// Returns the approval that the row describes at the given time.
    pub(crate) fn entry(self, now: i128) -> Result<StoredApproval, InboxError> {
        let mut request: ApprovalRequest =
            serde_json::from_str(&self.request).map_err(|e| unavailable(format!("a row: {e}")))?;
        request.review = self
            .review
            .map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(|e| unavailable(format!("the review of {}: {e}", request.id)))?;
        let decision: Option<Decision> = self
            .decision
            .map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(|e| unavailable(format!("the decision of {}: {e}", request.id)))?;
        let status = effective(&self.status, request.expires <= now, self.claimer_lives);
        let status =
            status.ok_or_else(|| unavailable(format!("{} is `{}`", request.id, self.status)))?;
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

/// Returns the status of a request whose row has the stored one: a request whose time is over has expired, and one whose process is gone is
/// in doubt. `None` if there is no such status.
fn effective(stored: &str, is_late: bool, claimer_lives: Option<bool>) -> Option<RequestStatus> {
    Some(match RequestStatus::parse(stored)? {
        RequestStatus::Pending if is_late => RequestStatus::Expired,
        RequestStatus::Running if claimer_lives != Some(true) => RequestStatus::InDoubt,
        status => status,
    })
}

/// What a row says of a request, without its texts.
#[derive(Debug)]
pub(crate) struct StoredState {
    pub(crate) status: String,
    pub(crate) expires: i64,
    /// Whether the process that claimed it is alive; `None` if it is unclaimed.
    pub(crate) claimer_lives: Option<bool>,
    pub(crate) has_outcome: bool,
    pub(crate) delivered: bool,
}

impl StoredState {
    /// Returns the state of the request at the given time, without a suspended call.
    pub(crate) fn at(&self, now: i64) -> Result<CallState, InboxError> {
        let status = effective(&self.status, self.expires <= now, self.claimer_lives);
        let status = status.ok_or_else(|| unavailable(format!("a row is `{}`", self.status)))?;
        Ok(CallState {
            claimed: self.claimer_lives.is_some(),
            has_outcome: self.has_outcome,
            delivered: self.delivered,
            ..CallState::of(status)
        })
    }
}

/// The steps of an event as columns, for a statement that applies it to a row in whatever state it is: the state before as status, claimed
/// and delivered, and the status after.
#[cfg(feature = "postgres")]
#[derive(Debug)]
pub(crate) struct StepTable {
    pub(crate) was: Vec<&'static str>,
    pub(crate) claimed: Vec<bool>,
    pub(crate) delivered: Vec<bool>,
    pub(crate) becomes: Vec<&'static str>,
}

#[cfg(feature = "postgres")]
impl StepTable {
    pub(crate) fn of(event: WaitingEvent) -> Self {
        let steps = haft::approval::transition::steps(event);
        Self {
            was: steps
                .iter()
                .map(|(before, _)| before.status.as_str())
                .collect(),
            claimed: steps.iter().map(|(before, _)| before.claimed).collect(),
            delivered: steps.iter().map(|(before, _)| before.delivered).collect(),
            becomes: steps
                .iter()
                .map(|(_, after)| after.status.as_str())
                .collect(),
        }
    }
}

/// Returns why an event did not apply to a request that was read afterwards. A request's status only moves forward: if the
/// event is possible now, the request was still undecided then.
pub(crate) fn refusal(entry: &StoredApproval, event: WaitingEvent) -> InboxError {
    let refused = transition(entry.state(), event).err();
    refused.unwrap_or(TransitionError::Undecided).error(entry)
}

/// Returns the id of the call that a stored request is about.
pub(crate) fn request_call(request: &str) -> Result<String, InboxError> {
    let request: Result<ApprovalRequest, _> = serde_json::from_str(request);
    let request = request.map_err(|e| unavailable(format!("a row: {e}")))?;
    Ok(request.call.to_string())
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

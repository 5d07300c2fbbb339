//! Why a call got no decision, or one that no longer holds: what its client is told, and what is said of its request.

use std::time::Duration;

use crate::approval::inbox::{InboxError, StoredApproval};
use crate::approval::{ApprovalId, ApprovalRequest, Choice};
use crate::error::ErrorKind;
use crate::executor::early_end::EarlyEnd;
use crate::session::{MAX_CLIENT_BYTES, MAX_CLIENT_REQUESTS, MAX_PENDING};
use crate::spec::CallPhrases;

pub(in crate::executor) fn not_recorded(error: &InboxError) -> EarlyEnd {
    let message = format!("the call needs approval, and the request could not be stored: {error}");
    EarlyEnd::failed(ErrorKind::Unavailable, message)
        .advise("nothing ran; call again when requests can be stored")
        .for_operator("do what the error says, then make the call again; `haft doctor` checks the state folder")
}

pub(super) fn too_many_pending(request: &ApprovalRequest) -> EarlyEnd {
    let message = format!(
        "the call needs approval ({}), but too many requests are already pending: {MAX_PENDING} of this run, or {MAX_CLIENT_REQUESTS} or {} MiB of all clients",
        request.rule,
        MAX_CLIENT_BYTES >> 20
    );
    EarlyEnd::failed(ErrorKind::Unavailable, message)
        .advise("nothing ran; call again when some of them are decided or have expired")
}

pub(super) fn no_approver(request: &ApprovalRequest) -> EarlyEnd {
    let message = format!(
        "the call needs approval ({}), but no approver is available",
        request.rule
    );
    EarlyEnd::failed(ErrorKind::Denied, message)
}

pub(super) fn decision_timeout(request: &ApprovalRequest, limit: Duration) -> EarlyEnd {
    let message = format!(
        "nobody approved it within {} s (approval {})",
        seconds(request.expires.saturating_sub(request.created)).min(limit.as_secs()),
        request.id
    );
    EarlyEnd::failed(ErrorKind::Denied, message).advise("call again when an approver is available")
}

/// Rounds nanoseconds to seconds, at least one.
fn seconds(nanoseconds: i128) -> u64 {
    let nanoseconds = u64::try_from(nanoseconds).unwrap_or(0);
    let rounded = Duration::from_nanos(nanoseconds).saturating_add(Duration::from_millis(500));
    rounded.as_secs().max(1)
}

pub(super) fn not_decided_in_time(request: &ApprovalRequest) -> EarlyEnd {
    let message = format!(
        "nobody approved it within {} s (approval {}, withdrawn)",
        seconds(crate::clock::now().saturating_sub(request.created)),
        request.id
    );
    EarlyEnd::failed(ErrorKind::Denied, message).advise("call again when an approver is available")
}

/// Returns the reason for a request that ended without its call.
pub(super) fn because(why: &str, phrases: CallPhrases) -> String {
    format!("{why}; {}", phrases.undone)
}

pub(super) fn withdrawn(entry: &StoredApproval, phrases: CallPhrases) -> EarlyEnd {
    let undone = phrases.undone;
    let approved = entry.decision.as_ref().map(|decision| &decision.choice);
    if let Some(Choice::Approve { .. }) = approved {
        let id = &entry.request.id;
        let message = format!("approval {id} no longer applied when it was given; {undone}");
        return EarlyEnd::failed(ErrorKind::Conflict, message)
            .advise("check what changed, then call again to request approval again");
    }
    EarlyEnd::failed(ErrorKind::Cancelled, "the approval request was withdrawn").advise(format!(
        "{undone}; if the call is still needed, call again to request approval again"
    ))
}

pub(in crate::executor) fn in_doubt(id: &ApprovalId, phrases: CallPhrases) -> EarlyEnd {
    let may_have = phrases.in_doubt;
    let message = format!("approval {id} was claimed by a process that exited; {may_have}");
    EarlyEnd::failed(ErrorKind::Unavailable, message).advise(
        "check whether its changes were made before you call again with different arguments",
    )
}

//! Ends a request whose call something else decides now, unless its decision or its outcome counts.

use std::fmt;

use crate::approval::inbox::{RequestEnding, RequestStatus, StoredApproval};
use crate::approval::{ApprovalId, Choice};
use crate::error::ErrorKind;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;

/// Maximum number of times that a request may change while it is being withdrawn; its life has fewer steps.
const MAX_STEPS: usize = 8;

/// Ends a request, unless it is over; returns true if its decision or its outcome counts.
pub(super) async fn end(
    open: &mut OpenCall<'_>,
    id: &ApprovalId,
    by: &str,
    denied: bool,
) -> Result<bool, EarlyEnd> {
    let inbox = &open.parts().inbox;
    for _ in 0..MAX_STEPS {
        let found = inbox.get(id).await.map_err(not_withdrawn)?;
        let ending = match found
            .as_ref()
            .map_or(RequestAction::Pass, |found| next(found, denied))
        {
            RequestAction::End(ending) => ending,
            RequestAction::Count => return Ok(true),
            RequestAction::Pass => return Ok(false),
        };
        inbox.end(id, ending, by).await.map_err(not_withdrawn)?;
        // The record of the call names the request that it replaces.
        open.record.approval = Some(id.clone());
    }
    let message = "the request for approval of this call keeps changing; nothing ran now";
    Err(EarlyEnd::failed(ErrorKind::Unavailable, message).advise("make the call again"))
}

/// What to do about a request that answers the call.
enum RequestAction {
    End(RequestEnding),
    Count,
    /// It decides nothing about this call.
    Pass,
}

fn next(found: &StoredApproval, denied: bool) -> RequestAction {
    // The tool that asks finds its question by itself.
    if found.request.is_question() {
        return RequestAction::Pass;
    }
    match found.status {
        RequestStatus::Pending if !found.is_open() => RequestAction::Pass,
        RequestStatus::Pending => RequestAction::End(RequestEnding::Withdrawn),
        RequestStatus::Approved if denied || !is_edited(found) => {
            RequestAction::End(RequestEnding::Void)
        }
        RequestStatus::Approved | RequestStatus::Running => RequestAction::Count,
        // The outcome of a script's call is the script's.
        RequestStatus::Done if !found.delivered && found.request.parent.is_none() => {
            RequestAction::Count
        }
        RequestStatus::Denied | RequestStatus::Answered if !found.claimed && !denied => {
            RequestAction::Count
        }
        RequestStatus::Denied
        | RequestStatus::Answered
        | RequestStatus::Done
        | RequestStatus::Expired
        | RequestStatus::Withdrawn
        | RequestStatus::InDoubt => RequestAction::Pass,
    }
}

/// Returns whether the user approved other arguments than those of the call.
fn is_edited(found: &StoredApproval) -> bool {
    let choice = found.decision.as_ref().map(|decision| &decision.choice);
    matches!(
        choice,
        Some(Choice::Approve {
            edited: Some(_),
            ..
        })
    )
}

pub(super) fn not_withdrawn(error: impl fmt::Display) -> EarlyEnd {
    let message = format!(
        "a request for approval of this call may be pending, and cannot be withdrawn: {error}"
    );
    EarlyEnd::failed(ErrorKind::Unavailable, message)
        .advise("nothing ran now; call again when requests can be stored")
        .for_operator("do what the error says, then make the call again; `haft doctor` checks the state folder")
}

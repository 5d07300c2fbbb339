//! What a reviewer's approval needs when its call runs, beyond what a person's does: the call is judged anew, and no budget is exceeded.

use crate::approval::review::ReviewVerdict;
use crate::approval::{ApprovalRequest, Choice, Decision};
use crate::budget::Reservation;
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::budgets;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::judge::{RuledCall, denied, judgement, request};
use crate::permission::Verdict;

/// Returns what a decided call has reserved: if a reviewer approved it, all of it now; `reserved` otherwise.
pub(super) async fn reserved(
    open: &OpenCall<'_>,
    judged: &RuledCall,
    decision: &Decision,
    reserved: Option<Reservation>,
) -> Result<Option<Reservation>, EarlyEnd> {
    match decision.choice {
        Choice::Approve { .. } if decision.is_by_reviewer() => {
            Box::pin(reserve(open, judged)).await.map(Some)
        }
        _ => Ok(reserved),
    }
}

/// Reserves what the call uses up, if the reviewer may still allow it: no rule or guard asks about it by now, and its budgets have room.
async fn reserve(open: &OpenCall<'_>, judged: &RuledCall) -> Result<Reservation, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let admitted = &judged.admitted;
    // The call was judged before it waited.
    let judgement = judgement(
        parts,
        session,
        admitted,
        judged.judgement.shared_permissions(),
    )?;
    if judgement.ruling().verdict == Verdict::Deny {
        return Err(denied(judgement.ruling()));
    }
    let now = request(parts, session, open.caller(), admitted, &judgement)?;
    if let Some(why) = why_not(parts, &now) {
        return Err(void(&why));
    }
    let reserved = budgets::take(open, judged, false).await;
    reserved.map_err(|no_room| void(&no_room.to_string()))
}

/// Returns why the reviewer of this process does not decide about a call as it is now.
fn why_not(parts: &ExecutorParts, now: &ApprovalRequest) -> Option<String> {
    let Some(reviewer) = &parts.reviewer else {
        return Some("the settings name no reviewer now".to_owned());
    };
    reviewer.powers().why_not(now, ReviewVerdict::Allow).err()
}

fn void(why: &str) -> EarlyEnd {
    let message = "a reviewer allowed the call, and may not by now: nothing ran";
    EarlyEnd::failed(ErrorKind::Conflict, message)
        .advise("call again to request approval again")
        .for_operator(why)
}

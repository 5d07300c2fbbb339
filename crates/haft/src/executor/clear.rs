//! Clear: applies the policy's verdict to a call and asks the user if needed.

use crate::approval::Extent;
use crate::budget::NoRoom;
use crate::executor::approve;
use crate::executor::budgets;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::judge::{Cleared, Judged, denied};
use crate::executor::settlement::Settlement;
use crate::judgement::Consent;
use crate::permission::Verdict;
use crate::session::Session;

/// Clears a call that the policy does not simply allow, or returns why it was stopped.
pub(super) async fn clear(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: Judged,
) -> Result<Cleared, EarlyEnd> {
    let verdict = judged.ruling().verdict;
    if verdict == Verdict::Deny {
        return Err(denied(judged.ruling()));
    }
    if let Some(ticket) = settlement.take_ticket() {
        return approve::resumed(open, settlement, judged, ticket).await;
    }
    if verdict == Verdict::Allow {
        return match budgets::take(open, &judged, false).await {
            Ok(taken) => judged.clear_allowed(taken),
            Err(no_room) => clear_over_budget(open, settlement, judged, &no_room).await,
        };
    }
    if let Some(no_room) = budgets::no_room(open, &judged) {
        return clear_over_budget(open, settlement, judged, &no_room).await;
    }
    if let Some(by) = find_grant(open.session(), &judged)? {
        return match budgets::take(open, &judged, false).await {
            Ok(taken) => {
                open.record.decided_by = Some(by.clone());
                let grant = Consent { by, approval: None };
                judged.clear_with_consent(grant, None, taken)
            }
            Err(no_room) => clear_over_budget(open, settlement, judged, &no_room).await,
        };
    }
    approve::ask_user(open, settlement, judged).await
}

/// Clears a call that exceeds the budgets: no rule or grant lets it pass, only the user's decision.
pub(super) async fn clear_over_budget(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: Judged,
    no_room: &NoRoom,
) -> Result<Cleared, EarlyEnd> {
    let judged = judged.raise_for_budget(open, no_room);
    approve::ask_user(open, settlement, judged).await
}

/// Returns who granted such calls for the session, if anyone did.
fn find_grant(session: &Session, judged: &Judged) -> Result<Option<String>, EarlyEnd> {
    let Judged {
        admitted,
        judgement,
    } = judged;
    let entry = admitted.entry();
    let name = &entry.spec().name;
    if !session.grants().iter().any(|grant| grant.is_for(name)) {
        return Ok(None);
    }
    let input = admitted.input();
    let permissions = judgement.permissions().to_vec();
    let call = Extent {
        tool: name.clone(),
        spec_hash: entry.spec_hash().to_owned(),
        risk: judgement.ruling().risk,
        conditions: input.conditions()?,
        unstated: input.unstated(admitted.written(), &permissions)?,
        permissions,
        causes: judgement.ruling().causes.clone(),
    };
    let grants = session.grants();
    let by = grants.iter().find_map(|grant| grant.covers(&call));
    Ok(by.map(str::to_owned))
}

//! Clear: applies the policy's verdict to a call and asks the user if needed.

use crate::approval::GrantExtent;
use crate::budget::{BudgetError, Reservation};
use crate::executor::approve;
use crate::executor::budgets;
use crate::executor::early_end::EarlyEnd;
use crate::executor::effects;
use crate::executor::exit::OpenCall;
use crate::executor::judge::{ClearedCall, RuledCall, denied};
use crate::executor::no_open_request::{self, EarlierRequest, NoOpenRequest};
use crate::executor::settlement::Settlement;
use crate::judgement::Consent;
use crate::permission::Verdict;
use crate::tool::Depth;

/// Clears a call that the policy does not simply allow, or returns why it was stopped.
pub(super) async fn clear(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
) -> Result<ClearedCall, EarlyEnd> {
    let verdict = judged.ruling().verdict;
    if verdict == Verdict::Deny {
        // The decision that a call is resumed with stays for when the call matches it again.
        if settlement.has_ticket() {
            return Err(denied(judged.ruling()));
        }
        return refuse(open, settlement, judged).await;
    }
    if let Some(ticket) = settlement.take_ticket() {
        // What needs no approval now does not fail because its approval no longer holds.
        if verdict == Verdict::Allow && approve::still_fits(open, &judged, &ticket).is_err() {
            return clear_allowed(open, settlement, judged).await;
        }
        return approve::resumed(open, settlement, judged, ticket).await;
    }
    if verdict == Verdict::Allow {
        return clear_allowed(open, settlement, judged).await;
    }
    if let Some(no_room) = budgets::no_room(open, &judged) {
        return clear_over_budget(open, settlement, judged, &no_room).await;
    }
    if let Some(by) = find_grant(open, &judged)? {
        let taken = match budgets::take(open, &judged, false).await {
            Ok(taken) => taken,
            Err(no_room) => return clear_over_budget(open, settlement, judged, &no_room).await,
        };
        let why = no_open_request::by_other(&format!("a grant of {by}"));
        return match no_open_request::withdraw(open, judged.decided(), &why).await? {
            EarlierRequest::Over(unasked) => {
                open.record.decided_by = Some(by.clone());
                let grant = Consent { by, approval: None };
                judged.clear_with_consent(grant, None, taken, unasked)
            }
            EarlierRequest::Counts => approve::find_decision(open, settlement, judged).await,
        };
    }
    approve::ask_user(open, settlement, judged).await
}

/// Clears a call that the policy allows.
pub(super) async fn clear_allowed(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
) -> Result<ClearedCall, EarlyEnd> {
    let taken = match budgets::take(open, &judged, false).await {
        Ok(taken) => taken,
        Err(no_room) => {
            return Box::pin(clear_over_budget(open, settlement, judged, &no_room)).await;
        }
    };
    if let Some(unasked) = NoOpenRequest::never_asked(open.session()) {
        return judged.clear_allowed(taken, unasked);
    }
    // Boxed: few runs have asked, and the future of every call would be as large.
    Box::pin(clear_earlier(open, settlement, judged, taken)).await
}

/// Clears an allowed call of a run that has asked about calls.
async fn clear_earlier(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
    taken: Reservation,
) -> Result<ClearedCall, EarlyEnd> {
    let why = no_open_request::by_policy(judged.ruling());
    match no_open_request::withdraw(open, judged.decided(), &why).await? {
        EarlierRequest::Over(unasked) => judged.clear_allowed(taken, unasked),
        EarlierRequest::Counts => approve::find_decision(open, settlement, judged).await,
    }
}

/// Refuses a call that the policy denies. One that runs on an earlier approval, or has run, gets that outcome instead.
async fn refuse(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
) -> Result<ClearedCall, EarlyEnd> {
    let why = no_open_request::by_policy(judged.ruling());
    match no_open_request::withdraw(open, judged.decided(), &why).await? {
        EarlierRequest::Over(_) => Err(denied(judged.ruling())),
        EarlierRequest::Counts => approve::find_decision(open, settlement, judged).await,
    }
}

/// Clears a call that exceeds the budgets: no rule or grant lets it pass, only the user's decision.
pub(super) async fn clear_over_budget(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
    no_room: &BudgetError,
) -> Result<ClearedCall, EarlyEnd> {
    let judged = judged.raise_for_budget(open, no_room);
    approve::ask_user(open, settlement, judged).await
}

/// Returns who granted such calls for the session, if anyone did.
fn find_grant(open: &OpenCall<'_>, judged: &RuledCall) -> Result<Option<String>, EarlyEnd> {
    let RuledCall {
        admitted,
        judgement,
    } = judged;
    let entry = admitted.entry();
    let name = &entry.spec().name;
    let session = open.session();
    let mut grants = session.grants();
    grants.retain(|grant| grant.is_for(name));
    if grants.is_empty() {
        return Ok(None);
    }
    let policy = open.parts().policy.now();
    let input = admitted.input();
    let intent = input.intent(Depth::Conditions, &mut drop)?;
    let permissions = judgement.permissions().to_vec();
    let call = GrantExtent {
        tool: name.clone(),
        spec_hash: entry.spec_hash().to_owned(),
        workspace: policy.workspace_root().unwrap_or_default().to_owned(),
        principal: session.principal().clone(),
        risk: judgement.ruling().risk,
        conditions: intent.conditions,
        unstated: effects::unstated(admitted.written(), &permissions, intent.stated),
        permissions,
        causes: judgement.ruling().causes.clone(),
    };
    let here = policy.safeguards();
    let by = grants.iter().find_map(|grant| grant.covers(&call, &here));
    Ok(by.map(str::to_owned))
}

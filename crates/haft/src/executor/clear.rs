//! Clear: the policy's verdict on a call, and the user where one must be asked.

use crate::approval::Extent;
use crate::executor::approve;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::judge::{Cleared, Judged, denied};
use crate::executor::settlement::Settlement;
use crate::judgement::Consent;
use crate::permission::Verdict;
use crate::session::Session;

/// Clears a call that is not simply allowed, or says who stopped it.
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
        return judged.allowed();
    }
    if let Some(by) = granted(open.session(), &judged)? {
        open.record.decided_by = Some(by.clone());
        let grant = Consent { by, approval: None };
        return judged.consented(grant, None);
    }
    approve::ask_user(open, settlement, judged).await
}

/// Who allowed such calls for the session, if anybody did.
fn granted(session: &Session, judged: &Judged) -> Result<Option<String>, EarlyEnd> {
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
    };
    let grants = session.grants();
    let by = grants.iter().find_map(|grant| grant.covers(&call));
    Ok(by.map(str::to_owned))
}

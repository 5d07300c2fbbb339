//! Clear: what the call would do, the policy's verdict, and the person where one must be asked.

use std::sync::Arc;

use crate::approval::{ApprovalRequest, Extent, Snapshot};
use crate::error::{ErrorKind, bounded};
use crate::executor::Parts;
use crate::executor::admit::Admitted;
use crate::executor::approve;
use crate::executor::draft::{Caller, Draft};
use crate::executor::effects::Runnable;
use crate::executor::exit::OpenCall;
use crate::executor::stop::Stop;
use crate::judgement::{Consent, Judgement};
use crate::permission::Verdict;
use crate::policy::{JudgedCall, Policy, Ruling};
use crate::session::Session;
use crate::spec::ToolSpec;
use crate::toolset::Entry;

/// A call that may run, with what was judged of it. Made here alone: nothing runs that was not cleared.
pub(super) struct Cleared {
    admitted: Admitted,
    judgement: Judgement,
}

impl Cleared {
    /// The tool and the arguments as the caller wrote them.
    pub(super) fn known_as(&self) -> (&Entry, &str) {
        (self.admitted.entry(), self.admitted.written())
    }

    /// The tool's spec.
    pub(super) fn spec(&self) -> &Arc<ToolSpec> {
        self.admitted.entry().spec()
    }

    /// What was judged of it.
    pub(super) fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// What is no longer as the user saw it who approved; looked at again just before it runs.
    pub(super) fn difference(&self, policy: &Policy) -> Result<Option<String>, Stop> {
        let Some(seen) = self.judgement.shown() else {
            return Ok(None);
        };
        let input = self.admitted.input();
        let now = input.snapshot(input.permissions(policy)?)?;
        Ok(seen.difference(&now))
    }

    /// Its parts, for the one place that runs it.
    pub(super) fn into_parts(self) -> (Arc<Entry>, Runnable, Judgement) {
        let (entry, runnable) = self.admitted.into_parts();
        (entry, runnable, self.judgement)
    }
}

/// A call with its judgement.
pub(super) struct Judged {
    pub(super) admitted: Admitted,
    pub(super) judgement: Judgement,
}

impl Judged {
    /// How the policy rules on it.
    pub(super) fn ruling(&self) -> &Ruling {
        self.judgement.ruling()
    }

    /// A call that may run, by this decision where the policy asked for one.
    pub(super) fn cleared(self, decision: Option<Consent>) -> Cleared {
        Cleared {
            admitted: self.admitted,
            judgement: self.judgement.decided(decision),
        }
    }

    /// A call that may run as long as it would do what the user saw who approved it.
    pub(super) fn cleared_as_shown(self, decision: Consent, shown: Snapshot) -> Cleared {
        Cleared {
            admitted: self.admitted,
            judgement: self.judgement.decided(Some(decision)).as_shown(shown),
        }
    }
}

/// Clears a call, or says who stopped it.
pub(super) async fn clear(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    admitted: Admitted,
) -> Result<Cleared, Stop> {
    let judged = judge(parts, session, open, admitted)?;
    let verdict = judged.ruling().verdict;
    if verdict == Verdict::Deny {
        return Err(denied(judged.ruling()));
    }
    if let Some(ticket) = open.ticket.take() {
        return approve::resumed(parts, session, open, judged, ticket).await;
    }
    if verdict == Verdict::Allow {
        return Ok(judged.cleared(None));
    }
    if let Some(by) = granted(session, &judged)? {
        open.decided_by = Some(by.clone());
        let grant = Consent { by, approval: None };
        return Ok(judged.cleared(Some(grant)));
    }
    // Boxed: few calls ask, and every call's future would be as large as this one.
    Box::pin(approve::asked(parts, session, open, judged)).await
}

/// What the call would do and how the policy rules on it; both are noted for the record.
pub(super) fn judge(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    admitted: Admitted,
) -> Result<Judged, Stop> {
    let judgement = judgement(parts, session, &admitted);
    let judgement = judgement.inspect_err(|_| open.judged = Some(admitted.written().into()))?;
    let ruling = judgement.ruling();
    if open.is_recorded() || ruling.verdict != Verdict::Allow {
        open.judged = Some(admitted.written().into());
        open.ruling = Some((ruling.verdict, ruling.rule.to_string()));
    }
    Ok(Judged {
        admitted,
        judgement,
    })
}

/// What a call would do now, and how the policy rules on it now. Nothing is noted.
pub(super) fn judgement(
    parts: &Parts,
    session: &Session,
    admitted: &Admitted,
) -> Result<Judgement, Stop> {
    let policy = parts.policy.now();
    let input = admitted.input();
    let permissions = input.permissions(&policy)?;
    let unstated = policy
        .keeps_calls_of(admitted.entry().spec().name.as_str())
        .then(|| input.unstated(admitted.written(), &permissions))
        .transpose()?;
    let call = JudgedCall {
        unstated: unstated.as_deref(),
        ..JudgedCall::new(admitted.entry().spec(), input.arguments(), &permissions)
    };
    let mut ruling = policy.judge(&call);
    if ruling.verdict == Verdict::Allow && ruling.risk > session.limits().max_risk_unapproved {
        ruling = above(session, ruling);
    }
    // What a skill lets a run call was asked of the call around an internal one.
    if ruling.verdict < Verdict::Deny
        && !admitted.is_internal()
        && let Some(denied) = session.restricted(&policy, &call, ruling.risk)
    {
        ruling = denied;
    }
    Ok(Judgement::new(permissions, ruling))
}

/// An allowed call whose risk is above what the session's limits let pass unasked.
fn above(session: &Session, ruling: Ruling) -> Ruling {
    let most = session.limits().max_risk_unapproved;
    Ruling {
        verdict: Verdict::Ask,
        rule: "max_risk_unapproved".into(),
        reason: format!("risk {} is above {most} here", ruling.risk).into(),
        advice: "make the call outside the chain".into(),
        operator: "raise chain.max_risk_unapproved".into(),
        ..ruling
    }
}

/// Who allowed such calls for the session, if anybody did.
fn granted(session: &Session, judged: &Judged) -> Result<Option<String>, Stop> {
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

/// The request, whole: what is decided is what is written here.
pub(super) fn request(
    parts: &Parts,
    session: &Session,
    caller: Caller<'_>,
    admitted: &Admitted,
    judgement: &Judgement,
) -> Result<ApprovalRequest, Stop> {
    let (permissions, ruling) = (judgement.permissions(), judgement.ruling());
    let draft = Draft {
        entry: admitted.entry(),
        caller,
        arguments: admitted.written(),
    };
    let request = draft.request(parts, session)?;
    let input = admitted.input();
    let unstated = input.unstated(admitted.written(), permissions)?;
    let call = JudgedCall {
        unstated: Some(&unstated),
        ..JudgedCall::new(admitted.entry().spec(), input.arguments(), permissions)
    };
    let policy = parts.policy.now();
    let (verdicts, suggested) = (policy.verdicts(&call), policy.suggest(&call));
    Ok(ApprovalRequest {
        snapshot: input.snapshot(permissions.to_vec())?,
        verdicts,
        risk: ruling.risk,
        reason: bounded(ruling.reason.to_string()),
        rule: ruling.rule.to_string(),
        suggested,
        unstated,
        ..request
    })
}

/// A denial by the policy.
pub(super) fn denied(ruling: &Ruling) -> Stop {
    let reason = ruling.reason.to_string();
    let message = if reason.is_empty() {
        format!("denied by {}", ruling.rule)
    } else {
        reason
    };
    Stop::new(ErrorKind::Denied, message)
        .advise(ruling.advice.to_string())
        .for_operator(ruling.operator.to_string())
}

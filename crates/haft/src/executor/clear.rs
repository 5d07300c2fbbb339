//! Clear: what the call would do, the policy's verdict, and the person where one must be asked.

use std::sync::Arc;

use crate::approval::{ApprovalRequest, Extent, Snapshot};
use crate::arguments::Arguments;
use crate::error::{ErrorKind, bounded};
use crate::executor::Parts;
use crate::executor::admit::Admitted;
use crate::executor::approve;
use crate::executor::draft::{Caller, Draft};
use crate::executor::effects;
use crate::executor::exit::OpenCall;
use crate::executor::stop::Stop;
use crate::permission::{Permission, Verdict};
use crate::policy::{JudgedCall, Policy, Ruling};
use crate::session::Session;
use crate::spec::{Risk, ToolSpec};
use crate::tool::Tool;
use crate::toolset::Entry;

/// A call that may run. Made here alone: nothing runs that was not cleared.
pub(super) struct Cleared {
    admitted: Admitted,
    permissions: Vec<Permission>,
    risk: Risk,
    /// What the person saw who approved.
    seen: Option<Snapshot>,
}

impl Cleared {
    /// A judged call that may run.
    pub(super) fn new(judged: Judged) -> Self {
        Self {
            admitted: judged.admitted,
            risk: judged.judgement.ruling.risk,
            permissions: judged.judgement.permissions,
            seen: None,
        }
    }

    /// The same, as long as it would do what a person saw.
    pub(super) fn while_like(mut self, seen: Snapshot) -> Self {
        self.seen = Some(seen);
        self
    }

    /// The tool and the arguments as the caller wrote them.
    pub(super) fn known_as(&self) -> (&Entry, &str) {
        (self.admitted.entry(), self.admitted.written())
    }

    /// The tool's spec.
    pub(super) fn spec(&self) -> &Arc<ToolSpec> {
        self.admitted.entry().spec()
    }

    /// How harmful the call is.
    pub(super) fn risk(&self) -> Risk {
        self.risk
    }

    /// What is no longer as the person saw it who approved; looked at again just before it runs.
    pub(super) fn difference(&self, policy: &Policy) -> Result<Option<String>, Stop> {
        let Some(seen) = &self.seen else {
            return Ok(None);
        };
        let (tool, arguments) = (self.admitted.tool().as_ref(), self.admitted.arguments());
        let permissions = effects::permissions(tool, arguments, policy)?;
        let now = effects::snapshot(tool, arguments, permissions)?;
        Ok(seen.difference(&now))
    }

    /// Its parts, for the one place that runs it.
    pub(super) fn into_parts(self) -> (Arc<Entry>, Arc<dyn Tool>, Arguments, Vec<Permission>) {
        let (entry, tool, arguments) = self.admitted.into_parts();
        (entry, tool, arguments, self.permissions)
    }
}

/// What a call would do, and how the policy rules on it.
pub(super) struct Judgement {
    pub(super) permissions: Vec<Permission>,
    pub(super) ruling: Ruling,
}

/// A call with its judgement.
pub(super) struct Judged {
    pub(super) admitted: Admitted,
    pub(super) judgement: Judgement,
}

impl Judged {
    /// How the policy rules on it.
    pub(super) fn ruling(&self) -> &Ruling {
        &self.judgement.ruling
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
        return Ok(Cleared::new(judged));
    }
    if let Some(by) = granted(session, &judged)? {
        open.decided_by = Some(by);
        return Ok(Cleared::new(judged));
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
    let ruling = &judgement.ruling;
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
    let (tool, arguments) = (admitted.tool().as_ref(), admitted.arguments());
    let permissions = effects::permissions(tool, arguments, &policy)?;
    let unstated = policy
        .keeps_calls_of(admitted.entry().spec().name.as_str())
        .then(|| effects::unstated(tool, arguments, admitted.written(), &permissions))
        .transpose()?;
    let call = JudgedCall {
        unstated: unstated.as_deref(),
        ..JudgedCall::new(admitted.entry().spec(), arguments, &permissions)
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
    Ok(Judgement {
        permissions,
        ruling,
    })
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
    let (tool, arguments) = (admitted.tool().as_ref(), admitted.arguments());
    let permissions = judgement.permissions.clone();
    let call = Extent {
        tool: name.clone(),
        spec_hash: entry.spec_hash().to_owned(),
        risk: judgement.ruling.risk,
        conditions: effects::conditions(tool, arguments)?,
        unstated: effects::unstated(tool, arguments, admitted.written(), &permissions)?,
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
    let Judgement {
        permissions,
        ruling,
    } = judgement;
    let draft = Draft {
        entry: admitted.entry(),
        caller,
        arguments: admitted.written(),
    };
    let request = draft.request(parts, session)?;
    let (tool, arguments) = (admitted.tool().as_ref(), admitted.arguments());
    let unstated = effects::unstated(tool, arguments, admitted.written(), permissions)?;
    let call = JudgedCall {
        unstated: Some(&unstated),
        ..JudgedCall::new(admitted.entry().spec(), arguments, permissions)
    };
    let policy = parts.policy.now();
    let (verdicts, suggested) = (policy.verdicts(&call), policy.suggest(&call));
    Ok(ApprovalRequest {
        snapshot: effects::snapshot(tool, arguments, permissions.clone())?,
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

//! `RuledCall` and `ClearedCall`: what a call would do with the policy's ruling, the request that states both, and the call that may run.

use std::sync::Arc;

use crate::approval::{ApprovalRequest, CallSnapshot, bounded};
use crate::budget::{BUDGET_RULE, BudgetError, EffectCounts, Reservation};
use crate::error::{ErrorKind, bounded};
use crate::executor::ExecutorParts;
use crate::executor::admit::AdmittedCall;
use crate::executor::draft::{CallIdentity, UndecidedCall};
use crate::executor::early_end::EarlyEnd;
use crate::executor::effects::{self, Moment};
use crate::executor::exit::OpenCall;
use crate::executor::no_open_request::{DecidedCall, NoOpenRequest};
use crate::judgement::{Consent, Judgement};
use crate::permission::{Permission, Verdict};
use crate::policy::{Cause, CauseKind, JudgedCall, Ruling, RunProperties};
use crate::session::Session;
use crate::spec::ToolSpec;
use crate::tool::{Depth, Intent, PreparedCall};
use crate::toolset::ToolEntry;

/// A call that may run, with its judgement. Only this module creates it: nothing runs that was not cleared.
pub(super) struct ClearedCall {
    admitted: AdmittedCall,
    judgement: Arc<Judgement>,
    reservation: Reservation,
}

impl ClearedCall {
    /// Returns what it reserved from the effect budgets.
    pub(super) fn uses(&self) -> EffectCounts {
        self.reservation.uses()
    }

    /// Marks its budget reservation as used, because the call starts.
    pub(super) fn spend(&mut self) {
        std::mem::take(&mut self.reservation).spend();
    }

    /// Returns the tool and the arguments as the caller wrote them.
    pub(super) fn tool_and_arguments(&self) -> (&ToolEntry, &str) {
        (self.admitted.entry(), self.admitted.written())
    }

    /// Returns what the call adds to what its run holds of the Rule of Two.
    pub(super) fn properties(&self, parts: &ExecutorParts, session: &Session) -> RunProperties {
        let run = session.history();
        let permissions = self.judgement.permissions();
        let arguments = self.admitted.input().arguments().as_str();
        let call = JudgedCall::new(self.spec(), arguments, permissions, &run);
        parts.policy.now().rule_of_two(&call).adds
    }

    pub(super) fn spec(&self) -> &Arc<ToolSpec> {
        self.admitted.entry().spec()
    }

    pub(super) fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// Returns what has changed since the user approved; checked again just before the call runs.
    pub(super) fn difference(
        &self,
        parts: &ExecutorParts,
        session: &Session,
    ) -> Result<Option<String>, EarlyEnd> {
        let Some(seen) = self.judgement.approved_snapshot() else {
            return Ok(None);
        };
        let (input, run) = (self.admitted.input(), session.history());
        let moment = Moment {
            policy: &parts.policy.now(),
            spec: self.spec(),
            run: &run,
            known: self.judgement.shared_permissions(),
        };
        let (permissions, now) = input.judged_intent(&moment, Depth::Files)?;
        Ok(seen.difference(&snapshot(&permissions, now)))
    }

    /// Returns a name under which rules do not simply allow the call, if links gave it to one of its files after it was judged.
    pub(super) fn unjudged_name(
        &self,
        parts: &ExecutorParts,
        session: &Session,
    ) -> Result<Option<String>, EarlyEnd> {
        let (policy, run) = (parts.policy.now(), session.history());
        let judged = self.judgement.permissions();
        let input = self.admitted.input();
        let linked = input.linked(&policy, self.spec(), judged, &run)?;
        let new = linked.into_iter().find(|one| !judged.contains(one));
        Ok(new.map(|one| one.effect.value().to_owned()))
    }

    /// Splits the call into its parts, for the one place that runs it.
    pub(super) fn into_parts(self) -> (Arc<ToolEntry>, Box<dyn PreparedCall>, Arc<Judgement>) {
        let (entry, call) = self.admitted.into_parts();
        (entry, call, self.judgement)
    }
}

/// A call with its judgement.
pub(super) struct RuledCall {
    pub(super) admitted: AdmittedCall,
    pub(super) judgement: Arc<Judgement>,
}

impl RuledCall {
    /// Returns the policy's ruling.
    pub(super) fn ruling(&self) -> &Ruling {
        self.judgement.ruling()
    }

    /// Returns the call as it is decided now.
    pub(super) fn decided(&self) -> DecidedCall<'_> {
        DecidedCall {
            entry: self.admitted.entry(),
            written: self.admitted.written(),
            verdict: self.ruling().verdict,
        }
    }

    /// Raises the verdict to a request for approval, because the budgets have no room for the call.
    pub(super) fn raise_for_budget(self, open: &mut OpenCall<'_>, no_room: &BudgetError) -> Self {
        let ruling = ask_over_budget(self.ruling(), no_room);
        open.record.judge(self.admitted.written());
        open.record.rule(&ruling);
        let permissions = Arc::clone(self.judgement.shared_permissions());
        Self {
            admitted: self.admitted,
            judgement: Arc::new(Judgement::new(permissions, ruling)),
        }
    }

    /// Clears a call that the policy allows and the budgets have room for.
    pub(super) fn clear_allowed(
        self,
        reservation: Reservation,
        _: NoOpenRequest,
    ) -> Result<ClearedCall, EarlyEnd> {
        if self.ruling().verdict != Verdict::Allow {
            return Err(denied(self.ruling()));
        }
        Ok(ClearedCall {
            admitted: self.admitted,
            judgement: self.judgement,
            reservation,
        })
    }

    /// Clears a call on a decision; no decision lowers a deny. It runs only while it would do what was shown, if anything was.
    pub(super) fn clear_with_consent(
        self,
        decision: Consent,
        shown: Option<CallSnapshot>,
        reservation: Reservation,
        _: NoOpenRequest,
    ) -> Result<ClearedCall, EarlyEnd> {
        if self.ruling().verdict == Verdict::Deny {
            return Err(denied(self.ruling()));
        }
        let judgement = Arc::unwrap_or_clone(self.judgement).decided(decision, shown);
        Ok(ClearedCall {
            admitted: self.admitted,
            judgement: Arc::new(judgement),
            reservation,
        })
    }
}

/// Determines what the call would do and how the policy rules on it, and notes both for the record.
pub(super) fn judge(
    open: &mut OpenCall<'_>,
    admitted: AdmittedCall,
) -> Result<RuledCall, EarlyEnd> {
    let judgement = judgement(open.parts(), open.session(), &admitted, &Arc::default());
    let judgement = judgement.inspect_err(|_| open.record.judge(admitted.written()))?;
    let ruling = judgement.ruling();
    if open.is_recorded() || ruling.verdict != Verdict::Allow {
        open.record.judge(admitted.written());
        open.record.rule(ruling);
    }
    Ok(RuledCall {
        admitted,
        judgement,
    })
}

/// Returns what a call would do now, and how the policy rules on it now. Notes nothing. What is `known` of an earlier moment is shared.
pub(super) fn judgement(
    parts: &ExecutorParts,
    session: &Session,
    admitted: &AdmittedCall,
    known: &Arc<Vec<Permission>>,
) -> Result<Arc<Judgement>, EarlyEnd> {
    let policy = parts.policy.now();
    let (input, run) = (admitted.input(), session.history());
    let spec = admitted.entry().spec();
    let moment = Moment {
        policy: &policy,
        spec,
        run: &run,
        known,
    };
    let (permissions, intent) = input.judged_intent(&moment, Depth::Permissions)?;
    let stated = intent.stated;
    let unstated = policy
        .covers_saved_calls_of(spec.name.as_str())
        .then(|| effects::unstated(admitted.written(), &permissions, stated));
    let call = JudgedCall::new(spec, input.arguments().as_str(), &permissions, &run)
        .with_unstated(unstated.as_deref());
    let mut ruling = policy.judge(&call);
    if ruling.verdict == Verdict::Allow && ruling.risk > session.limits().max_risk_unapproved {
        ruling = raise_by_risk(session, ruling);
    }
    // A skill's restrictions apply to the outer call of an internal one, if there is one.
    if ruling.verdict < Verdict::Deny
        && !(admitted.is_internal() && session.nest().is_some())
        && let Some(denied) = session.skill_denial(&policy, &call, ruling.risk)
    {
        ruling = denied;
    }
    Ok(Arc::new(Judgement::new(permissions, ruling)))
}

/// Makes an allowed call need approval whose risk is above the session's limit for unapproved calls.
fn raise_by_risk(session: &Session, ruling: Ruling) -> Ruling {
    let most = session.limits().max_risk_unapproved;
    Ruling {
        verdict: Verdict::Ask,
        causes: vec![Cause::new(CauseKind::RiskLimit, "max_risk_unapproved")],
        rule: "max_risk_unapproved".into(),
        reason: format!("risk {} is above {most} here", ruling.risk).into(),
        advice: "make the call outside the chain".into(),
        operator: "raise chain.max_risk_unapproved".into(),
        ..ruling
    }
}

/// Returns the ruling on a call that exceeds the budgets: it needs approval, each time.
fn ask_over_budget(ruling: &Ruling, no_room: &BudgetError) -> Ruling {
    let message = no_room.to_string();
    let reason = if ruling.verdict == Verdict::Allow || ruling.reason.to_string() == message {
        message
    } else {
        format!("{message}; {}", ruling.reason)
    };
    let mut ruling = Ruling {
        verdict: Verdict::Ask,
        rule: BUDGET_RULE.into(),
        layer: "guard".into(),
        reason: reason.into(),
        advice: "continue without it, or tell the user that it needs approval".into(),
        operator: no_room.operator().into(),
        ..ruling.clone()
    };
    ruling.add_cause(Cause::new(CauseKind::Budget, "budgets").each_time(true));
    ruling
}

/// Returns the complete request: the decision applies to what it states.
pub(super) fn request(
    parts: &ExecutorParts,
    session: &Session,
    caller: CallIdentity<'_>,
    admitted: &AdmittedCall,
    judgement: &Judgement,
) -> Result<ApprovalRequest, EarlyEnd> {
    let (permissions, ruling) = (judgement.permissions(), judgement.ruling());
    let draft = UndecidedCall {
        entry: admitted.entry(),
        caller,
        arguments: admitted.written(),
    };
    let request = draft.request(parts, session)?;
    let input = admitted.input();
    let intent = input.intent(Depth::Files, &mut drop)?;
    let unstated = effects::unstated(admitted.written(), permissions, intent.stated);
    let snapshot = snapshot(permissions, intent);
    let run = session.history();
    let call = JudgedCall::new(
        admitted.entry().spec(),
        input.arguments().as_str(),
        permissions,
        &run,
    )
    .with_unstated(unstated.as_str());
    let policy = parts.policy.now();
    let (verdicts, suggested) = (policy.verdicts(&call), policy.suggest(&call));
    let shown = verdicts.into_iter().zip(bounded::named(permissions));
    let verdicts = shown
        .filter(|(_, named)| *named)
        .map(|(verdict, _)| verdict);
    Ok(ApprovalRequest {
        snapshot,
        verdicts: verdicts.collect(),
        risk: ruling.risk,
        reason: bounded(ruling.reason.to_string()),
        rule: ruling.rule.to_string(),
        causes: ruling.causes.clone(),
        safeguards: policy.safeguards().bounded(),
        rule_of_two: Some(policy.rule_of_two(&call)).filter(|state| state.is_third()),
        suggested,
        unstated,
        ..request
    })
}

/// Returns the judged permissions with the conditions and files of an intent.
fn snapshot(permissions: &[Permission], intent: Intent) -> CallSnapshot {
    let Intent {
        conditions,
        preview,
        meanings,
        ..
    } = intent;
    CallSnapshot::of(permissions, conditions, preview, meanings)
}

/// Returns the failure of a call that the policy denies.
pub(super) fn denied(ruling: &Ruling) -> EarlyEnd {
    let reason = ruling.reason.to_string();
    let message = if reason.is_empty() {
        format!("denied by {}", ruling.rule)
    } else {
        reason
    };
    EarlyEnd::failed(ErrorKind::Denied, message)
        .advise(ruling.advice.to_string())
        .for_operator(ruling.operator.to_string())
}

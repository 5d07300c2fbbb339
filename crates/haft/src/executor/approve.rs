//! Approve: asks the user, and acts on the decision if the call is still the one that was shown.

use std::sync::Arc;

use serde_json::Value;

use crate::approval::review::Review;
use crate::approval::{ApprovalId, ApprovalRequest, ApprovalScope, CallSnapshot, Choice, Grant};
use crate::budget::{BudgetError, Reservation};
use crate::call::ToolCall;
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::admit::{self, AdmittedCall};
use crate::executor::again::{self, DecisionNeed};
use crate::executor::ask::{self, ClaimedDecision, DecidedRequest};
use crate::executor::budgets;
use crate::executor::call_result::OutcomeContent;
use crate::executor::draft::CallIdentity;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::incoming::CallMode;
use crate::executor::judge::{ClearedCall, RuledCall, denied, judge, judgement, request};
use crate::executor::no_open_request::{self, EarlierRequest, NoOpenRequest};
use crate::executor::reviewed;
use crate::executor::settlement::{ResumeDecision, Settlement};
use crate::judgement::Consent;
use crate::permission::{Effect, Permission, Verdict};
use crate::policy::{PROPOSED_RULE, Policy, RuleSet, RuleText, Ruling};
use crate::result::{Content, Status};
use crate::session::Session;

/// Asks the user. Without an approver or an answer, the call is denied or stays pending.
pub(super) async fn ask_user(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
) -> Result<ClearedCall, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    if !ask::can_get_decision(parts, session) {
        return Err(no_approver(judged.ruling()));
    }
    if let Some(rule) = proposal_in(judged.judgement.permissions()) {
        check_proposal(parts, session, rule)?;
    }
    let mut judged = judged;
    let request = loop {
        let (admitted, judgement) = (&judged.admitted, &judged.judgement);
        let request = request(parts, session, open.caller(), admitted, judgement)?;
        let Some(decision) = ask::automatic(parts, session, &request) else {
            break request;
        };
        // An automatic approver agrees to exceed the budget if that is what the request asks.
        match budgets::take(open, &judged, request.is_over_budget()).await {
            Ok(reservation) => {
                let why = no_open_request::by_other(&decision.by);
                return match no_open_request::withdraw(open, judged.decided(), &why).await? {
                    EarlierRequest::Over(unasked) => {
                        let decided = DecidedRequest { request, decision };
                        let basis = DecisionProof {
                            reservation: Some(reservation),
                            unasked,
                        };
                        apply_decision(open, judged, decided, basis).await
                    }
                    EarlierRequest::Counts => ask_inbox(open, settlement, judged, request).await,
                };
            }
            Err(no_room) => judged = judged.raise_for_budget(open, &no_room),
        }
    };
    ask_inbox(open, settlement, judged, request).await
}

/// What to do where the environment decides what an approval holds for.
const OTHER_ENVIRONMENT: &str = "this process has another environment than the one that asked, for example a shell whose startup files or \
    `conda activate` set the variable: set it alike where the agent and its shell start, or give its value in `sandbox.env`; then call again \
    to request approval again";

/// Acts on the decision about an earlier request of this call, or on the outcome of the call that ran on it.
pub(super) async fn find_decision(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
) -> Result<ClearedCall, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let (admitted, judgement) = (&judged.admitted, &judged.judgement);
    let request = request(parts, session, open.caller(), admitted, judgement)?;
    ask_inbox(open, settlement, judged, request).await
}

/// Stores the request, or finds the one that was stored before, and waits for the decision.
async fn ask_inbox(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
    request: ApprovalRequest,
) -> Result<ClearedCall, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let admitted = &judged.admitted;
    let entry = admitted.entry();
    let need = DecisionNeed::User;
    again::earlier_outcome(open, settlement, entry, &request.arguments, need).await?;
    let _known = parts
        .waiting
        .add(&request, judged.judgement.shared_permissions());
    let asked = {
        // The call's own nest is the innermost: this stops the clocks of the calls around it, too.
        let _waiting = open.nest().begin_wait();
        let call = CallNow {
            caller: open.caller(),
            admitted,
            known: judged.judgement.shared_permissions(),
        };
        let fits = |shown: &ApprovalRequest| check_unchanged(parts, session, call, shown);
        // Boxed: few calls ask, and the future of every call would be as large.
        Box::pin(ask::ask(
            parts,
            session,
            open.nest(),
            request,
            ask::DecisionWait::of(session, &fits).ahead(open.mode() == CallMode::Ahead),
        ))
        .await
    };
    open.record.review = asked.review;
    let claimed = asked.decision.map_err(|stop| {
        let ruling = judged.ruling();
        // A call that was withdrawn or could not be asked about is not forbidden.
        let stop = match stop.kind() {
            Some(ErrorKind::Denied) => stop.or_advise(&ruling.advice),
            _ => stop,
        };
        stop.or_for_operator(&ruling.operator)
    })?;
    apply_claimed(open, settlement, judged, claimed).await
}

/// Returns the rule that a call proposes.
fn proposal_in(permissions: &[Permission]) -> Option<&str> {
    permissions.iter().find_map(|wanted| match &wanted.effect {
        Effect::Other { kind, value } if kind == PROPOSED_RULE => Some(value.as_str()),
        _ => None,
    })
}

/// Refuses a rule about a tool or argument that this run does not have, and proposals beyond the limit.
fn check_proposal(parts: &ExecutorParts, session: &Session, rule: &str) -> Result<(), EarlyEnd> {
    let refuse = |message: String| EarlyEnd::failed(ErrorKind::Denied, message);
    let alone = RuleSet {
        allow: vec![RuleText::new(rule)],
        ..RuleSet::default()
    };
    let alone = Policy::clone(&parts.policy.now()).with_rules(alone);
    let alone = alone.map_err(|error| refuse(error.to_string()))?;
    let unknown = alone.unknown_names(&session.tools().specs(), &[]);
    if let Some(unknown) = unknown.first() {
        let reason = format!(
            "the rule {rule} was not proposed to the user: {}",
            unknown.finding()
        );
        let refusal = refuse(reason);
        return Err(refusal.advise("propose a rule for an existing tool and argument"));
    }
    if session.queue().may_propose() {
        return Ok(());
    }
    let refusal = "this run has already proposed the maximum number of rules".to_owned();
    Err(refuse(refusal).advise("continue without another rule"))
}

/// A call that is judged again.
#[derive(Clone, Copy)]
struct CallNow<'a> {
    caller: CallIdentity<'a>,
    admitted: &'a AdmittedCall,
    /// What it would have done at an earlier moment.
    known: &'a Arc<Vec<Permission>>,
}

/// Checks that a pending call would still do what was shown, and that the current policy lets a user decide about it.
fn check_unchanged(
    parts: &ExecutorParts,
    session: &Session,
    call: CallNow<'_>,
    shown: &ApprovalRequest,
) -> Result<(), EarlyEnd> {
    let CallNow {
        caller,
        admitted,
        known,
    } = call;
    let judgement = judgement(parts, session, admitted, known)?;
    if judgement.ruling().verdict == Verdict::Deny {
        return Err(denied(judgement.ruling()));
    }
    let now = request(parts, session, caller, admitted, &judgement)?;
    fits(parts, shown, &now)
}

/// Checks that a decided request could run now and would do what it shows. Nothing runs and nothing is recorded.
pub(super) async fn check(
    parts: &ExecutorParts,
    session: &Session,
    call: ToolCall,
    shown: &ApprovalRequest,
) -> Result<(), EarlyEnd> {
    let admitted = admit::look(parts, session, call, parts.is_internal(shown)).await?;
    let caller = CallIdentity {
        call: &shown.call,
        parent: shown.parent.as_ref(),
        origin: shown.origin,
    };
    let call = CallNow {
        caller,
        admitted: &admitted,
        known: &parts.waiting.of(shown),
    };
    check_unchanged(parts, session, call, shown)
}

/// Checks that a request still states what the call would do, and that nothing that restricted it is missing here.
fn fits(
    parts: &ExecutorParts,
    shown: &ApprovalRequest,
    now: &ApprovalRequest,
) -> Result<(), EarlyEnd> {
    let here = parts.policy.now().safeguards();
    if let Some(missing) = shown.safeguards.missing_in(&here) {
        let difference = format!("it was requested under {missing}, which does not apply here");
        return Err(conflict(parts, shown, &difference)
            .for_operator("decide it under the settings of the process that made the request"));
    }
    match shown.difference(now) {
        None => Ok(()),
        Some(difference) => {
            let conflict = conflict(parts, shown, &difference);
            let by_environment = shown.snapshot.differs_by_environment(&now.snapshot);
            Err(if by_environment {
                conflict.advise(OTHER_ENVIRONMENT)
            } else {
                conflict
            })
        }
    }
}

/// The failure of a call that no longer does what its approval shows.
fn conflict(parts: &ExecutorParts, shown: &ApprovalRequest, difference: &str) -> EarlyEnd {
    let (id, undone) = (&shown.id, parts.phrases(shown).undone);
    let message = format!("approval {id} does not apply to this call: {difference}; {undone}");
    EarlyEnd::failed(ErrorKind::Conflict, message)
        .advise("check what changed, then call again to request approval again")
}

/// Checks that the approval that a call is resumed with still states what the call would do.
pub(super) fn still_fits(
    open: &OpenCall<'_>,
    judged: &RuledCall,
    ticket: &ResumeDecision,
) -> Result<(), EarlyEnd> {
    let ResumeDecision::Approved(shown) = ticket else {
        return Ok(());
    };
    let (admitted, judgement) = (&judged.admitted, &judged.judgement);
    let (parts, session) = (open.parts(), open.session());
    let now = request(parts, session, open.caller(), admitted, judgement)?;
    fits(parts, shown, &now)
}

/// Clears a resumed call. The decision holds only for what was shown; anything else is a conflict, which leaves the decision
/// unclaimed.
pub(super) async fn resumed(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
    ticket: ResumeDecision,
) -> Result<ClearedCall, EarlyEnd> {
    still_fits(open, &judged, &ticket)?;
    let claimed = match ticket {
        ResumeDecision::Claimed(claimed) => *claimed,
        ResumeDecision::Approved(shown) => claim(open.parts(), settlement, &shown.id).await?,
    };
    apply_claimed(open, settlement, judged, claimed).await
}

async fn claim(
    parts: &ExecutorParts,
    settlement: &mut Settlement,
    id: &ApprovalId,
) -> Result<ClaimedDecision, EarlyEnd> {
    let claimed = parts.inbox.claim(id).await;
    let decision = claimed.and_then(|entry| ClaimedDecision::of(&parts.inbox, entry));
    decision.map_err(|error| {
        let stop = EarlyEnd::failed(ErrorKind::Conflict, error.to_string());
        settlement.refuse(error);
        stop
    })
}

/// Acts on a decision that this call has claimed.
async fn apply_claimed(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    judged: RuledCall,
    claimed: ClaimedDecision,
) -> Result<ClearedCall, EarlyEnd> {
    let request = &claimed.decided.request;
    open.record.approval = Some(request.id.clone());
    if request.review.is_some() {
        open.record.review.clone_from(&request.review);
    }
    let basis = DecisionProof {
        reservation: None,
        unasked: NoOpenRequest::claimed(&claimed),
    };
    settlement.claim(claimed.claimed);
    apply_decision(open, judged, claimed.decided, basis).await
}

/// What a call that was decided rests on.
struct DecisionProof {
    /// What it has already reserved from the budgets, if no person decided.
    reservation: Option<Reservation>,
    unasked: NoOpenRequest,
}

/// Acts on a decision.
async fn apply_decision(
    open: &mut OpenCall<'_>,
    judged: RuledCall,
    decided: DecidedRequest,
    basis: DecisionProof,
) -> Result<ClearedCall, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let DecisionProof {
        reservation,
        unasked,
    } = basis;
    let DecidedRequest {
        request: shown,
        decision,
    } = decided;
    let (by, by_reviewer) = (decision.by.clone(), decision.is_by_reviewer());
    open.record.decided_by = Some(by.clone());
    let reservation = reviewed::reserved(open, &judged, &decision, reservation).await?;
    let approval = reservation.is_none().then(|| shown.id.clone());
    match decision.choice {
        Choice::Deny { message, stop } => {
            if stop {
                session.end_by_denial(&by, shown.tool.as_str());
            }
            let review = shown.review.filter(|_| by_reviewer);
            let denied = said_no(&by, message.as_deref(), review.as_deref());
            Err(denied.advise(judged.ruling().advice.to_string()))
        }
        Choice::Answer { answers } => Err(answered_by_user(&by, &answers)),
        Choice::Approve {
            edited: Some(text), ..
        } => {
            let judged = edited(open, judged, text).await?;
            let (admitted, judgement) = (&judged.admitted, &judged.judgement);
            let seen = request(parts, session, open.caller(), admitted, judgement)?;
            let agreed = Agreement {
                decision: Consent { by, approval },
                shown: seen.snapshot,
                basis: DecisionProof {
                    // The user agreed to the arguments they typed, not to the ones in the request.
                    reservation: None,
                    unasked,
                },
            };
            agreed.clear_with_consent(open, judged).await
        }
        Choice::Approve { scope, rule, .. } => {
            let lasts = !shown.is_decided_each_time();
            if lasts && scope != ApprovalScope::Once {
                session.grant(Grant::of(&shown, &by));
            }
            if lasts && scope == ApprovalScope::Always {
                parts.policy.keep(&shown, rule.as_deref(), &by);
            }
            let agreed = Agreement {
                decision: Consent { by, approval },
                shown: shown.snapshot,
                basis: DecisionProof {
                    reservation,
                    unasked,
                },
            };
            agreed.clear_with_consent(open, judged).await
        }
    }
}

/// Returns the failure of a call that was denied. What a model says of it is for people, not for the model that made the call.
fn said_no(by: &str, message: Option<&str>, review: Option<&Review>) -> EarlyEnd {
    let detail = message.map_or_else(String::new, |message| format!(": {message}"));
    let denied = EarlyEnd::failed(ErrorKind::Denied, format!("{by} said no{detail}"));
    match review {
        Some(review) => denied.for_operator(review.sentence()),
        None => denied,
    }
}

/// Who agreed, and to what.
struct Agreement {
    decision: Consent,
    shown: CallSnapshot,
    basis: DecisionProof,
}

impl Agreement {
    /// Clears the approved call. The secrets that it reads become readable in its run; those that a call of another program reads are
    /// for that call only, since it is not known here whether it ran at all.
    async fn clear_with_consent(
        self,
        open: &OpenCall<'_>,
        judged: RuledCall,
    ) -> Result<ClearedCall, EarlyEnd> {
        let DecisionProof {
            reservation,
            unasked,
        } = self.basis;
        let reservation = if let Some(reservation) = reservation {
            reservation
        } else {
            let reserved = budgets::take(open, &judged, true).await;
            let failed =
                |why: BudgetError| EarlyEnd::failed(ErrorKind::Unavailable, why.to_string());
            reserved.map_err(failed)?
        };
        let policy = open.parts().policy.now();
        let secrets = if judged.admitted.entry().spec().is_foreign() {
            Vec::new()
        } else {
            policy.secrets_read(judged.judgement.permissions())
        };
        let shown = Some(self.shown);
        let cleared = judged.clear_with_consent(self.decision, shown, reservation, unasked)?;
        open.session().release(secrets);
        Ok(cleared)
    }
}

/// The outcome for an answer that a user gave in place of the tool.
fn answered_by_user(by: &str, answers: &str) -> EarlyEnd {
    let value: Value = serde_json::from_str(answers).unwrap_or_default();
    let text = value.get("text").and_then(Value::as_str);
    EarlyEnd::answered(OutcomeContent {
        summary: Some(format!("{by} answered in place of the tool")),
        content: vec![Content::text(text.unwrap_or(answers))],
        ..OutcomeContent::of(Status::Ok)
    })
}

/// Admits and judges a call again that was approved with edited arguments; no edit lowers a deny. The user who typed them approved
/// what they do at this moment.
async fn edited(
    open: &mut OpenCall<'_>,
    judged: RuledCall,
    text: String,
) -> Result<RuledCall, EarlyEnd> {
    let admitted = judged.admitted.edited(text, open).await?;
    let judged = judge(open, admitted)?;
    if judged.ruling().verdict == Verdict::Deny {
        return Err(denied(judged.ruling()));
    }
    Ok(judged)
}

fn no_approver(ruling: &Ruling) -> EarlyEnd {
    let message = format!(
        "the call needs approval ({}), but no approver is available",
        ruling.rule
    );
    EarlyEnd::failed(ErrorKind::Denied, message)
        .advise(ruling.advice.to_string())
        .for_operator(ruling.operator.to_string())
}

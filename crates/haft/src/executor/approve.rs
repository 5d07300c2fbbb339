//! Approve: the person is asked, and what they decided is acted on while the call is still what they saw.

use serde_json::Value;

use crate::approval::{ApprovalId, ApprovalRequest, Choice, Grant, Scope};
use crate::call::ToolCall;
use crate::error::ErrorKind;
use crate::executor::Parts;
use crate::executor::admit::{self, Admitted};
use crate::executor::again;
use crate::executor::ask::{self, Decided, Taken};
use crate::executor::clear::{Cleared, Judged, denied, judge, judgement, request};
use crate::executor::draft::Caller;
use crate::executor::exit::OpenCall;
use crate::executor::shape::Shaped;
use crate::executor::stop::Stop;
use crate::judgement::Consent;
use crate::permission::Verdict;
use crate::policy::Ruling;
use crate::result::{Content, Status};
use crate::session::Session;
use crate::spec::Risk;

/// A decision that a call is resumed with.
pub(super) enum Ticket {
    /// It says no, or what the tool would have said: claimed already, for it holds whatever became of the call.
    Claimed(Box<Taken>),
    /// It says yes, to what the request shows and nothing else: claimed once the call was compared with that.
    Approved(Box<ApprovalRequest>),
}

/// Asks the person. Nobody to ask, or no answer, is a denial, or a call that waits.
pub(super) async fn asked(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    judged: Judged,
) -> Result<Cleared, Stop> {
    if !ask::somebody(parts, session) {
        return Err(nobody(judged.ruling()));
    }
    let (admitted, judgement) = (&judged.admitted, &judged.judgement);
    let request = request(parts, session, open.caller(), admitted, judgement)?;
    if let Some(decision) = ask::automatic(parts, session, &request) {
        let decided = Decided { request, decision };
        return settle(parts, session, open, judged, decided);
    }
    let entry = admitted.entry();
    again::asked_before(parts, session, open, entry, &request.arguments).await?;
    let taken = {
        // Its own nest is the innermost: the clocks of the calls around it stand still, too.
        let _waiting = open.nest().waiting();
        let caller = open.caller();
        let fits = |shown: &ApprovalRequest| fits_still(parts, session, caller, admitted, shown);
        ask::ask(parts, session, request, ask::Wait::of(session, &fits)).await
    };
    let taken = taken.map_err(|stop| {
        let ruling = judged.ruling();
        // A call that was withdrawn or could not be asked about is not forbidden.
        let stop = match stop.failure.kind {
            ErrorKind::Denied => stop.or_advise(&ruling.advice),
            _ => stop,
        };
        stop.or_for_operator(&ruling.operator)
    })?;
    take(parts, session, open, judged, taken)
}

/// Whether a call that waited would still do what was shown, and the policy, as it is now, lets a person decide about it.
fn fits_still(
    parts: &Parts,
    session: &Session,
    caller: Caller<'_>,
    admitted: &Admitted,
    shown: &ApprovalRequest,
) -> Result<(), Stop> {
    let judgement = judgement(parts, session, admitted)?;
    if judgement.ruling().verdict == Verdict::Deny {
        return Err(denied(judgement.ruling()));
    }
    fits(
        shown,
        &request(parts, session, caller, admitted, &judgement)?,
    )
}

/// Whether a decided request could run now and would do what it shows. Nothing runs and nothing is recorded.
pub(super) fn check(
    parts: &Parts,
    session: &Session,
    call: ToolCall,
    shown: &ApprovalRequest,
) -> Result<(), Stop> {
    let admitted = admit::look(parts, session, call, parts.is_internal(shown))?;
    let caller = Caller {
        call: &shown.call,
        parent: shown.parent.as_ref(),
        origin: shown.origin,
    };
    fits_still(parts, session, caller, &admitted, shown)
}

fn fits(shown: &ApprovalRequest, now: &ApprovalRequest) -> Result<(), Stop> {
    match shown.difference(now) {
        None => Ok(()),
        Some(difference) => Err(conflict(&shown.id, &difference)),
    }
}

/// An approval does not hold for what the call would do now.
pub(super) fn conflict(id: &ApprovalId, difference: &str) -> Stop {
    let message = format!("approval {id} does not hold for this call: {difference}; nothing ran");
    Stop::new(ErrorKind::Conflict, message)
        .advise("look at what changed, then call again to ask again")
}

/// A resumed call: what was decided holds for what was shown, and for nothing else. Anything else is a conflict, which
/// leaves the decision unclaimed.
pub(super) async fn resumed(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    judged: Judged,
    ticket: Ticket,
) -> Result<Cleared, Stop> {
    let taken = match ticket {
        Ticket::Claimed(taken) => *taken,
        Ticket::Approved(shown) => {
            let Judged {
                admitted,
                judgement,
            } = &judged;
            let now = request(parts, session, open.caller(), admitted, judgement)?;
            fits(&shown, &now)?;
            claim(parts, open, &shown.id).await?
        }
    };
    take(parts, session, open, judged, taken)
}

async fn claim(parts: &Parts, open: &mut OpenCall<'_>, id: &ApprovalId) -> Result<Taken, Stop> {
    let claimed = parts.inbox.claim(id).await;
    let taken = claimed.and_then(|entry| Taken::of(&parts.inbox, entry));
    taken.map_err(|error| {
        let stop = Stop::new(ErrorKind::Conflict, error.to_string());
        open.refused = Some(error);
        stop
    })
}

/// Acts on a decision that this call claimed.
fn take(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    judged: Judged,
    taken: Taken,
) -> Result<Cleared, Stop> {
    open.approval = Some(taken.decided.request.id.clone());
    open.claimed = Some(taken.claimed);
    settle(parts, session, open, judged, taken.decided)
}

fn settle(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    judged: Judged,
    decided: Decided,
) -> Result<Cleared, Stop> {
    let Decided {
        request: shown,
        decision,
    } = decided;
    let by = decision.by.clone();
    open.decided_by = Some(by.clone());
    let approval = open.claimed.as_ref().map(|_| shown.id.clone());
    match decision.choice {
        Choice::Deny { message, stop } => {
            if stop {
                session.cancel();
            }
            let said = message.map_or_else(String::new, |m| format!(": {m}"));
            Err(Stop::new(ErrorKind::Denied, format!("{by} said no{said}")))
        }
        Choice::Answer { answers } => Err(answered(&by, &answers)),
        Choice::Approve {
            edited: Some(text), ..
        } => {
            let judged = edited(parts, session, open, judged, text)?;
            let (admitted, judgement) = (&judged.admitted, &judged.judgement);
            let seen = request(parts, session, open.caller(), admitted, judgement)?;
            Ok(judged.cleared_as_shown(Consent { by, approval }, seen.snapshot))
        }
        Choice::Approve { scope, rule, .. } => {
            // A critical call is approved each time.
            if shown.risk < Risk::Critical && scope != Scope::Once {
                session.grants().push(Grant::of(&shown, &by));
            }
            if shown.risk < Risk::Critical && scope == Scope::Always {
                parts.policy.keep(&shown, rule.as_deref(), &by);
            }
            Ok(judged.cleared_as_shown(Consent { by, approval }, shown.snapshot))
        }
    }
}

/// What a person said in place of the tool.
fn answered(by: &str, answers: &str) -> Stop {
    let value: Value = serde_json::from_str(answers).unwrap_or_default();
    let text = value.get("text").and_then(Value::as_str);
    Stop::instead(Shaped {
        status: Status::Ok,
        summary: Some(format!("{by} answered in place of the tool")),
        content: vec![Content::text(text.unwrap_or(answers))],
        data: None,
        artifacts: Vec::new(),
        error: None,
        strength: None,
        approval: None,
        calls: None,
        operator: None,
    })
}

/// A call approved with other arguments: they are admitted and judged again, and no edit lowers a deny. Whoever typed them
/// approved what they do at this moment.
fn edited(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    judged: Judged,
    text: String,
) -> Result<Judged, Stop> {
    let admitted = judged.admitted.edited(parts, text, open)?;
    let judged = judge(parts, session, open, admitted)?;
    if judged.ruling().verdict == Verdict::Deny {
        return Err(denied(judged.ruling()));
    }
    Ok(judged)
}

fn nobody(ruling: &Ruling) -> Stop {
    let message = format!(
        "a person must decide ({}), and nobody can be asked here",
        ruling.rule
    );
    Stop::new(ErrorKind::Denied, message)
        .advise(ruling.advice.to_string())
        .for_operator(ruling.operator.to_string())
}

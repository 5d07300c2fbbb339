//! Clear: what the call would do, the policy's verdict, and the person where one must be asked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::approval::preview::{self, FileChange};
use crate::approval::{ApprovalRequest, Choice, Decision, Grant, Scope};
use crate::arguments::Arguments;
use crate::error::ErrorKind;
use crate::executor::Parts;
use crate::executor::admit::Admitted;
use crate::executor::ask::{self, Taken};
use crate::executor::draft::Draft;
use crate::executor::exit::OpenCall;
use crate::executor::shape::Shaped;
use crate::executor::stop::Stop;
use crate::permission::{Permission, Verdict};
use crate::policy::{JudgedCall, Ruling};
use crate::result::{Content, Status};
use crate::session::Session;
use crate::spec::{Risk, ToolSpec};
use crate::tool::Tool;
use crate::toolset::Entry;

/// A call that may run. Made here alone: nothing runs that was not cleared.
pub(super) struct Cleared {
    admitted: Admitted,
    risk: Risk,
    /// The files as the person saw them who approved.
    shown: Vec<FileChange>,
}

impl Cleared {
    fn new(admitted: Admitted, risk: Risk) -> Self {
        Self {
            admitted,
            risk,
            shown: Vec::new(),
        }
    }

    /// The tool's spec.
    pub(super) fn spec(&self) -> &Arc<ToolSpec> {
        self.admitted.entry().spec()
    }

    /// How harmful the call is.
    pub(super) fn risk(&self) -> Risk {
        self.risk
    }

    /// The first file that is no longer as the person saw it who approved.
    pub(super) fn changed_file(&self) -> Option<&str> {
        if self.shown.is_empty() {
            return None;
        }
        let now = self.admitted.tool().preview(self.admitted.arguments());
        preview::changed(&self.shown, &now)
    }

    /// Its parts, for the one place that runs it.
    pub(super) fn into_parts(self) -> (Arc<Entry>, Arc<dyn Tool>, Arguments) {
        self.admitted.into_parts()
    }
}

/// Clears a call, or says who stopped it and what would allow it.
pub(super) async fn clear(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    admitted: Admitted,
) -> Result<Cleared, Stop> {
    #[cfg(feature = "testing")]
    if parts.skip_clear {
        return Ok(Cleared::new(admitted, Risk::Safe));
    }
    let (permissions, ruling) = judge(parts, session, open, &admitted)?;
    if ruling.verdict == Verdict::Deny {
        return Err(denied(&ruling));
    }
    let risk = ruling.risk;
    if ruling.verdict == Verdict::Allow && open.ticket.is_none() {
        return Ok(Cleared::new(admitted, risk));
    }
    if open.ticket.is_none()
        && let Some(by) = granted(session, &admitted, &permissions, risk)
    {
        open.decided_by = Some(by);
        return Ok(Cleared::new(admitted, risk));
    }
    let question = Question {
        admitted,
        permissions,
        ruling,
    };
    match open.ticket.take() {
        Some(taken) => resumed(parts, session, open, (question, taken)),
        // Boxed: few calls ask, and every call's future would be as large as this one.
        None => Box::pin(asked(parts, session, open, question)).await,
    }
}

/// A call that a person must decide.
struct Question {
    admitted: Admitted,
    permissions: Vec<Permission>,
    ruling: Ruling,
}

/// What the tool says the call would do. A tool that panics over it is denied.
pub(super) fn wanted(tool: &dyn Tool, arguments: &Arguments) -> Result<Vec<Permission>, Stop> {
    let asked = catch_unwind(AssertUnwindSafe(|| tool.permissions(arguments)));
    let message = "the tool could not say what the call would do";
    Ok(asked.map_err(|_| Stop::new(ErrorKind::Denied, message))??)
}

/// What the call would do and how the policy rules on it; both are noted for the record.
fn judge(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    admitted: &Admitted,
) -> Result<(Vec<Permission>, Ruling), Stop> {
    let permissions = wanted(admitted.tool().as_ref(), admitted.arguments()).inspect_err(|_| {
        open.judged = Some(shown(open, admitted));
    })?;
    let spec = admitted.entry().spec();
    let call = JudgedCall {
        spec,
        arguments: admitted.arguments(),
        permissions: &permissions,
    };
    let policy = parts.policy.now();
    let mut ruling = policy.judge(&call);
    if ruling.verdict == Verdict::Allow && ruling.risk > session.limits().max_risk_unapproved {
        ruling = above(session, ruling);
    }
    if ruling.verdict < Verdict::Deny
        && let Some(denied) = session.restricted(&policy, &call, ruling.risk)
    {
        ruling = denied;
    }
    if open.is_recorded() || ruling.verdict != Verdict::Allow {
        open.judged = Some(shown(open, admitted));
        open.ruling = Some((ruling.verdict, ruling.rule.to_string()));
    }
    Ok((permissions, ruling))
}

/// An allowed call whose risk is above what the session's limits let pass unasked.
fn above(session: &Session, ruling: Ruling) -> Ruling {
    let most = session.limits().max_risk_unapproved;
    Ruling {
        verdict: Verdict::Ask,
        rule: "max_risk_unapproved".into(),
        reason: format!("risk {} is above {most} here", ruling.risk).into(),
        advice: "make the call outside the chain, or raise chain.max_risk_unapproved".into(),
        ..ruling
    }
}

/// The arguments as people and the record see them: refs stay refs, which are hashes of what they name.
fn shown(open: &OpenCall<'_>, admitted: &Admitted) -> Arc<str> {
    let effective = || admitted.arguments().as_str().into();
    open.written.clone().unwrap_or_else(effective)
}

/// Who allowed these effects for the session, if anybody did.
fn granted(
    session: &Session,
    admitted: &Admitted,
    permissions: &[Permission],
    risk: Risk,
) -> Option<String> {
    let name = &admitted.entry().spec().name;
    let grants = session.grants();
    grants
        .iter()
        .find_map(|grant| grant.covers(name, risk, permissions))
        .map(str::to_owned)
}

/// Asks the person. Nobody to ask, or no answer, is a denial that says what would allow it, or a call that waits.
async fn asked(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    question: Question,
) -> Result<Cleared, Stop> {
    if !ask::somebody(parts, session) {
        return Err(nobody(&question.ruling));
    }
    let request = request(parts, session, open, &question)?;
    if let Some(decision) = ask::automatic(parts, session, &request) {
        return settle(parts, session, open, (question, request, decision));
    }
    let wait = ask::Wait {
        limit: session.limits().approval_timeout,
        patience: session.patience(),
    };
    let taken = {
        // Its own nest is the innermost: the clocks of the calls around it stand still, too.
        let _waiting = open.nest().waiting();
        ask::ask(parts, session, request, wait).await
    };
    let taken = taken.map_err(|stop| stop.or_advise(&question.ruling.advice))?;
    take(parts, session, open, (question, taken))
}

/// A resumed call: what was decided holds for what was asked, and for nothing else.
fn resumed(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    (question, taken): (Question, Taken),
) -> Result<Cleared, Stop> {
    let now = request(parts, session, open, &question)?;
    if now.fingerprint == taken.request.fingerprint {
        return take(parts, session, open, (question, taken));
    }
    open.claimed = Some(taken.claimed);
    let message = format!(
        "approval {} is for another call: the tool or its settings changed since it was asked",
        taken.request.id
    );
    Err(Stop::new(ErrorKind::Conflict, message).advise("nothing ran; call again to ask again"))
}

/// Acts on a decision that this call took.
fn take(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    (question, taken): (Question, Taken),
) -> Result<Cleared, Stop> {
    open.approval = Some(taken.request.id.clone());
    open.claimed = Some(taken.claimed);
    settle(
        parts,
        session,
        open,
        (question, taken.request, taken.decision),
    )
}

fn settle(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    (question, request, decision): (Question, ApprovalRequest, Decision),
) -> Result<Cleared, Stop> {
    let by = decision.by;
    open.decided_by = Some(by.clone());
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
            scope,
            edited,
            rule,
        } => {
            if let Some(rule) = rule.filter(|_| scope == Scope::Always)
                && let Err(error) = parts.policy.learn(&rule)
            {
                // It was read before it was kept; this call was approved all the same.
                tracing::warn!(%error, "a rule that was chosen for good");
            }
            if scope != Scope::Once && edited.is_none() {
                session.grants().push(Grant::of(&request, &by));
            }
            let cleared = approved(parts, session, open, question, edited)?;
            Ok(Cleared {
                shown: request.preview,
                ..cleared
            })
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
    })
}

/// An approved call; edited arguments are admitted and judged again, and no edit lowers a deny.
fn approved(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    question: Question,
    edited: Option<String>,
) -> Result<Cleared, Stop> {
    let Question {
        admitted,
        ruling,
        permissions: _,
    } = question;
    let Some(text) = edited else {
        return Ok(Cleared::new(admitted, ruling.risk));
    };
    let admitted = admitted.edited(parts, text, open)?;
    let (_, ruling) = judge(parts, session, open, &admitted)?;
    match ruling.verdict {
        Verdict::Deny => Err(denied(&ruling)),
        Verdict::Allow | Verdict::Ask => Ok(Cleared::new(admitted, ruling.risk)),
    }
}

/// The request, whole: what is decided is what is written here.
fn request(
    parts: &Parts,
    session: &Session,
    open: &OpenCall<'_>,
    question: &Question,
) -> Result<ApprovalRequest, Stop> {
    let Question {
        admitted,
        permissions,
        ruling,
    } = question;
    let spec = admitted.entry().spec();
    let call = JudgedCall {
        spec,
        arguments: admitted.arguments(),
        permissions,
    };
    let preview = catch_unwind(AssertUnwindSafe(|| {
        admitted.tool().preview(admitted.arguments())
    }));
    let draft = Draft {
        entry: admitted.entry(),
        call: open.id(),
        origin: open.origin(),
        arguments: &shown(open, admitted),
    };
    let request = draft.request(session)?;
    let policy = parts.policy.now();
    Ok(ApprovalRequest {
        permissions: permissions.clone(),
        verdicts: policy.verdicts(&call),
        risk: ruling.risk,
        reason: ruling.reason.to_string(),
        rule: ruling.rule.to_string(),
        suggested: policy.suggest(&call),
        preview: preview.unwrap_or_default(),
        ..request
    })
}

fn denied(ruling: &Ruling) -> Stop {
    let reason = ruling.reason.to_string();
    let message = if reason.is_empty() {
        format!("denied by {}", ruling.rule)
    } else {
        reason
    };
    Stop::new(ErrorKind::Denied, message).advise(ruling.advice.to_string())
}

fn nobody(ruling: &Ruling) -> Stop {
    let message = format!(
        "a person must decide ({}), and nobody can be asked here",
        ruling.rule
    );
    Stop::new(ErrorKind::Denied, message).advise(ruling.advice.to_string())
}

//! Clear: what the call would do, the policy's verdict, and the person where one must be asked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::approval::{Answer, ApprovalRequest, Grant, Scope, fingerprint};
use crate::arguments::Arguments;
use crate::error::ErrorKind;
use crate::executor::Parts;
use crate::executor::admit::Admitted;
use crate::executor::exit::OpenCall;
use crate::executor::stop::Stop;
use crate::permission::{Permission, Verdict};
use crate::policy::{JudgedCall, Ruling};
use crate::session::Session;
use crate::spec::Risk;
use crate::tool::Tool;
use crate::toolset::Entry;

/// A call that may run. Made here alone: nothing runs that was not cleared.
pub(super) struct Cleared {
    admitted: Admitted,
    risk: Risk,
}

impl Cleared {
    /// How harmful the call is.
    pub(super) fn risk(&self) -> Risk {
        self.risk
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
        return Ok(Cleared {
            admitted,
            risk: Risk::Safe,
        });
    }
    let (permissions, ruling) = judge(parts, session, open, &admitted)?;
    match ruling.verdict {
        Verdict::Allow => Ok(Cleared {
            risk: ruling.risk,
            admitted,
        }),
        Verdict::Deny => Err(denied(&ruling)),
        Verdict::Ask => {
            if let Some(by) = granted(session, &admitted, &permissions, ruling.risk) {
                open.decided_by = Some(by);
                return Ok(Cleared {
                    risk: ruling.risk,
                    admitted,
                });
            }
            asked(
                parts,
                session,
                open,
                Question {
                    admitted,
                    permissions,
                    ruling,
                },
            )
            .await
        }
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
    let mut ruling = parts.policy.judge(&call);
    if ruling.verdict == Verdict::Allow && ruling.risk > session.limits().max_risk_unapproved {
        ruling = above(session, ruling);
    }
    if ruling.verdict < Verdict::Deny
        && let Some(denied) = session.restricted(&parts.policy, &call, ruling.risk)
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

/// Asks the person, within the approval limit. Nobody to ask, or no answer, is a denial that says what would allow it.
async fn asked(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    question: Question,
) -> Result<Cleared, Stop> {
    let Some(approver) = &parts.approver else {
        return Err(nobody(&question.ruling));
    };
    let request = request(parts, session, open, &question);
    // Its own nest is the innermost: the clocks of the calls around it stand still, too.
    let _waiting = open.nest().waiting();
    let limit = session.limits().approval_timeout;
    let answer = tokio::select! {
        answer = tokio::time::timeout(limit, approver.ask(&request)) => answer,
        () = session.cancellation().cancelled() => {
            return Err(Stop::new(ErrorKind::Cancelled, "the session ended while a person was asked"));
        }
    };
    let Ok(answer) = answer else {
        let message = format!("nobody answered within {} s", limit.as_secs());
        return Err(
            Stop::new(ErrorKind::Denied, message).advise(question.ruling.advice.to_string())
        );
    };
    match answer {
        Answer::Nobody => Err(nobody(&question.ruling)),
        Answer::Denied { message, stop, by } => {
            open.decided_by = Some(by.clone());
            if stop {
                session.cancel();
            }
            let said = message.map_or_else(String::new, |m| format!(": {m}"));
            Err(Stop::new(ErrorKind::Denied, format!("{by} said no{said}")))
        }
        Answer::Approved { scope, edited, by } => {
            open.decided_by = Some(by.clone());
            if scope == Scope::Session && edited.is_none() {
                session.grants().push(Grant::of(&request, &by));
            }
            approved(parts, session, open, question, edited)
        }
    }
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
        return Ok(Cleared {
            risk: ruling.risk,
            admitted,
        });
    };
    let admitted = admitted.edited(parts, text, open)?;
    let (_, ruling) = judge(parts, session, open, &admitted)?;
    match ruling.verdict {
        Verdict::Deny => Err(denied(&ruling)),
        Verdict::Allow | Verdict::Ask => Ok(Cleared {
            risk: ruling.risk,
            admitted,
        }),
    }
}

fn request(
    parts: &Parts,
    session: &Session,
    open: &OpenCall<'_>,
    question: &Question,
) -> ApprovalRequest {
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
    let arguments = &*shown(open, admitted);
    let workspace = session.workspace().unwrap_or_default();
    let hash = admitted.entry().spec_hash();
    ApprovalRequest {
        run: session.run().clone(),
        call: open.id().clone(),
        tool: spec.name.clone(),
        origin: open.origin(),
        principal: session.principal().clone(),
        arguments: arguments.to_owned(),
        permissions: permissions.clone(),
        risk: ruling.risk,
        reason: ruling.reason.to_string(),
        rule: ruling.rule.to_string(),
        suggested: parts.policy.suggest(&call),
        fingerprint: fingerprint(&spec.name, hash, session.principal(), workspace, arguments),
    }
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

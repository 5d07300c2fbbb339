//! `NoOpenRequest`: the proof that no request about a call is open when it is cleared without its decision. A request that was open is withdrawn
//! first, so that no decision about it runs the call again; one that was acted on first decides the call.

use crate::approval::suspended::SuspendedEntry;
use crate::approval::{ApprovalId, fingerprint};
use crate::executor::again;
use crate::executor::ask::ClaimedDecision;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::superseded::{end, not_withdrawn};
use crate::permission::Verdict;
use crate::policy::Ruling;
use crate::session::Session;
use crate::spec::Suspension;
use crate::toolset::ToolEntry;

/// Proof that no request about the call is open. Only this module makes it.
pub(super) struct NoOpenRequest(());

impl NoOpenRequest {
    /// Returns the proof for a call that has claimed the decision about its request.
    pub(super) fn claimed(_: &ClaimedDecision) -> Self {
        Self(())
    }

    /// Returns the proof for a call whose run has asked about none; `None` if its requests must be looked at.
    pub(super) fn never_asked(session: &Session) -> Option<Self> {
        let is_shared = session.approval_run() != session.run();
        // A command's call that is made again is a run of its own.
        let may_have = session.has_asked() || is_shared || session.is_for_one_call();
        (!may_have).then_some(Self(()))
    }
}

/// A call that the policy, or somebody else than its request, has decided.
#[derive(Clone, Copy)]
pub(super) struct DecidedCall<'a> {
    pub(super) entry: &'a ToolEntry,
    /// The arguments as they were judged.
    pub(super) written: &'a str,
    pub(super) verdict: Verdict,
}

/// What is left of the request about a call that is decided without it.
pub(super) enum EarlierRequest {
    /// Nothing: there was none, or it is withdrawn now.
    Over(NoOpenRequest),
    /// Its decision, or the outcome of the call that ran on it: that comes first.
    Counts,
}

/// Withdraws the open request about a call that something else decides now: `by` says what, as the end of a sentence.
///
/// An approval that nothing has run on yet is void then: the call needs none now, or is denied. One with edited arguments counts, unless
/// the call is denied.
pub(super) async fn withdraw(
    open: &mut OpenCall<'_>,
    call: DecidedCall<'_>,
    by: &str,
) -> Result<EarlierRequest, EarlyEnd> {
    let session = open.session();
    if let Some(unasked) = NoOpenRequest::never_asked(session) {
        return Ok(EarlierRequest::Over(unasked));
    }
    let denied = call.verdict == Verdict::Deny;
    for id in elsewhere(open, call).await? {
        // A denied call does not wait for what runs within an earlier one.
        if end(open, &id, by, denied).await? && !denied {
            return Ok(EarlierRequest::Counts);
        }
    }
    if let Some(id) = of_this_call(open, call).await?
        && end(open, &id, by, denied).await?
    {
        return Ok(EarlierRequest::Counts);
    }
    Ok(EarlierRequest::Over(NoOpenRequest(())))
}

/// Returns the request of this very call, if one answers it.
async fn of_this_call(
    open: &OpenCall<'_>,
    call: DecidedCall<'_>,
) -> Result<Option<ApprovalId>, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let entry = call.entry;
    let policy = parts.policy.now();
    let fingerprint = fingerprint(
        &entry.spec().name,
        entry.spec_hash(),
        session.principal(),
        policy.workspace_root().unwrap_or_default(),
        call.written,
    );
    let found = parts.inbox.find(session.approval_run(), &fingerprint).await;
    let found = found.map_err(not_withdrawn)?;
    Ok(found.map(|found| found.request.id))
}

/// Returns the requests that the same call waits for otherwise: one of a call within it, or one of the run in which a command made it
/// before. A tool that continues by itself when it is allowed finds its own.
async fn elsewhere(
    open: &OpenCall<'_>,
    call: DecidedCall<'_>,
) -> Result<Vec<ApprovalId>, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let entry = call.entry;
    let denied = call.verdict == Verdict::Deny;
    let continues = entry.spec().suspension != Suspension::Before;
    if session.nest().is_some() || continues && !denied {
        return Ok(Vec::new());
    }
    let key = again::of(parts, session, entry, call.written);
    let found = again::same_calls(parts, session, &key).await;
    let found = found.map_err(not_withdrawn)?;
    let is_same = |one: &SuspendedEntry| {
        let here = one.call.run == *session.approval_run();
        !one.has_ended() && (here || one.call.alone && session.is_for_one_call())
    };
    let same = found.into_iter().filter(is_same);
    Ok(same.map(|one| one.call.approval).collect())
}

/// Returns the reason for a request whose call the policy decides.
pub(super) fn by_policy(ruling: &Ruling) -> String {
    let rule = &ruling.rule;
    match ruling.verdict {
        Verdict::Deny => format!("the call was made again, and {rule} denies it now"),
        Verdict::Allow | Verdict::Ask => {
            format!(
                "the call was made again, and {rule} allows it now, so that it needs no approval"
            )
        }
    }
}

/// Returns the reason for a request whose call somebody else has approved.
pub(super) fn by_other(who: &str) -> String {
    format!("the call was made again, and {who} allows it now, so that it needs no approval")
}

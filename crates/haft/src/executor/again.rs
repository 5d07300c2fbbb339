//! A suspended call that is made again: it gets its outcome or resumes where it was; it never starts over.

use std::time::Duration;

use tokio::time::Instant;

use crate::approval::inbox::{InboxError, RequestStatus, StoredApproval};
use crate::approval::suspended::{OtherRun, RepeatScope, SuspendedCall, SuspendedEntry, key};
use crate::approval::{ApprovalId, Choice};
use crate::call::CallId;
use crate::clock;
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::admit::identifying_arguments;
use crate::executor::ask;
use crate::executor::claim::repeat_outcome;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::incoming::CallMode;
use crate::executor::noted::{self, NotedCall};
use crate::executor::running;
use crate::executor::settlement::Settlement;
use crate::executor::superseded;
use crate::session::nest::RepeatKey;
use crate::session::running_calls::RunningCallGuard;
use crate::session::{RunGroup, Session};
use crate::spec::Suspension;
use crate::toolset::ToolEntry as Tool;

/// Interval between looks at a call that another process resumes, if the inbox reports no change to its request.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Whether a call needs a decision now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionNeed {
    /// A user is asked about it next.
    User,
    /// It was cleared without one, or by one of its own.
    None,
}

/// A call that may have been made before.
#[derive(Clone, Copy)]
struct SoughtCall<'a> {
    key: &'a str,
    suspension: Suspension,
    decision: DecisionNeed,
}

/// What is known about a call that may have been made before.
enum EarlierCall {
    /// It was not made before, or another client has already received its outcome.
    New,
    /// The outcome, and the approval that preceded it.
    Ended(EarlyEnd, ApprovalId),
    /// The call continues in this run, under its earlier id.
    Here(Box<SuspendedCall>, RunningCallGuard),
}

/// Checks whether a call of a resumable tool was suspended before. Returns the session in which it continues, if that is not this
/// one.
pub(super) async fn find_suspended(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    key: String,
) -> Result<Option<Session>, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    if open.has_own_id() && session.is_resumed() {
        return resume(open, settlement, key).await.map(|()| None);
    }
    let sought = SoughtCall {
        key: &key,
        suspension: Suspension::Within,
        decision: DecisionNeed::None,
    };
    let (noted, present) = match look_up(open, sought).await? {
        EarlierCall::Ended(stop, approval) => {
            open.record.approval = Some(approval);
            return Err(stop);
        }
        EarlierCall::Here(noted, present) => (noted, present),
        EarlierCall::New => {
            let present = session.at_work().enter(open.id()).await;
            let alone = session.is_for_one_call();
            let key = RepeatKey { key, alone };
            settlement.note(NotedCall::new(parts, open.nest(), key, Some(present)));
            return Ok(None);
        }
    };
    // It may have waited for a decision about itself first.
    noted::forget_noted(parts, open.nest()).await;
    open.rename(noted.call.clone());
    open.mark_resumable();
    settlement.note(NotedCall::resumed(parts, open.nest(), *noted, present));
    Ok(Some(session.continuing()))
}

/// Resumes under the call's own id, once no other process does.
async fn resume(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    key: String,
) -> Result<(), EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let present = enter(session, open.id()).await?;
    let noted = parts.inbox.get_suspended(session.run(), open.id()).await;
    let noted = noted.map_err(|e| unknown(&e))?;
    let ended = noted
        .as_ref()
        .map_or(open.mode() == CallMode::Resumed, |noted| {
            noted.has_ended() && !open.mode().is_by_client()
        });
    if ended {
        let message = format!("{} has already been resumed and has ended", open.id());
        let stop = EarlyEnd::failed(ErrorKind::Conflict, message);
        return Err(stop.advise("nothing ran; make the call again to get its outcome"));
    }
    if let Some(noted) = noted.as_ref().filter(|noted| noted.has_ended()) {
        // The call ended between the client's look and this one.
        let ended = collect(parts, session, &noted.call).await?;
        if let EarlierCall::Ended(stop, approval) = ended {
            open.record.approval = Some(approval);
            return Err(stop);
        }
    }
    let noted = noted.map(|noted| noted.call);
    let alone = noted
        .as_ref()
        .map_or(session.is_for_one_call(), |call| call.alone);
    let within = noted.filter(|call| call.within);
    if within.is_some() || !open.mode().is_by_client() {
        open.mark_resumable();
    }
    settlement.note(match within {
        Some(noted) => NotedCall::resumed(parts, open.nest(), noted, present),
        None => NotedCall::new(parts, open.nest(), RepeatKey { key, alone }, Some(present)),
    });
    Ok(())
}

/// Ends a call with its earlier outcome, if it was already made in a run that is no longer in use; for a tool that is
/// suspended after it ran, also if it was made in this run. Otherwise notes the key by which it is found when it is
/// made again.
pub(super) async fn earlier_outcome(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
    tool: &Tool,
    arguments: &str,
    decision: DecisionNeed,
) -> Result<(), EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    if session.nest().is_some() {
        // The outer call is made again.
        return Ok(());
    }
    let key = of(parts, session, tool, arguments);
    // In its own run the inbox knows the call, unless another call asked for approval.
    let before = match (session.others(), tool.spec().suspension) {
        // The call that was made before is this one, which runs now.
        _ if settlement.has_claimed() => EarlierCall::New,
        (None, Suspension::Before | Suspension::Within) => EarlierCall::New,
        (_, suspension) => {
            let sought = SoughtCall {
                key: &key,
                suspension,
                decision,
            };
            look_up(open, sought).await?
        }
    };
    if let EarlierCall::Ended(stop, approval) = before {
        open.record.approval = Some(approval);
        return Err(stop);
    }
    if !settlement.is_noted() {
        let alone = is_alone(open).await?;
        settlement.note(NotedCall::new(
            parts,
            open.nest(),
            RepeatKey { key, alone },
            None,
        ));
    }
    Ok(())
}

/// Returns whether the run of a call exists only for it. A host that resumes the call may do so in a session that serves others, too.
async fn is_alone(open: &OpenCall<'_>) -> Result<bool, EarlyEnd> {
    let session = open.session();
    let here = session.is_for_one_call();
    if here || open.mode().is_by_client() {
        return Ok(here);
    }
    let noted = open
        .parts()
        .inbox
        .get_suspended(session.run(), open.id())
        .await;
    Ok(noted
        .map_err(|e| unknown(&e))?
        .is_some_and(|noted| noted.call.alone))
}

/// Returns the key that identifies a call when it is made again.
pub(super) fn of(parts: &ExecutorParts, session: &Session, tool: &Tool, arguments: &str) -> String {
    let policy = parts.policy.now();
    let workspace = policy.workspace_root().unwrap_or_default();
    let scope = RepeatScope {
        principal: session.principal(),
        workspace,
        group: session.group().map(RunGroup::name),
    };
    key_in(scope, tool, arguments)
}

/// Returns this key for a call that no session makes yet.
pub(super) fn key_in(scope: RepeatScope<'_>, tool: &Tool, arguments: &str) -> String {
    let arguments = identifying_arguments(tool, arguments);
    key(&tool.spec().name, scope, &arguments)
}

async fn look_up(open: &mut OpenCall<'_>, sought: SoughtCall<'_>) -> Result<EarlierCall, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    let SoughtCall {
        key,
        suspension,
        decision,
    } = sought;
    if !session.has_asked() && session.others().is_none() {
        return Ok(EarlierCall::New);
    }
    let found = same_calls(parts, session, key).await;
    for entry in found.map_err(|e| unknown(&e))? {
        let is_here = entry.call.run == *session.run();
        let before = if is_here && suspension == Suspension::After {
            find_started(parts, session, &entry.call).await?
        } else if is_here {
            from_this_run(parts, session, entry).await?
        } else if decision == DecisionNeed::None && is_left_behind(open, &entry.call).await? {
            EarlierCall::New
        } else {
            from_other_run(parts, session, entry.call).await?
        };
        if !matches!(before, EarlierCall::New) {
            return Ok(before);
        }
    }
    Ok(EarlierCall::New)
}

/// Returns whether an earlier call only waits for a decision that it would not need now: the call that is made now does not wait with it. Its
/// request is withdrawn if its client is gone. A decision that was made, and a call that runs, count.
async fn is_left_behind(
    open: &mut OpenCall<'_>,
    earlier: &SuspendedCall,
) -> Result<bool, EarlyEnd> {
    let parts = open.parts();
    let entry = parts.inbox.get(&earlier.approval).await;
    let Some(entry) = entry.map_err(|e| ask::not_recorded(&e))? else {
        return Ok(false);
    };
    let request = &entry.request;
    // What runs within the call, or applies what it did, has requests of its own: the call has begun then.
    let is_before = !earlier.within && request.parent.is_none() && !parts.is_internal(request);
    if !is_before || request.is_question() {
        return Ok(false);
    }
    if entry.attended {
        return Ok(entry.status == RequestStatus::Pending);
    }
    let why = "the call was made again in another run, and needs no approval now";
    // Withdrawn now, it owes no outcome: the look at its run says so.
    superseded::end(open, &earlier.approval, why, false).await?;
    Ok(false)
}

/// Returns the noted calls that a call of this session with this key stands for, newest first: those of its run, and those of other runs
/// whose outcome it may receive. A command's call is a run of its own: only commands receive its outcome, and commands receive none of a
/// client's calls. Nobody receives that of a call whose client still waits for it.
pub(super) async fn same_calls(
    parts: &ExecutorParts,
    session: &Session,
    key: &str,
) -> Result<Vec<SuspendedEntry>, InboxError> {
    let mut same = Vec::new();
    for entry in parts.inbox.find_suspended(key).await? {
        let call = &entry.call;
        let is_own = call.run == *session.run() || call.run == *session.approval_run();
        let is_same = is_own
            || call.alone == session.is_for_one_call()
                && match run_state(session, call) {
                    OtherRun::InUse => call.alone && !is_attended(parts, &call.approval).await?,
                    OtherRun::Resumed | OtherRun::Abandoned | OtherRun::Closed => true,
                };
        if is_same {
            same.push(entry);
        }
    }
    Ok(same)
}

/// Returns whether the process that made a request lives, and waits for it or acts on it; also true for one that is about to be stored.
async fn is_attended(parts: &ExecutorParts, id: &ApprovalId) -> Result<bool, InboxError> {
    let entry = parts.inbox.get(id).await?;
    Ok(entry.is_none_or(|entry| entry.attended))
}

fn run_state(session: &Session, call: &SuspendedCall) -> OtherRun {
    let others = session.others();
    others.map_or(OtherRun::InUse, |others| others.look(&call.run))
}

/// Looks up a call of this run. The inbox finds the request of one that did not begin, unless that request is over.
async fn from_this_run(
    parts: &ExecutorParts,
    session: &Session,
    entry: SuspendedEntry,
) -> Result<EarlierCall, EarlyEnd> {
    let call = entry.call;
    if !call.within {
        if !entry.state.answers_again() {
            noted::forget(&*parts.inbox, &call).await;
        }
        return Ok(EarlierCall::New);
    }
    let present = enter(session, &call.call).await?;
    match now(parts, &call).await? {
        Some(noted) if !noted.has_ended() => Ok(EarlierCall::Here(Box::new(noted.call), present)),
        Some(ended) => collect(parts, session, &ended.call).await,
        // Another client received the outcome: this is a new call.
        None => Ok(EarlierCall::New),
    }
}

/// Looks up a call of this run that was suspended after it ran: the tool continues it unless its request has an outcome.
async fn find_started(
    parts: &ExecutorParts,
    session: &Session,
    call: &SuspendedCall,
) -> Result<EarlierCall, EarlyEnd> {
    let entry = running::wait(parts, session, &call.approval).await;
    let entry = entry.map_err(|e| ask::not_recorded(&e))?;
    let came =
        |known: &StoredApproval| known.outcome.is_some() && known.status != RequestStatus::Denied;
    match &entry {
        Some(known) if came(known) || known.status == RequestStatus::InDoubt => {
            collect(parts, session, call).await
        }
        // Another process is applying what the tool would continue with.
        Some(known) if known.status == RequestStatus::Running => {
            Err(still_pending(parts, call).await)
        }
        // The tool reports what it had when a user denies the request.
        _ => Ok(EarlierCall::New),
    }
}

/// A call of another run that another process resumes: waits for its end until the deadline.
async fn from_other_run(
    parts: &ExecutorParts,
    session: &Session,
    call: SuspendedCall,
) -> Result<EarlierCall, EarlyEnd> {
    let deadline = Instant::now() + session.patience();
    let mut changes = parts.inbox.changes();
    loop {
        let Some(noted) = now(parts, &call).await? else {
            return Ok(EarlierCall::New);
        };
        let (known, waits) = (&noted.call, noted.state.is_unsettled());
        if noted.has_ended() || !waits && !known.within {
            return collect(parts, session, known).await;
        }
        match run_state(session, known) {
            OtherRun::Closed if !waits => return find_ended(parts, session, known).await,
            // Nothing is stored to resume it from, whatever the decision.
            OtherRun::Abandoned if known.within && !can_be_resumed(session, known).await => {
                return find_ended(parts, session, known).await;
            }
            OtherRun::Abandoned if !waits => return Err(interrupted(known)),
            OtherRun::Closed | OtherRun::Abandoned | OtherRun::Resumed | OtherRun::InUse => {}
        }
        // Nobody is asked about a call of another run: there is no approver to wait for.
        let late = Instant::now() >= deadline || !session.wait_mode().waits_for_others();
        if late || session.waits_cancelled().is_cancelled() {
            return Err(still_pending(parts, known).await);
        }
        tokio::select! {
            _ = changes.recv() => {}
            () = tokio::time::sleep_until(deadline.min(Instant::now() + POLL_INTERVAL)) => {}
            () = session.waits_cancelled().cancelled() => {}
            () = session.cancellation().cancelled() => {
                return Err(still_pending(parts, known).await);
            }
        }
    }
}

/// Returns a suspended call as it is now; `None` if nothing is owed to it any more.
async fn now(
    parts: &ExecutorParts,
    call: &SuspendedCall,
) -> Result<Option<SuspendedEntry>, EarlyEnd> {
    let noted = parts.inbox.get_suspended(&call.run, &call.call).await;
    noted.map_err(|e| unknown(&e))
}

/// Handles a call that can neither continue nor be resumed. It may have ended in the meantime.
async fn find_ended(
    parts: &ExecutorParts,
    session: &Session,
    call: &SuspendedCall,
) -> Result<EarlierCall, EarlyEnd> {
    match now(parts, call).await? {
        None => Ok(EarlierCall::New),
        Some(ended) if ended.has_ended() => collect(parts, session, &ended.call).await,
        Some(_) => {
            noted::forget(&*parts.inbox, call).await;
            Err(outcome_lost(call))
        }
    }
}

/// Returns whether an abandoned call has anything to resume from.
async fn can_be_resumed(session: &Session, call: &SuspendedCall) -> bool {
    match session.others() {
        Some(others) => others.can_resume(&call.run, &call.call).await,
        None => true,
    }
}

/// Takes the outcome that is owed to a call, unless another client was first: its own, or that of the call that it waited for.
async fn collect(
    parts: &ExecutorParts,
    session: &Session,
    call: &SuspendedCall,
) -> Result<EarlierCall, EarlyEnd> {
    let entry = parts.inbox.get(&call.approval).await;
    let entry = entry.map_err(|e| ask::not_recorded(&e))?;
    let collected = parts.inbox.collect(&call.run, &call.call).await;
    let collected = collected.map_err(|e| unknown(&e))?;
    let Some(collected) = collected.filter(|collected| collected.before.owes_outcome()) else {
        return Ok(EarlierCall::New);
    };
    let stop = match (&collected.outcome, &entry) {
        (None, Some(entry)) => ask::in_doubt(&call.approval, parts.phrases(&entry.request)),
        (outcome, entry) => {
            let repeated = repeat_outcome(&call.approval, outcome.as_deref());
            note_earlier_run(repeated, session, call, entry.as_ref())
        }
    };
    Ok(EarlierCall::Ended(stop, call.approval.clone()))
}

/// Adds a note that the outcome belongs to an earlier run's call and that nothing ran now.
fn note_earlier_run(
    end: EarlyEnd,
    session: &Session,
    call: &SuspendedCall,
    entry: Option<&StoredApproval>,
) -> EarlyEnd {
    if call.run == *session.run() {
        return end;
    }
    let decision = entry.and_then(|entry| entry.decision.as_ref());
    let decided = decision.map_or_else(String::new, |decision| {
        let how = match decision.choice {
            Choice::Approve { .. } => "approved",
            Choice::Deny { .. } => "denied",
            Choice::Answer { .. } => "answered",
        };
        let (by, at) = (&decision.by, clock::rfc3339(decision.at));
        format!(", {how} by {by} at {at}")
    });
    end.note_earlier(format!(
        "This is the outcome of {} of run {} (approval {}{decided}). Nothing ran now.",
        call.call, call.run, call.approval
    ))
}

async fn enter(session: &Session, call: &CallId) -> Result<RunningCallGuard, EarlyEnd> {
    tokio::select! {
        present = session.at_work().enter(call) => Ok(present),
        () = session.cancellation().cancelled() => {
            Err(EarlyEnd::failed(ErrorKind::Cancelled, "the session was cancelled"))
        }
    }
}

pub(super) fn unknown(error: &InboxError) -> EarlyEnd {
    EarlyEnd::failed(
        ErrorKind::Unavailable,
        format!("cannot tell whether this call was made before: {error}"),
    )
    .advise("nothing ran; call again later")
    .for_operator(
        "do what the error says, then make the call again; `haft doctor` checks the state folder",
    )
}

/// The end of a call that waits for what an earlier one waits for: says what that is, and what the user can do.
async fn still_pending(parts: &ExecutorParts, call: &SuspendedCall) -> EarlyEnd {
    let id = &call.approval;
    let entry = match parts.inbox.get(id).await {
        Ok(entry) => entry,
        Err(error) => return ask::not_recorded(&error),
    };
    let entry = entry.as_ref();
    let undecided = entry.filter(|entry| entry.is_open());
    let (now, operator) = match undecided {
        Some(entry) if entry.request.is_question() => (
            "waits for an answer of the user",
            entry.request.decision_advice(),
        ),
        Some(entry) => {
            let is_within = entry.request.parent.is_some();
            let waits = if is_within {
                "waits for the user's approval of a call within it"
            } else {
                parts.phrases(&entry.request).waits
            };
            (waits, entry.request.decision_advice())
        }
        None if entry.is_some_and(|entry| entry.claimed) => (
            "is decided, and another process acts on the decision",
            format!("`haft approvals show {id}` shows how it ended, once it has"),
        ),
        None if entry.is_some() => (
            "is decided, but no process has acted on the decision yet",
            format!("`haft runs resume {}` acts on it", call.run),
        ),
        None => (
            "has not finished yet",
            format!("`haft runs show {}` shows what it did so far", call.run),
        ),
    };
    let once = undecided.map_or("it has finished", |_| "it is decided");
    let words = format!(
        "This call was already made, as {} of run {}, and {now} (approval {id}). Nothing ran now. Call again with the same arguments to get the result once {once}.",
        call.call, call.run
    );
    EarlyEnd::pending_elsewhere(id, words).for_operator(operator)
}

fn interrupted(call: &SuspendedCall) -> EarlyEnd {
    EarlyEnd::failed(
        ErrorKind::Unavailable,
        format!(
            "this call was already made, as {} of run {}, and its process ended while it was resumed: it may have run in part",
            call.call, call.run
        ),
    )
    .advise("the user has to resume it; call again after that to get the result")
    .for_operator(format!("`haft runs resume {}`", call.run))
}

fn outcome_lost(call: &SuspendedCall) -> EarlyEnd {
    EarlyEnd::failed(
        ErrorKind::Unavailable,
        format!(
            "this call was already made, as {} of run {}, and has ended there; its outcome is lost",
            call.call, call.run
        ),
    )
    .advise("check what it changed; calling again runs it from the start")
    .for_operator(format!("`haft runs show {}` shows what it did", call.run))
}

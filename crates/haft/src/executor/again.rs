//! A call that was suspended and is made again: it hears how it ended, or is resumed where it was; it never starts over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::approval::ApprovalId;
use crate::approval::inbox::{Entry, RequestStatus};
use crate::approval::suspended::{OtherRun, SuspendedCall, SuspendedCalls, SuspendedError, key};
use crate::call::{CallId, RunId};
use crate::error::ErrorKind;
use crate::executor::Parts;
use crate::executor::ask;
use crate::executor::claim::told_again;
use crate::executor::clear::Cleared;
use crate::executor::exit::OpenCall;
use crate::executor::stop::Stop;
use crate::result::{Outcome, Status};
use crate::session::at_work::Present;
use crate::session::{Patience, Session};
use crate::toolset::Entry as Tool;

/// How often a call that another process resumes is looked at, where nothing is heard of its request.
const LOOK: Duration = Duration::from_millis(250);

/// A call that is found when it is made again.
#[derive(Debug)]
pub(super) struct Kept {
    key: String,
    /// It began: no other call is at work under its id.
    present: Option<Present>,
    /// It was suspended before.
    noted: Option<Noted>,
}

/// A call that is known to be suspended. Dropping this forgets it: whoever made it went away, and it was cancelled.
#[derive(Debug)]
struct Noted {
    store: Arc<dyn SuspendedCalls>,
    run: RunId,
    call: CallId,
    dropped: bool,
}

impl Noted {
    fn new(parts: &Parts, run: &RunId, call: &CallId) -> Self {
        Self {
            store: Arc::clone(&parts.suspended),
            run: run.clone(),
            call: call.clone(),
            dropped: true,
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if !self.dropped {
            return;
        }
        // Where no runtime is left the process ends; the journal then says what it did.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (store, run, call) = (Arc::clone(&self.store), self.run.clone(), self.call.clone());
            runtime.spawn(async move { store.forget(&run, &call).await });
        }
    }
}

/// What is known of a call that may have been made before.
enum Before {
    /// Nothing.
    New,
    /// How it ended.
    Ended(Stop),
    /// It goes on in this run, under the id it had.
    Here(CallId, Present),
}

/// Sees whether a call of a tool that can be resumed was suspended before; the session in which it goes on, where it is
/// another.
pub(super) async fn before(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    cleared: &Cleared,
) -> Result<Option<Session>, Stop> {
    let key = of(
        parts,
        session,
        cleared.entry(),
        cleared.admitted().written(),
    );
    if open.has_own_id() && session.is_resumed() {
        return resume(parts, session, open, key).await.map(|()| None);
    }
    let found = match look_up(parts, session, &key).await? {
        Before::Ended(stop) => return Err(stop),
        Before::New => None,
        Before::Here(call, present) => Some((call, present)),
    };
    let resumed = found.is_some();
    let present = if let Some((call, present)) = found {
        open.rename(call);
        present
    } else {
        session.at_work().enter(open.id()).await
    };
    open.kept = Some(Kept {
        key,
        present: Some(present),
        noted: resumed.then(|| Noted::new(parts, session.run(), open.id())),
    });
    Ok(resumed.then(|| session.going_on()))
}

/// Goes on under the call's own id, once no other does.
async fn resume(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    key: String,
) -> Result<(), Stop> {
    let present = enter(session, open.id()).await?;
    let noted = parts.suspended.get(session.run(), open.id()).await;
    let noted = noted.map_err(|e| unknown(&e))?;
    let ended = noted
        .as_ref()
        .map_or(open.must_wait, |call| call.outcome.is_some());
    if ended {
        let message = format!("{} has been resumed already, and has ended", open.id());
        let stop = Stop::new(ErrorKind::Conflict, message);
        return Err(stop.advise("nothing ran; make the call again to hear how it ended"));
    }
    open.kept = Some(Kept {
        key,
        present: Some(present),
        noted: noted
            .filter(|call| call.within)
            .map(|call| Noted::new(parts, &call.run, &call.call)),
    });
    Ok(())
}

/// A call about which a person is to be asked: how it ended, where it was asked about in a run that is abandoned.
pub(super) async fn asked_before(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    tool: &Tool,
    arguments: &str,
) -> Result<(), Stop> {
    if session.nest().is_some() {
        // The call around it is made again.
        return Ok(());
    }
    let key = of(parts, session, tool, arguments);
    // In its own run the inbox knows it.
    let before = match session.others() {
        Some(_) => look_up(parts, session, &key).await?,
        None => Before::New,
    };
    if let Before::Ended(stop) = before {
        return Err(stop);
    }
    open.kept.get_or_insert(Kept {
        key,
        present: None,
        noted: None,
    });
    Ok(())
}

fn of(parts: &Parts, session: &Session, tool: &Tool, arguments: &str) -> String {
    let policy = parts.policy.now();
    let workspace = policy.workspace_root().unwrap_or_default();
    key(&tool.spec().name, session.principal(), workspace, arguments)
}

async fn look_up(parts: &Parts, session: &Session, key: &str) -> Result<Before, Stop> {
    if !session.has_asked() && session.others().is_none() {
        return Ok(Before::New);
    }
    let found = parts.suspended.find(key).await.map_err(|e| unknown(&e))?;
    for call in found {
        let before = if call.run == *session.run() {
            here(parts, session, call).await?
        } else if may_take_up(session, &call) {
            elsewhere(parts, session, call).await?
        } else {
            continue;
        };
        if !matches!(before, Before::New) {
            return Ok(before);
        }
    }
    Ok(Before::New)
}

fn may_take_up(session: &Session, call: &SuspendedCall) -> bool {
    let alone = call.alone && session.is_for_one_call();
    alone || call.run == *session.asks_in() || stands(session, call) != OtherRun::InUse
}

fn stands(session: &Session, call: &SuspendedCall) -> OtherRun {
    let others = session.others();
    others.map_or(OtherRun::InUse, |others| others.look(&call.run))
}

/// A call of this run. Of one that did not begin the inbox knows.
async fn here(parts: &Parts, session: &Session, call: SuspendedCall) -> Result<Before, Stop> {
    if !call.within {
        forget(parts, &call).await;
        return Ok(Before::New);
    }
    let present = enter(session, &call.call).await?;
    let known = parts.suspended.get(&call.run, &call.call).await;
    match known.map_err(|e| unknown(&e))? {
        Some(SuspendedCall { outcome: None, .. }) => Ok(Before::Here(call.call, present)),
        Some(ended) => collect(parts, &ended).await,
        // Another one heard how it ended: this is a new call.
        None => Ok(Before::New),
    }
}

/// A call of another run, which somebody else resumes: waits for its end as long as it may.
async fn elsewhere(parts: &Parts, session: &Session, call: SuspendedCall) -> Result<Before, Stop> {
    let deadline = Instant::now() + session.limits().approval_timeout;
    let mut changes = parts.inbox.changes();
    loop {
        let known = parts.suspended.get(&call.run, &call.call).await;
        let Some(known) = known.map_err(|e| unknown(&e))? else {
            return Ok(Before::New);
        };
        if known.outcome.is_some() {
            return collect(parts, &known).await;
        }
        let entry = parts.inbox.get(&known.approval).await;
        let entry = entry.map_err(|e| ask::unwritten(&e))?;
        let waits = entry.as_ref().is_some_and(waits);
        if !waits && !known.within {
            return direct(parts, &known, entry.as_ref()).await;
        }
        match stands(session, &known) {
            OtherRun::Closed if !waits => {
                forget(parts, &known).await;
                return Err(lost(&known));
            }
            OtherRun::Abandoned if !waits => return Err(interrupted(&known)),
            OtherRun::Closed | OtherRun::Abandoned | OtherRun::InUse => {}
        }
        let late = Instant::now() >= deadline || session.patience() == Patience::SuspendAtOnce;
        if late || session.leaving().is_cancelled() {
            return Err(still_waits(&known));
        }
        tokio::select! {
            _ = changes.recv() => {}
            () = tokio::time::sleep_until(deadline.min(Instant::now() + LOOK)) => {}
            () = session.leaving().cancelled() => {}
            () = session.cancellation().cancelled() => return Err(still_waits(&known)),
        }
    }
}

/// Whether a request is still to be decided, or what was decided still to be done.
fn waits(entry: &Entry) -> bool {
    match entry.status {
        RequestStatus::Pending => entry.is_open(),
        RequestStatus::Approved | RequestStatus::Running => true,
        RequestStatus::Denied | RequestStatus::Answered => !entry.claimed,
        RequestStatus::Done
        | RequestStatus::Expired
        | RequestStatus::Withdrawn
        | RequestStatus::InDoubt => false,
    }
}

/// The end of a direct call, as the inbox has it: told once, to whoever makes the call again first.
async fn direct(
    parts: &Parts,
    call: &SuspendedCall,
    entry: Option<&Entry>,
) -> Result<Before, Stop> {
    forget(parts, call).await;
    let Some(entry) = entry else {
        return Ok(Before::New);
    };
    let told = entry.outcome.is_some() || entry.status == RequestStatus::InDoubt;
    let first =
        told && !entry.delivered && parts.inbox.deliver(&call.approval).await.unwrap_or(true);
    Ok(match (first, entry.outcome.as_deref()) {
        (false, _) => Before::New,
        (true, None) => Before::Ended(ask::in_doubt(&call.approval)),
        (true, outcome) => Before::Ended(told_again(&call.approval, outcome)),
    })
}

/// Takes the outcome of a resumed call, if nobody was first.
async fn collect(parts: &Parts, call: &SuspendedCall) -> Result<Before, Stop> {
    let outcome = parts.suspended.collect(&call.run, &call.call).await;
    Ok(match outcome.map_err(|e| unknown(&e))? {
        Some(outcome) => Before::Ended(told_again(&call.approval, Some(&outcome))),
        None => Before::New,
    })
}

async fn enter(session: &Session, call: &CallId) -> Result<Present, Stop> {
    tokio::select! {
        present = session.at_work().enter(call) => Ok(present),
        () = session.cancellation().cancelled() => {
            Err(Stop::new(ErrorKind::Cancelled, "the session was cancelled"))
        }
    }
}

async fn forget(parts: &Parts, call: &SuspendedCall) {
    if let Err(error) = parts.suspended.forget(&call.run, &call.call).await {
        // It is looked at again, and told to nobody twice.
        tracing::warn!(%error, call = %call.call, "forget a suspended call");
    }
}

impl Kept {
    /// Notes how the call ended, for when it is made again. `asker` is whether whoever made it hears the outcome.
    pub(super) async fn ended(
        mut self,
        parts: &Parts,
        session: &Session,
        outcome: &mut Outcome,
        asker: bool,
    ) {
        let suspended = outcome.status == Status::Suspended;
        let waits = outcome.approval.clone().filter(|_| suspended);
        let (run, call) = (session.run(), &outcome.call);
        let was_noted = self
            .noted
            .take()
            .map(|mut noted| noted.dropped = false)
            .is_some();
        let noted = if let Some(approval) = waits {
            self.suspended(parts, session, &outcome.call, ApprovalId::new(approval))
                .await
        } else if !was_noted {
            Ok(())
        } else if asker {
            parts.suspended.forget(run, call).await
        } else {
            let text = serde_json::to_string(outcome).unwrap_or_default();
            parts.suspended.finish(run, call, &text).await
        };
        if let Err(error) = noted {
            tracing::error!(%error, %run, call = %outcome.call, "note how a suspended call stands");
            let what = "not noted: resume the run instead of calling again";
            outcome.summary = format!("{} ({what})", outcome.summary);
        }
    }

    async fn suspended(
        self,
        parts: &Parts,
        session: &Session,
        call: &CallId,
        approval: ApprovalId,
    ) -> Result<(), SuspendedError> {
        let within = self.present.is_some();
        let (mut run, mut call) = (session.run().clone(), call.clone());
        if !within && let Ok(Some(entry)) = parts.inbox.get(&approval).await {
            // One that says the same shares the request of the first.
            (run, call) = (entry.request.run, entry.request.call);
        }
        let suspended = SuspendedCall {
            run,
            call,
            key: self.key,
            approval,
            within,
            alone: session.is_for_one_call(),
            outcome: None,
        };
        parts.suspended.suspend(&suspended).await
    }
}

fn unknown(error: &SuspendedError) -> Stop {
    Stop::new(
        ErrorKind::Unavailable,
        format!("whether this call was made before is not known: {error}"),
    )
    .advise("nothing ran; mend the database (`haft doctor`), then call again")
}

fn still_waits(call: &SuspendedCall) -> Stop {
    let words = format!(
        "This call was made before, as {} of run {}, and is not done yet (approval {}). Calling again with the same \
         arguments gives the result when it is.",
        call.call, call.run, call.approval
    );
    Stop::waiting(&call.approval, &words)
}

fn interrupted(call: &SuspendedCall) -> Stop {
    Stop::new(
        ErrorKind::Unavailable,
        format!(
            "this call was made before, as {} of run {}, and its process ended while it was resumed: it may have run in part",
            call.call, call.run
        ),
    )
    .advise(format!("resume it with `haft runs resume {}`, then call again", call.run))
}

fn lost(call: &SuspendedCall) -> Stop {
    Stop::new(
        ErrorKind::Unavailable,
        format!(
            "this call was made before, as {} of run {}, and has ended there; how it ended was not kept",
            call.call, call.run
        ),
    )
    .advise(format!(
        "`haft runs show {}` says what it did; calling again runs it anew",
        call.run
    ))
}

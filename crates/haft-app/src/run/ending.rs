//! How a process releases a run: suspended, so that it can be resumed, or finished; once.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, RequestStatus, StoredApproval,
};
use haft::approval::{Choice, Decision, listing};
use haft::audit::runs;
use haft::call::RunId;
use haft::clock;
use haft::session::Session;

use crate::conversation_file;
use crate::problem::Problem;
use crate::run::RunParts;
use crate::run::live::HeldRun;
use crate::run::phase::{PhaseEvent, RunPhase};

/// How long the calls of a suspended run may take to note that they are pending.
const NOTE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the calls of a finished run may take to end.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of requests of a run that are read at a time.
const PAGE_SIZE: usize = 1_000;

/// Why the requests of a finished run are withdrawn.
const FINISHED: &str = "its run was finished";

/// Why the requests of an agent's run that has reached its end are withdrawn.
const OVER: &str = "its run has gone on to its end without it";

/// How to release a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseMode {
    /// Suspends it if something in it can be resumed, and finishes it otherwise.
    Release,
    /// Finishes it and withdraws its requests.
    Finish,
}

/// A run's end that could not be recorded.
#[derive(Debug)]
pub(crate) enum Unrecorded {
    /// That the run is suspended could not be recorded; why.
    Suspended(RunId, String),
    /// The run is over, but its record stays open; why.
    Finished(RunId, String),
}

impl fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended(run, why) => write!(f, "note that run {run} is suspended: {why}"),
            Self::Finished(run, why) => write!(f, "the record of run {run} stays open: {why}"),
        }
    }
}

impl From<Unrecorded> for Problem {
    fn from(unrecorded: Unrecorded) -> Self {
        Self::failed(unrecorded.to_string())
            .advise("the state folder or the database could not be written; `haft doctor` says why")
    }
}

/// Suspends or finishes a run, once, and tells the host what could not be recorded.
pub(crate) async fn release(parts: &RunParts, life: &HeldRun) {
    match end(parts, life, ReleaseMode::Release).await {
        Ok(()) => {}
        Err(unrecorded @ Unrecorded::Finished(..)) => parts.notices.warn(&unrecorded.to_string()),
        Err(unrecorded @ Unrecorded::Suspended(..)) => tracing::warn!("{unrecorded}"),
    }
}

/// Releases a run, once: a second caller waits for the first.
pub(crate) async fn end(
    parts: &RunParts,
    life: &HeldRun,
    how: ReleaseMode,
) -> Result<(), Unrecorded> {
    let session = &life.session;
    let mut phase = life.phase.lock().await;
    let (event, done) = match *phase {
        RunPhase::Suspended | RunPhase::Finished => return Ok(()),
        // A prepared run has no record.
        RunPhase::Prepared => {
            session.cancel();
            (PhaseEvent::Finish, Ok(()))
        }
        RunPhase::Recorded | RunPhase::Running => {
            parts.live.remove(session.run());
            let may_wait = session.has_asked() || goes_on(life);
            let denial = session.ended_by_denial();
            let suspended = match denial.is_none() && how == ReleaseMode::Release {
                true if may_wait => suspend(parts, life).await,
                false if may_wait => {
                    withdraw(parts, session, FINISHED).await;
                    None
                }
                true | false => None,
            };
            let noted = match denial {
                Some(denial) => end_conversation(parts, session, denial).await,
                None => Ok(()),
            };
            match suspended {
                Some(done) => (PhaseEvent::Suspend, done),
                None => (PhaseEvent::Finish, finish(parts, session).await.and(noted)),
            }
        }
    };
    phase.transition(event);
    parts.tally.end(session.run()).await;
    done
}

/// Suspends a run with pending requests, with a call that can be resumed or with a conversation whose calls have no answer; returns `None`
/// if it has none of these.
async fn suspend(parts: &RunParts, life: &HeldRun) -> Option<Result<(), Unrecorded>> {
    let session = &life.session;
    session.suspend();
    // Waiting calls end at once; a running call gets more time below.
    let _ = tokio::time::timeout(NOTE_TIMEOUT, session.idle()).await;
    if is_over(parts, life).await {
        // The conversation is over, so none of its calls will claim a decision about them.
        withdraw(parts, session, OVER).await;
    }
    let pending = parts.executor.inbox().list(&left(session, 1)).await;
    let none = pending.as_ref().is_ok_and(Vec::is_empty);
    let left = !none || session.has_resumable() || is_unfinished(parts, life).await;
    if !left || !parts.terms().durable {
        return None;
    }
    if !parts.executor.suspend(session) {
        return Some(Ok(()));
    }
    let _ = tokio::time::timeout(SETTLE_TIMEOUT, session.idle()).await;
    let noted = match parts.archive.suspend(session.run()).await {
        Ok(()) => {
            let noted = parts.index.progress(session.run(), session.calls(), true);
            noted.await.map_err(|e| e.to_string())
        }
        Err(e) => Err(e.to_string()),
    };
    parts.feed.suspended(session.run());
    Some(noted.map_err(|why| Unrecorded::Suspended(session.run().clone(), why)))
}

/// Returns whether a run continues an earlier conversation: its own, after a resume, or that of another run.
fn goes_on(life: &HeldRun) -> bool {
    life.session.is_resumed() || life.continues.is_some()
}

/// Returns whether the run's agent has calls without an answer, which a resume continues with. A run that continues another one stays
/// unfinished until its model has answered, so that repeated attempts create no further runs. A run that a denial ended is finished.
async fn is_unfinished(parts: &RunParts, life: &HeldRun) -> bool {
    let session = &life.session;
    if session.cancellation().is_cancelled() {
        return false;
    }
    let folder = runs::run_dir(parts.archive.home(), session.run().as_str());
    match folder {
        Ok(folder) => conversation_file::is_open(&folder, goes_on(life)).await,
        Err(_) => false,
    }
}

/// Returns whether the run is an agent's whose model has answered.
async fn is_over(parts: &RunParts, life: &HeldRun) -> bool {
    let folder = runs::run_dir(parts.archive.home(), life.session.run().as_str());
    match folder {
        Ok(folder) => {
            conversation_file::is_kept(&folder) && !conversation_file::is_open(&folder, true).await
        }
        Err(_) => false,
    }
}

/// Returns the filter for the requests of a run on which a call could still run.
fn left(session: &Session, limit: usize) -> RequestFilter {
    RequestFilter {
        tenant: session.principal().tenant.to_string(),
        status: vec![RequestStatus::Pending, RequestStatus::Approved],
        run: Some(session.run().clone()),
        limit,
        ..RequestFilter::default()
    }
}

/// Withdraws the requests of a run that is about to be finished, after which no call of it can run.
async fn withdraw(parts: &RunParts, session: &Session, why: &str) {
    let inbox = parts.executor.inbox();
    let mut requests = Vec::new();
    let keep = |entry| requests.push(entry);
    let read = listing::each(&**inbox, left(session, PAGE_SIZE), keep).await;
    let mut ended: Result<(), InboxError> = read;
    for entry in requests {
        let ending = if entry.status == RequestStatus::Pending {
            RequestEnding::Withdrawn
        } else {
            RequestEnding::Void
        };
        let undone = parts.executor.phrases(&entry.request).undone;
        let why = format!("{why}; {undone}");
        ended = ended.and(inbox.end(&entry.request.id, ending, &why).await);
    }
    if let Err(error) = ended {
        tracing::warn!(run = %session.run(), %error, "withdraw the requests of a finished run");
    }
}

/// Ends the conversation of a run that a denial ended: its open calls get answers that say so, which the model reads if
/// the user continues with another prompt.
async fn end_conversation(
    parts: &RunParts,
    session: &Session,
    denial: &str,
) -> Result<(), Unrecorded> {
    let unrecorded = |why: String| Unrecorded::Finished(session.run().clone(), why);
    let filter = RequestFilter {
        status: vec![RequestStatus::Denied],
        ..left(session, PAGE_SIZE)
    };
    let mut denied = HashMap::new();
    let keep = |entry: StoredApproval| {
        if let Some(Decision {
            by,
            choice: Choice::Deny { message, .. },
            ..
        }) = entry.decision
        {
            let detail = message.map_or_else(String::new, |message| format!(": {message}"));
            let said = format!("denied: {by} said no{detail}");
            denied.insert(entry.request.id.to_string(), said);
        }
    };
    let read = listing::each(&**parts.executor.inbox(), filter, keep).await;
    read.map_err(|error| unrecorded(error.to_string()))?;
    let folder = runs::run_dir(parts.archive.home(), session.run().as_str());
    let folder = folder.map_err(|error| unrecorded(error.to_string()))?;
    let ended = conversation_file::end_by_denial(&folder, denial, &denied).await;
    ended.map_err(|error| unrecorded(error.to_string()))
}

/// Finishes a run: cancels running calls, seals its record and updates the index.
async fn finish(parts: &RunParts, session: &Session) -> Result<(), Unrecorded> {
    let ended = parts.executor.close(session);
    // A cancelled call ends at once, unless it hangs where nothing can reach it; then it stays in doubt.
    let settled = tokio::time::timeout(SETTLE_TIMEOUT, session.settled()).await;
    if settled.is_err() {
        tracing::warn!(run = %session.run(), "a call did not end");
    }
    if let Some(log) = &parts.log {
        log.closing(session.run());
    }
    let closed = parts.archive.close(session.run()).await;
    if let (Some(log), Ok(closed)) = (&parts.log, &closed) {
        log.closed(session.run(), closed);
    }
    let noted = match (ended, closed) {
        (Ok(()), Ok(closed)) => {
            let noted = parts
                .index
                .close(session.run(), &closed, clock::now())
                .await;
            noted.map_err(|e| e.to_string())
        }
        (Err(e), _) | (_, Err(e)) => Err(e.to_string()),
    };
    noted.map_err(|why| Unrecorded::Finished(session.run().clone(), why))
}

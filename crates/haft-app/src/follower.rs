//! The follower: acts on decisions about calls whose client is gone, whoever made them and from where.

use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestStatus, StoredApproval};
use haft::audit::runs;
use haft::call::{Origin, RunId};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;

use crate::agent::is_kept;
use crate::app::App;
use crate::follow::FollowResult;
use crate::requests::{visit, with_status};
use crate::run::RunOptions;

/// How long resumed calls may keep running when the server stops. What is cut off can be resumed.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Seconds between attempts to act on a decision: what prevented it, such as an unresponsive database, may pass.
const RETRY_DELAYS: [u64; 4] = [1, 5, 30, 120];

/// Follows decisions until `stopped` fires or is dropped, starting with decided requests that processes left when they
/// exited.
pub async fn follow(app: App, stopped: Receiver<()>) {
    let mut at_work = JoinSet::new();
    tokio::select! {
        _ = stopped => {}
        () = decisions(&app, &mut at_work) => {}
    }
    let all = async { while at_work.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, all).await;
    at_work.shutdown().await;
}

async fn decisions(app: &App, at_work: &mut JoinSet<()>) {
    let mut changes = app.executor().inbox().changes();
    resume_left_over(app, at_work).await;
    loop {
        while at_work.try_join_next().is_some() {}
        match changes.recv().await {
            Ok(id) => {
                if let Ok(entry) = app.entry(&id).await {
                    take(app, &entry, at_work);
                }
            }
            Err(RecvError::Lagged(_)) => resume_left_over(app, at_work).await,
            Err(RecvError::Closed) => return,
        }
    }
}

/// The statuses of a request that is decided.
const DECIDED: [RequestStatus; 3] = [
    RequestStatus::Approved,
    RequestStatus::Denied,
    RequestStatus::Answered,
];

/// Returns whether a request is decided and its call has not run yet.
fn is_actionable(entry: &StoredApproval) -> bool {
    DECIDED.contains(&entry.status) && !entry.claimed
}

async fn resume_left_over(app: &App, at_work: &mut JoinSet<()>) {
    for status in DECIDED {
        let looked = visit(app, with_status(status), |entry| take(app, &entry, at_work)).await;
        if let Err(problem) = looked {
            tracing::warn!(%problem, "cannot look for decided requests");
        }
    }
}

/// Acts on one decision of this workspace, unless another process does.
fn take(app: &App, entry: &StoredApproval, at_work: &mut JoinSet<()>) {
    // A coding agent runs its call itself when it makes it again.
    let is_foreign = entry.request.origin == Origin::Hook;
    if is_foreign || !is_actionable(entry) || entry.request.workspace != app.workspace() {
        return;
    }
    let (app, id) = (app.clone(), entry.request.id.clone());
    at_work.spawn(async move { act_on(&app, &id).await });
}

/// Acts on a decision. Retries a few times on failure: no other process acts on it while this one runs.
async fn act_on(app: &App, id: &ApprovalId) {
    let mut pauses = RETRY_DELAYS.into_iter();
    loop {
        let followed = app.follow(id, options(app)).await;
        if matches!(followed, Ok(FollowResult::Foreign)) {
            return;
        }
        let entry = app.entry(id).await;
        if entry.as_ref().is_ok_and(|entry| !is_actionable(entry)) {
            return;
        }
        let why = followed.err().map_or_else(
            || "the process that began to act on it ended before it could".to_owned(),
            |problem| problem.to_string(),
        );
        let Some(pause) = pauses.next() else {
            let run = entry.map_or_else(|_| RunId::new("RUN"), |entry| entry.request.run);
            let again = resume_line(app, &run);
            app.warn(&format!(
                "act on the decision about {id}: {why}; `{again}` tries again"
            ));
            return;
        };
        app.warn(&format!(
            "act on the decision about {id}: {why}; tried again in {pause} s"
        ));
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
}

/// Returns the command that resumes a run: an agent's has its own.
fn resume_line(app: &App, run: &RunId) -> String {
    let folder = runs::run_dir(app.home(), run.as_str());
    if folder.is_ok_and(|folder| is_kept(&folder)) {
        format!("haft run --resume {run}")
    } else {
        format!("haft runs resume {run}")
    }
}

fn options(app: &App) -> RunOptions {
    RunOptions {
        progress: app.watched(),
        ..RunOptions::new("approval")
    }
}

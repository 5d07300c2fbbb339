//! The follower: runs what was decided about calls whose asker does not wait any more, whoever decided and from where.

use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::{Entry, RequestStatus};
use haft::bounds::Class;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;

use crate::assemble::follow::Followed;
use crate::assemble::{Door, House, Waits};
use crate::commands::approvals::{each, with};

/// How long what was decided may run on when the server stops. What is cut off then can be resumed.
const GRACE: Duration = Duration::from_secs(2);

/// Seconds between tries to act on a decision: what kept it from happening, as a database that did not answer, may pass.
const PAUSES: [u64; 4] = [1, 5, 30, 120];

/// Follows decisions until `stopped` says so or is dropped; begins with those that a process left that is gone.
pub(crate) async fn follow(house: House, stopped: Receiver<()>) {
    let mut at_work = JoinSet::new();
    tokio::select! {
        _ = stopped => {}
        () = decisions(&house, &mut at_work) => {}
    }
    let all = async { while at_work.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all).await;
    at_work.shutdown().await;
}

async fn decisions(house: &House, at_work: &mut JoinSet<()>) {
    let mut changes = house.executor().inbox().changes();
    left_over(house, at_work).await;
    loop {
        while at_work.try_join_next().is_some() {}
        match changes.recv().await {
            Ok(id) => {
                if let Ok(entry) = house.entry(&id).await {
                    take(house, &entry, at_work);
                }
            }
            Err(RecvError::Lagged(_)) => left_over(house, at_work).await,
            Err(RecvError::Closed) => return,
        }
    }
}

/// Whether a request is decided and its call has not run yet.
fn is_actionable(entry: &Entry) -> bool {
    let decided = matches!(
        entry.status,
        RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
    );
    decided && !entry.claimed
}

async fn left_over(house: &House, at_work: &mut JoinSet<()>) {
    let approved = with(RequestStatus::Approved);
    let looked = each(house, approved, |entry| take(house, &entry, at_work)).await;
    if let Err(problem) = looked {
        tracing::warn!(%problem, "look for decided requests");
    }
}

/// Follows one decision of this workspace, if no other process does.
fn take(house: &House, entry: &Entry, at_work: &mut JoinSet<()>) {
    if !is_actionable(entry) || entry.request.workspace != house.workspace() {
        return;
    }
    let (house, id) = (house.clone(), entry.request.id.clone());
    at_work.spawn(async move { act(&house, &id).await });
}

/// Acts on a decision. Tries again a few times when that fails: no other process does while this one runs.
async fn act(house: &House, id: &ApprovalId) {
    let mut pauses = PAUSES.into_iter();
    loop {
        let followed = house.follow(id, door(house)).await;
        if matches!(followed, Ok(Followed::Foreign)) {
            return;
        }
        let entry = house.entry(id).await;
        if entry.as_ref().is_ok_and(|entry| !is_actionable(entry)) {
            return;
        }
        let why = followed.err().map_or_else(
            || "the process that began to act on it ended before it could".to_owned(),
            |problem| problem.to_string(),
        );
        let Some(pause) = pauses.next() else {
            let run =
                entry.map_or_else(|_| "RUN".to_owned(), |entry| entry.request.run.to_string());
            house.warn(&format!(
                "act on the decision about {id}: {why}; `haft runs resume {run}` tries again"
            ));
            return;
        };
        house.warn(&format!(
            "act on the decision about {id}: {why}; tried again in {pause} s"
        ));
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
}

fn door(house: &House) -> Door {
    Door {
        name: "approval",
        principal: None,
        class: Class::Operator,
        client: None,
        progress: house.watched(),
        waits: Waits::Limit,
    }
}

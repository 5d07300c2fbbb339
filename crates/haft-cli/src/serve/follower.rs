//! The follower: runs what was decided about calls whose asker does not wait any more, whoever decided and from where.

use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::{Entry, RequestStatus};
use haft::bounds::Class;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;

use crate::assemble::{Door, House, Waits};
use crate::commands::approvals::{each, with};

/// How long what was decided may run on when the server stops. What is cut off then can be resumed.
const GRACE: Duration = Duration::from_secs(2);

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

async fn left_over(house: &House, at_work: &mut JoinSet<()>) {
    let approved = with(RequestStatus::Approved);
    let looked = each(house, approved, |entry| take(house, &entry, at_work)).await;
    if let Err(problem) = looked {
        tracing::warn!(%problem, "look for decided requests");
    }
}

/// Follows one decision, if it is one of this workspace that nobody acts on.
fn take(house: &House, entry: &Entry, at_work: &mut JoinSet<()>) {
    let decided = matches!(
        entry.status,
        RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
    );
    if !decided || entry.claimed || entry.request.workspace != house.workspace() {
        return;
    }
    let (house, id) = (house.clone(), entry.request.id.clone());
    at_work.spawn(async move { act(&house, &id).await });
}

async fn act(house: &House, id: &ApprovalId) {
    let door = Door {
        name: "approval",
        principal: None,
        class: Class::Operator,
        client: None,
        progress: house.watched(),
        waits: Waits::Limit,
    };
    if let Err(problem) = house.follow(id, door).await {
        house.warn(&format!("act on the decision about {id}: {problem}"));
    }
}

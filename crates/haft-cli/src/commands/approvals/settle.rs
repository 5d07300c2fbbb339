//! A decision made on the command line and its result, here or in the process that waits for it.

use std::time::{Duration, Instant};

use haft::approval::inbox::{RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, Decision};
use haft::result::Outcome;
use haft_app::app::App;
use haft_app::decide::DecisionError;
use haft_app::follow::FollowResult;
use haft_app::problem::{Problem, ProblemKind};
use serde_json::Value;

use crate::args::GlobalOptions;
use crate::commands::call;
use crate::invocation::Invocation;

/// How long to wait for another process to act on a decision.
const ELSEWHERE: Duration = Duration::from_secs(10);

/// How often to check meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// The result of a decision.
#[derive(Debug)]
pub(super) enum DecisionEffect {
    /// The call ran here, or its denial was recorded here.
    Ran(Box<Outcome>),
    /// Another process acted on it: the outcome that it stored.
    Ended {
        /// The id of the request.
        id: ApprovalId,
        /// The outcome (contract §3).
        outcome: Value,
    },
    /// It is decided, and another process acts on it.
    Decided(Box<StoredApproval>),
}

/// Returns whether a request belongs to a different folder than the application's.
pub(super) fn is_elsewhere(app: &App, entry: &StoredApproval) -> bool {
    entry.request.workspace != app.workspace() && !entry.request.workspace.is_empty()
}

/// Returns the same invocation in the workspace of a request.
pub(super) fn in_folder(at: &Invocation, workspace: &str) -> Result<Invocation, Problem> {
    Invocation::new(GlobalOptions {
        workspace: Some(workspace.into()),
        ..at.options.clone()
    })
}

/// Decides, and ensures that the decision is acted on.
pub(super) async fn settle(
    at: &Invocation,
    app: &App,
    id: &ApprovalId,
    decision: Decision,
) -> Result<DecisionEffect, Problem> {
    let entry = app
        .decide(id, decision)
        .await
        .map_err(DecisionError::problem)?;
    follow(at, app, entry).await
}

/// Ensures that a decision is acted on.
pub(super) async fn follow(
    at: &Invocation,
    app: &App,
    decided: StoredApproval,
) -> Result<DecisionEffect, Problem> {
    let id = &decided.request.id;
    match app.follow(id, call::options(at, "approval")).await? {
        FollowResult::Ran(outcome) => Ok(DecisionEffect::Ran(outcome)),
        FollowResult::Elsewhere => elsewhere(app, id).await,
        FollowResult::Foreign | FollowResult::Agents => {
            Ok(DecisionEffect::Decided(Box::new(decided)))
        }
    }
}

/// Waits a while for the outcome of a decision that another process acts on.
async fn elsewhere(app: &App, id: &ApprovalId) -> Result<DecisionEffect, Problem> {
    let begun = Instant::now();
    let mut entry = app.entry(id).await?;
    let comes = |entry: &StoredApproval| {
        let is_over = matches!(
            entry.status,
            RequestStatus::Withdrawn | RequestStatus::InDoubt
        );
        entry.outcome.is_none() && !is_over
    };
    while comes(&entry) && begun.elapsed() < ELSEWHERE {
        tokio::time::sleep(LOOK).await;
        entry = app.entry(id).await?;
    }
    if let Some(problem) = without_effect(app, &entry) {
        return Err(problem);
    }
    let outcome = entry.outcome.as_deref();
    let outcome = outcome.and_then(|text| serde_json::from_str(text).ok());
    Ok(match outcome {
        Some(outcome) => DecisionEffect::Ended {
            id: id.clone(),
            outcome,
        },
        None => DecisionEffect::Decided(Box::new(entry)),
    })
}

/// Returns the problem that a decision did not take effect: something else has decided the call, or the process that acted on it is gone.
fn without_effect(app: &App, entry: &StoredApproval) -> Option<Problem> {
    let id = &entry.request.id;
    let phrases = app.executor().phrases(&entry.request);
    match entry.status {
        RequestStatus::Withdrawn => {
            let why = entry.why.as_deref().unwrap_or(phrases.undone);
            let what = format!("the decision about {id} had no effect: {why}");
            let advice = format!("`haft runs show {}` shows what ran", entry.request.run);
            Some(Problem::new(ProblemKind::Denied, what).advise(advice))
        }
        RequestStatus::InDoubt if entry.outcome.is_none() => {
            let may_have = phrases.in_doubt;
            let what =
                format!("{id} is decided, and the process that acted on it has exited; {may_have}");
            let advice = format!(
                "`haft runs show {}` shows the call; nothing is repeated",
                entry.request.run
            );
            Some(Problem::failed(what).advise(advice))
        }
        _ => None,
    }
}

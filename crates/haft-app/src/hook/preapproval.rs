//! Asks about a jailed command before the agent runs it, by the policy and the request of the very call that `haft exec` will make. That
//! call claims the approval, once; no other call can.

use std::time::{Duration, Instant};

use haft::approval::ApprovalId;
use haft::approval::inbox::RequestStatus;
use haft::call::{Origin, ToolCall};
use haft::permission::Verdict;
use haft::result::Status;
use haft::toolset::Toolset as _;

use crate::app::App;
use crate::hook::exec_session::ExecSession;
use crate::problem::Problem;
use crate::run::{ApprovalWait, RunOptions};

/// How often a request is read if the inbox announces no change.
const LOOK: Duration = Duration::from_secs(2);

/// Returns whether the policy asks a user about a jailed command.
pub(super) fn is_asked(app: &App, call: &ToolCall) -> bool {
    let tools = app.tools().snapshot();
    let explained = tools
        .entry(&call.name)
        .map(|entry| app.executor().explain(entry, &call.arguments));
    matches!(explained, Some(Ok(explained)) if explained.verdict == Verdict::Ask)
}

/// Returns why the agent must not run a jailed command, or `None` if it may. A person may take `within` to decide.
pub(super) async fn refusal(
    app: &App,
    call: ToolCall,
    session: &ExecSession,
    within: Duration,
) -> Result<Option<String>, Problem> {
    let tools = app.tools().snapshot();
    let entry = tools.entry(&call.name).ok_or_else(|| {
        Problem::settings(format!("{} is off, and hook.wrap needs it", call.name))
            .advise("enable it, or set hook.wrap = \"none\"")
    })?;
    match app.executor().explain(entry, &call.arguments) {
        Ok(explained) if explained.verdict == Verdict::Allow => return Ok(None),
        Ok(_) => {}
        Err(failure) => return Ok(Some(failure.message)),
    }
    // The agent makes the call itself, by `haft exec`: no other process acts on the decision.
    let call = call.from_origin(Origin::Hook);
    let options = RunOptions {
        wait: ApprovalWait::Never,
        ..session.options()
    };
    if let Some(earlier) = app.suspended_before(&call, options.group.as_deref()).await {
        return await_decision(app, &earlier.approval, options, within).await;
    }
    let run = app.runs().start(options.clone()).await?;
    let outcome = run.ask_ahead(call).await;
    run.release().await;
    match (outcome.status, &outcome.approval) {
        (Status::Ok, _) => Ok(None),
        (Status::Suspended, Some(approval)) => {
            let approval = ApprovalId::new(approval.clone());
            await_decision(app, &approval, options, within).await
        }
        _ => Ok(Some(outcome.to_model())),
    }
}

/// Waits for the decision about a request.
async fn await_decision(
    app: &App,
    id: &ApprovalId,
    options: RunOptions,
    within: Duration,
) -> Result<Option<String>, Problem> {
    let end = Instant::now() + within;
    let mut changes = app.executor().inbox().changes();
    loop {
        let entry = app.entry(id).await?;
        match entry.status {
            RequestStatus::Approved if !entry.claimed => return Ok(None),
            RequestStatus::Pending if entry.is_open() => {}
            RequestStatus::Denied if !entry.claimed => {
                return record_denial(app, id, options).await.map(Some);
            }
            status => {
                return Ok(Some(format!(
                    "approval {id} is no longer valid ({}), so the command did not run. Make the same call again to ask again",
                    status.as_str()
                )));
            }
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Some(format!(
                "a person has not yet decided about this command (approval {id}), so it did not run. Do something else, and make the same \
                 call again later: it then gets the decision"
            )));
        }
        tokio::select! {
            _ = changes.recv() => {}
            () = tokio::time::sleep(left.min(LOOK)) => {}
        }
    }
}

/// Records that a person denied the call, and returns what they said.
async fn record_denial(app: &App, id: &ApprovalId, options: RunOptions) -> Result<String, Problem> {
    let entry = app.entry(id).await?;
    let run = app.runs().resume(&entry.request.run, 0, options).await?;
    let outcome = app.executor().resume(run.session(), id).await;
    run.release().await;
    match outcome {
        Ok(outcome) => {
            // The agent learns of the denial now, so the same call made again is asked about again.
            let delivered = app.executor().inbox().deliver(id).await;
            delivered.map_err(|error| Problem::failed(error.to_string()))?;
            Ok(outcome.to_model())
        }
        Err(error) => Ok(error.to_string()),
    }
}

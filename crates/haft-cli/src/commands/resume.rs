//! `haft runs resume`: an interrupted chain gone on with; what it had done is told to it, not done again.

use haft::approval::inbox::{Entry, Filter, RequestStatus};
use haft::audit::runs::{self, Holder};
use haft::call::{RunId, ToolCall};
use haft::journal::{JournalError, Recorded};
use haft_chain::TOOL_CHAIN;

use crate::commands::signals::Signals;
use crate::commands::{Done, call};
use crate::exit::Exit;
use crate::invocation::Invocation;
use haft_app::app::App;
use haft_app::follow::Followed;
use haft_app::problem::{Problem, ProblemKind};
use haft_app::view::approvals::visit;
use haft_app::view::runs as view;

/// Goes on with the run's last chain, in the run.
pub(crate) async fn run(at: &Invocation, app: &App, run: &str) -> Done {
    let mut signals = Signals::heard()?;
    let folder = runs::run_dir(app.home(), run).map_err(|e| view::problem(&e))?;
    if !folder.is_dir() {
        let missing = runs::RunsError::NotFound(run.to_owned());
        return Err(view::problem(&missing));
    }
    if matches!(runs::closed(&folder), Ok(Some(_))) {
        return Err(
            Problem::usage(format!("run {run} has ended: nothing to go on with"))
                .advise(format!("`haft runs show {run}` shows what it did")),
        );
    }
    let id = RunId::new(run);
    if let Some(done) = decided(at, app, &id).await? {
        return Ok(done);
    }
    let Some(recorded) = interrupted(app, &id)? else {
        return Err(nothing(app, run).await?);
    };
    view::check_workspace(app, &id, "resume").await?;
    let calls = runs::last_call(app.home(), run).map_err(|e| view::problem(&e))?;
    // Its own line may not have come to the disk.
    let own = recorded.chain.as_str().strip_prefix("call-");
    let calls = calls.max(
        own.and_then(|number| number.parse().ok())
            .unwrap_or_default(),
    );
    let session = app.reopen(call::door(at, "resume"), id, calls).await?;
    // Under its own id: the record's open call is the one that ends.
    let asked =
        ToolCall::new(TOOL_CHAIN, recorded.start.arguments).with_id(recorded.chain.as_str());
    let running = app.executor().recover(&session, asked);
    let outcome = call::cancellable(running, &session, &mut signals).await;
    let known = session.tools().entry(TOOL_CHAIN).is_some();
    app.close(&session).await;
    call::told(at, &outcome)?;
    Ok(Exit::of(&outcome, known))
}

/// Goes on with what a person decided in this run. None where nothing of the run was put to a person.
async fn decided(at: &Invocation, app: &App, run: &RunId) -> Result<Option<Exit>, Problem> {
    let filter = Filter {
        run: Some(run.clone()),
        ..Filter::default()
    };
    let mut asked = Vec::new();
    let keep = |entry: Entry| {
        if !entry.claimed {
            asked.push(entry);
        }
    };
    visit(app, filter, keep).await?;
    let of = |status| asked.iter().filter(move |entry| entry.status == status);
    let ready = asked.iter().find(|entry| {
        matches!(
            entry.status,
            RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
        )
    });
    if let Some(entry) = ready {
        view::check_workspace(app, run, "resume").await?;
        let door = call::door(at, "resume");
        return match app.follow(&entry.request.id, door).await? {
            Followed::Ran(outcome) => {
                call::told(at, &outcome)?;
                Ok(Some(Exit::of(&outcome, true)))
            }
            Followed::Elsewhere | Followed::Foreign => Err(Problem::usage(format!(
                "run {run} is already being resumed by another haft process"
            ))),
        };
    }
    if let Some(entry) = of(RequestStatus::Pending).next() {
        let id = &entry.request.id;
        at.screen.err(&format!(
            "run {run} waits for a person: `haft approvals show {id}`, then approve or deny it"
        ));
        return Ok(Some(Exit::Suspended));
    }
    // A chain is told that nobody answered when it goes on; a direct call has nothing to go on with.
    let direct = |entry: &&Entry| entry.request.parent.is_none();
    if let Some(entry) = of(RequestStatus::Expired).find(direct) {
        let id = &entry.request.id;
        return Err(Problem::new(
            ProblemKind::Denied,
            format!("approval {id} expired: nobody decided in time"),
        )
        .advise("make the call again to ask again"));
    }
    Ok(None)
}

/// The chain that was interrupted, if one was.
fn interrupted(app: &App, run: &RunId) -> Result<Option<Recorded>, Problem> {
    app.journal().interrupted(run, None).map_err(|error| {
        let busy = matches!(error, JournalError::Busy(_));
        let problem = if busy {
            Problem::usage
        } else {
            Problem::failed
        };
        let problem = problem(error.to_string());
        if busy {
            problem.advise("end that process, or wait for it")
        } else {
            problem
        }
    })
}

/// Why there is no chain: a call that nobody can resume may have run, or nothing was interrupted.
async fn nothing(app: &App, run: &str) -> Result<Problem, Problem> {
    let id = RunId::new(run);
    let holder = runs::holder(app.home(), run).map_err(|e| view::problem(&e))?;
    if holder != Holder::Free {
        let held = JournalError::Busy(id).to_string();
        return Ok(Problem::usage(held).advise("end that process, or wait for it"));
    }
    let report = view::verify(app, run).await?;
    let calls = report.in_doubt.iter();
    let calls: Vec<String> = calls
        .map(|call| format!("call {} of {}", call.call, call.tool))
        .collect();
    if !calls.is_empty() {
        let message = format!(
            "{} began and did not end: it may have run",
            calls.join(", ")
        );
        let advice = format!(
            "see what it changed (`haft runs show {run}` shows the call), then make it again if it did not run"
        );
        return Ok(Problem::failed(message).advise(advice));
    }
    Ok(
        Problem::usage(format!("run {run} has nothing to go on with"))
            .advise("only a chain whose haft was ended while it ran can be resumed"),
    )
}

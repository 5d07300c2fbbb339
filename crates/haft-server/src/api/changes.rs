//! The changes of a run over HTTP, and their undo. Both are for the operator only: diffs show files as they were before the run.

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use haft::error::ErrorKind;
use haft::result::Outcome;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::state::{Api, ApiState, failed};
use crate::caller::{ApiCaller, AuthMethod, Peer};
use crate::{query, reply};
use haft_app::app::App;
use haft_app::problem::{Problem, ProblemKind};
use haft_app::run::selection::RunSelection;
use haft_app::run::{ApprovalWait, RunOptions};
use haft_app::undo::{Undo, UndoApprover, UndoPlan, UndoRefusal};
use haft_app::view::changes::{ReportLimits, report};

/// Maximum number of steps and of conflicts per response.
const MAX_ENTRIES: usize = 1_000;

/// Returns what a run, or one call of it, changed, with diffs.
pub(crate) async fn list(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(run): Path<String>,
    uri: Uri,
) -> Response {
    if caller != ApiCaller::Operator {
        let why = "what runs changed is for the operator to read";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", why);
    }
    let of = match selection(&api, &run, query::text(&uri, "call")) {
        Ok(of) => of,
        Err(refused) => return *refused,
    };
    let app = api.app.clone();
    let look = move || report(&app, &of, &ReportLimits::http(app.redactor()));
    match tokio::task::spawn_blocking(look).await {
        Ok(Ok(report)) => reply::document(&report),
        Ok(Err(problem)) => failed(problem.what()),
        Err(_) => failed("reading the run's changes failed unexpectedly; the log says why"),
    }
}

/// The body of an undo request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoBody {
    /// One call, with its nested calls; `None` means the whole run.
    #[serde(default)]
    call: Option<String>,
    /// Only report what would be done.
    #[serde(default)]
    preview: bool,
    /// The plan that the user has seen: if the present plan differs, the undo is refused.
    #[serde(default)]
    plan: Option<String>,
}

/// Undoes what a run, or one call of it, changed, or previews the undo.
pub(crate) async fn undo(
    State(api): ApiState,
    Extension(way): Extension<AuthMethod>,
    Extension(peer): Extension<Peer>,
    Path(run): Path<String>,
    body: Bytes,
) -> Response {
    let wanted = match read(&body) {
        Ok(wanted) => wanted,
        Err(refused) => return *refused,
    };
    let of = match selection(&api, &run, wanted.call) {
        Ok(of) => of,
        Err(refused) => return *refused,
    };
    let (undo, plan) = match plan_undo(&api.app, &of).await {
        Ok(planned) => planned,
        Err(refused) => return *refused,
    };
    if wanted.preview {
        return reply::document(&plan_json(&of, &plan));
    }
    if wanted.plan.is_some_and(|seen| seen != plan.digest) {
        let why =
            "nothing was undone: what the undo would do is not what was shown; look at it again";
        return reply::error(StatusCode::CONFLICT, "conflict", why);
    }
    let person = UndoApprover {
        by: api.app.principal().subject.to_string(),
        from: format!("{} {}", way.as_str(), peer.0),
    };
    // A client that disconnects does not interrupt an undo that has begun.
    let task = tokio::spawn(perform_undo(api.app.clone(), undo, person));
    match task.await {
        Ok(Ok(outcome)) => reply::outcome(&outcome),
        Ok(Err(problem)) => failed(&problem.to_string()),
        Err(_) => failed("the undo failed unexpectedly: `haft runs list` shows its run"),
    }
}

fn read(body: &[u8]) -> Result<UndoBody, Box<Response>> {
    if body.is_empty() {
        return Ok(UndoBody::default());
    }
    serde_json::from_slice(body).map_err(|e| {
        let message = format!("the body is not {{\"call\", \"preview\", \"plan\"}}: {e}");
        let status = StatusCode::BAD_REQUEST;
        Box::new(reply::error(status, "invalid_arguments", &message))
    })
}

fn selection(api: &Api, run: &str, call: Option<String>) -> Result<RunSelection, Box<Response>> {
    let found = RunSelection::find(api.app.runs(), run, call);
    found.map_err(|error| Box::new(reply::not_found(&error.to_string())))
}

async fn plan_undo(app: &App, of: &RunSelection) -> Result<(Undo, UndoPlan), Box<Response>> {
    let undo = Undo::new(app, of).await;
    let undo = undo.map_err(|problem| Box::new(wrong_workspace(&problem)))?;
    let look = move || (undo.plan(), undo);
    match tokio::task::spawn_blocking(look).await {
        Ok((Ok(plan), undo)) => Ok((undo, plan)),
        Ok((Err(refusal), _)) => Err(Box::new(refused(&refusal))),
        Err(_) => Err(Box::new(failed(
            "planning the undo failed unexpectedly; the log says why",
        ))),
    }
}

/// Returns the error for a run of another workspace, or for one that cannot be looked up.
fn wrong_workspace(problem: &Problem) -> Response {
    if problem.kind() == ProblemKind::Usage {
        let advice = problem.advice().unwrap_or_default();
        reply::conflict(problem.what(), advice, &json!({}))
    } else {
        failed(problem.what())
    }
}

fn refused(refusal: &UndoRefusal) -> Response {
    let message = refusal.error.message();
    if refusal.error.kind() != ErrorKind::Conflict {
        return failed(message);
    }
    let each = refusal.conflicts.iter().take(MAX_ENTRIES);
    let each = each.map(|one| json!({"path": one.path.to_string_lossy(), "why": one.why}));
    let mut more = json!({"conflicts": each.collect::<Vec<_>>()});
    note_omitted(&mut more, "more_conflicts", refusal.conflicts.len());
    let is_lost = refusal.conflicts.iter().any(|one| one.lost);
    let advice = match (refusal.conflicts.is_empty(), is_lost) {
        (true, _) => "",
        (false, false) => "undo later changes first",
        (false, true) => {
            "`haft runs undo RUN --force` undoes all that can be restored, and names the rest"
        }
    };
    reply::conflict(message, advice, &more)
}

/// Returns the plan as JSON for the user who decides.
fn plan_json(of: &RunSelection, plan: &UndoPlan) -> Value {
    let first = |all: &[String]| all.iter().take(MAX_ENTRIES).cloned().collect::<Vec<_>>();
    let mut shown = json!({
        "run": of.run.as_str(), "plan": plan.digest,
        "steps": plan.steps.iter().take(MAX_ENTRIES).collect::<Vec<_>>(), "left_alone": first(&plan.left_alone),
    });
    if let Some(call) = &of.call {
        shown["call"] = json!(call);
    }
    let stays = plan.stays.iter().take(MAX_ENTRIES);
    let stays = stays.map(|one| json!({"path": one.path.to_string_lossy(), "why": one.why}));
    shown["stays"] = json!(stays.collect::<Vec<_>>());
    note_omitted(&mut shown, "more_stays", plan.stays.len());
    note_omitted(&mut shown, "more_steps", plan.steps.len());
    note_omitted(&mut shown, "more_left_alone", plan.left_alone.len());
    shown
}

/// Notes how many items of a list are left out of the response.
fn note_omitted(answer: &mut Value, name: &str, all: usize) {
    if all > MAX_ENTRIES {
        answer[name] = json!(all - MAX_ENTRIES);
    }
}

async fn perform_undo(app: App, undo: Undo, person: UndoApprover) -> Result<Outcome, Problem> {
    let options = RunOptions {
        class: ApiCaller::Operator.class(),
        progress: app.watched(),
        wait: ApprovalWait::Never,
        ..RunOptions::new("undo")
    };
    let undo = undo.start(&app, options).await?;
    let outcome = undo.perform(&app, person).await;
    undo.run.release().await;
    Ok(outcome)
}

//! Rules kept with approvals, over HTTP: the operator lists, edits and removes them.

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use haft_app::problem::{Problem, ProblemKind};
use haft_app::rules::RuleChange;
use http::StatusCode;
use serde::Deserialize;

use crate::api::state::{Api, ApiState, failed};
use crate::caller::ApiCaller;
use crate::reply;

/// A rule's new text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEdit {
    rule: String,
    /// Whether the rule covers every call that matches it, not only calls like the one that was approved.
    #[serde(default)]
    any_call: bool,
}

/// `GET /policy/rules`: lists the rules.
pub(crate) async fn list(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
) -> Response {
    if let Some(refused) = refuse(caller) {
        return refused;
    }
    match api.app.kept_rules() {
        Ok(rules) => reply::document(&rules),
        Err(problem) => failed(&problem.to_string()),
    }
}

/// `PUT /policy/rules/{id}`: edits a rule.
pub(crate) async fn edit(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    let new: RuleEdit = match serde_json::from_slice(&body) {
        Ok(new) => new,
        Err(e) => {
            let message = format!("the body is not {{\"rule\", \"any_call\"}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let change = RuleChange::Edit {
        rule: &new.rule,
        any_call: new.any_call,
    };
    take(&api, caller, &id, change)
}

/// `DELETE /policy/rules/{id}`: removes a rule.
pub(crate) async fn remove(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(id): Path<String>,
) -> Response {
    take(&api, caller, &id, RuleChange::Remove)
}

fn take(api: &Api, caller: ApiCaller, id: &str, change: RuleChange<'_>) -> Response {
    if let Some(refused) = refuse(caller) {
        return refused;
    }
    match api.app.change_rule(id, change) {
        Ok(old) => reply::document(&old),
        Err(problem) => refusal(&problem),
    }
}

/// Returns an error response unless the caller is the operator.
fn refuse(caller: ApiCaller) -> Option<Response> {
    let message = "this needs the operator's token";
    let refused = || reply::error(StatusCode::FORBIDDEN, "forbidden", message);
    (caller != ApiCaller::Operator).then(refused)
}

fn refusal(problem: &Problem) -> Response {
    match problem.kind() {
        ProblemKind::Usage if problem.what().starts_with("no rule") => {
            reply::not_found(problem.what())
        }
        ProblemKind::Usage => {
            reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", problem.what())
        }
        _ => failed(&problem.to_string()),
    }
}

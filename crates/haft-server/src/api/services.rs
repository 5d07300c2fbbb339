//! The running commands of a run over HTTP: what they serve, and ending them.

use axum::extract::{Extension, Path, State};
use axum::response::Response;
use haft_app::view::services;
use serde_json::json;

use crate::api::state::{ApiState, failed};
use crate::caller::ApiCaller;
use crate::reply;

/// `GET /runs/{run}/services`: lists them, oldest first.
pub(crate) async fn list(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(run): Path<String>,
) -> Response {
    if !api.may_read(caller, &run) {
        return reply::not_found("no such run of this token's");
    }
    reply::document(&services::of_run(&api.app, &run).await)
}

/// `GET /runs/{run}/exposed`: lists the ports that are open to this machine.
pub(crate) async fn exposed(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(run): Path<String>,
) -> Response {
    if !api.may_read(caller, &run) {
        return reply::not_found("no such run of this token's");
    }
    reply::document(&services::exposed(&api.app, &run).await)
}

/// `POST /runs/{run}/services/{name}/stop`: ends one of them.
pub(crate) async fn stop(
    State(api): ApiState,
    Path((run, name)): Path<(String, String)>,
) -> Response {
    match services::stop(&api.app, &run, Some(&name)).await {
        Ok(0) => reply::not_found("no such running command of this run"),
        Ok(count) => reply::document(&json!({"ended": count})),
        Err(problem) => failed(&problem.to_string()),
    }
}

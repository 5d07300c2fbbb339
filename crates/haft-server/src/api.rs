//! The HTTP API: tools, calls, runs, artifacts, memory and the policy as JSON.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::response::Response;
use axum::routing::{get, post, put};
use haft::call::ToolCall;
use haft_chain::TOOL_CHAIN;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::state::{Api, ApiState, calls_for, failed};
use crate::caller::ApiCaller;
use crate::reply;
use haft_app::view::{runs as run_views, skills};

pub(crate) mod approvals;
mod artifacts;
mod changes;
mod events;
mod hooks;
mod look;
mod memory;
pub(crate) mod metrics;
mod openapi;
mod own;
mod rules;
mod runs;
mod services;
pub(crate) mod state;
mod tool_list;
mod tool_page;
mod webhook;

/// Returns the routes below `/api/v1`.
pub(crate) fn routes(api: Arc<Api>) -> Router {
    Router::new()
        .route("/tools", get(look::list_tools))
        .route("/tools/{name}", get(look::show_tool))
        .route("/tools/{name}/ui", get(tool_page::about))
        .route("/tools/{name}/ui/page", get(tool_page::page))
        .route("/events", get(events::events))
        .route("/health", get(look::health))
        .route("/overview", get(look::overview))
        .route("/servers", get(look::servers))
        .route("/openapi.json", get(openapi::document))
        .route("/audit", get(look::audit))
        .route("/policy/explain", post(look::explain))
        .route("/skills/{name}", get(look::show_skill))
        .route("/runs/{run}/verify", get(runs::verify))
        .route("/calls", get(list_calls).post(call))
        .route("/chains", post(chain))
        .route("/hooks/{agent}", post(hooks::answer))
        .route("/runs", get(runs::list))
        .route("/runs/{run}", get(runs::show))
        .route("/runs/{run}/about", get(runs::about))
        .route("/runs/{run}/services", get(services::list))
        .route("/runs/{run}/exposed", get(services::exposed))
        .route("/runs/{run}/services/{name}/stop", post(services::stop))
        .route("/runs/{run}/changes", get(changes::list))
        .route("/runs/{run}/undo", post(changes::undo))
        .route("/artifacts", get(artifacts::list))
        .route("/artifacts/{reference}", get(artifacts::read))
        .route("/skills", get(list_skills))
        .route("/approvals", get(approvals::list))
        .route("/approvals/batch", post(approvals::batch))
        .route("/approvals/{id}", get(approvals::show))
        .route("/approvals/{id}/rule", get(approvals::try_rule))
        .route("/approvals/{id}/file", get(approvals::file))
        .route("/approvals/{id}/{decision}", post(approvals::decide))
        .route("/webhook/{id}", post(webhook::take))
        .route("/memory", get(memory::list).post(memory::add))
        .route("/memory/{id}/edit", post(memory::edit))
        .route("/memory/{id}/remove", post(memory::remove))
        .route("/memory/{id}/{decision}", post(memory::decide))
        .route("/policy", get(look::policy_in_force))
        .route("/policy/rules", get(rules::list))
        .route("/policy/rules/{id}", put(rules::edit).delete(rules::remove))
        // The gate has already read the body, within its limits.
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
}

/// The body of a call request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallBody<'a> {
    tool: String,
    /// The raw bytes: the executor validates them.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

async fn call(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    body: Bytes,
) -> Response {
    let call_body: CallBody<'_> = match serde_json::from_slice(&body) {
        Ok(call_body) => call_body,
        Err(e) => {
            let message = format!("the body is not {{\"tool\", \"arguments\"}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let session = match api.session(caller).await {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let arguments = call_body.arguments.map_or("{}", RawValue::get);
    let call = ToolCall::new(call_body.tool, arguments);
    reply::outcome(&api.app.executor().execute(&session, call).await)
}

/// Runs a script: the body is passed on as the arguments of the tool that runs scripts.
async fn chain(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    body: Bytes,
) -> Response {
    let arguments = match serde_json::from_slice::<&RawValue>(&body) {
        Ok(arguments) => arguments.get(),
        Err(e) => {
            let message = format!("the body is not {{\"code\", \"timeout_s\"}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let session = match api.session(caller).await {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let call = ToolCall::new(TOOL_CHAIN, arguments);
    reply::outcome(&api.app.executor().execute(&session, call).await)
}

/// Lists the calls of the caller's newest run here.
async fn list_calls(State(api): ApiState, Extension(caller): Extension<ApiCaller>) -> Response {
    match api.own.of(caller).first() {
        Some(run) => match run_views::calls(&api.app, run.as_str()).await {
            Ok(calls) => reply::document(&calls_for(caller, calls)),
            Err(problem) => failed(&problem.to_string()),
        },
        None => reply::document::<[()]>(&[]),
    }
}

async fn list_skills(State(api): ApiState) -> Response {
    let app = api.app.clone();
    let found = tokio::task::spawn_blocking(move || app.skills().current()).await;
    match found {
        Ok(found) => reply::document(&skills::list(&found)),
        Err(_) => failed("looking for skills failed unexpectedly; the log says why"),
    }
}

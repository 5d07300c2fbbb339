//! Events of coding agents' hooks: answers what `haft hook AGENT` received, from a process that is already running.

use std::path::PathBuf;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use haft_app::environment_part::EnvironmentPart;
use haft_app::hook::{Agent, HookAnswer, HookInvocation};
use http::{StatusCode, Uri};
use serde_json::json;

use crate::api::state::ApiState;
use crate::{query, reply};

/// Answers a hook event: what the hook's process prints, and its exit code.
pub(super) async fn answer(
    State(api): ApiState,
    Path(agent): Path<String>,
    uri: Uri,
    body: Bytes,
) -> Response {
    let Some(hooks) = &api.hooks else {
        let what = "this server does not answer hooks; `haft console` starts one that does";
        return reply::error(StatusCode::CONFLICT, "unavailable", what);
    };
    let Some(agent) = Agent::from_name(&agent) else {
        let what = format!("unknown agent `{agent}`");
        return reply::error(StatusCode::NOT_FOUND, "not_found", &what);
    };
    let folder = query::text(&uri, "folder").map(PathBuf::from);
    let process = query::text(&uri, "process");
    let environment = query::text(&uri, "environment").map(|text| EnvironmentPart::parse(&text));
    let Ok(environment) = environment.map(|part| part.ok_or(())).transpose() else {
        let what = "`environment` is not an object of digests";
        return reply::error(StatusCode::BAD_REQUEST, "invalid", what);
    };
    let answer = hooks.answer(HookInvocation {
        agent,
        bytes: &body,
        folder: folder.as_deref(),
        process: process.as_deref(),
        headless: query::text(&uri, "headless").as_deref() == Some("true"),
        environment: environment.as_ref(),
    });
    match answer.await {
        HookAnswer::Reply(answer) => reply::document(&answer),
        HookAnswer::NeedsEnvironment(variables) => reply::document_with(
            StatusCode::PRECONDITION_REQUIRED,
            &json!({ "variables": variables }),
        ),
        HookAnswer::OtherEnvironment => {
            let what = "the hook's process gives commands another environment than this server, so it judges by itself";
            reply::error(StatusCode::MISDIRECTED_REQUEST, "unavailable", what)
        }
    }
}

//! The HTTP API: tools, calls, runs, artifacts, memory and the policy as JSON.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use haft::artifact::{ArtifactError, ArtifactRef, Owner};
use haft::call::{RunId, ToolCall};
use haft::session::Session;
use haft_chain::TOOL_CHAIN;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{OnceCell, watch};

use crate::assemble::{Door, House, Waits};
use crate::commands::{runs, skills, timeline};
use crate::invocation::Invocation;
use crate::serve::gate::Caller;
use crate::serve::reply;

mod approvals;
mod events;
mod look;
mod memory;
mod openapi;
mod tool_page;
mod webhook;

/// The largest body of a call; the executor's own limits are the ones that decide.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// What the routes share: all calls of the API are one run, opened with the first.
#[derive(Debug)]
pub(crate) struct Api {
    house: House,
    at: Invocation,
    stopped: watch::Receiver<bool>,
    session: OnceCell<Session>,
}

impl Api {
    /// The API of this house.
    pub(crate) fn new(house: House, at: Invocation, stopped: watch::Receiver<bool>) -> Arc<Self> {
        Arc::new(Self {
            house,
            at,
            stopped,
            session: OnceCell::new(),
        })
    }

    /// The routes below `/api/v1`.
    pub(crate) fn routes(self: Arc<Self>) -> Router {
        Router::new()
            .route("/tools", get(look::list_tools))
            .route("/tools/{name}", get(look::show_tool))
            .route("/tools/{name}/ui", get(tool_page::about))
            .route("/tools/{name}/ui/page", get(tool_page::page))
            .route("/events", get(events::events))
            .route("/health", get(look::health))
            .route("/openapi.json", get(openapi::document))
            .route("/audit", get(look::audit))
            .route("/policy/explain", post(look::explain))
            .route("/skills/{name}", get(look::show_skill))
            .route("/runs/{run}/verify", get(look::verify))
            .route("/calls", get(list_calls).post(call))
            .route("/chains", post(chain))
            .route("/runs", get(list_runs))
            .route("/runs/{run}", get(show_run))
            .route("/artifacts", get(list_artifacts))
            .route("/artifacts/{reference}", get(read_artifact))
            .route("/skills", get(list_skills))
            .route("/approvals", get(approvals::list))
            .route("/approvals/batch", post(approvals::batch))
            .route("/approvals/{id}", get(approvals::show))
            .route("/approvals/{id}/rule", get(approvals::try_rule))
            .route("/approvals/{id}/{decision}", post(approvals::decide))
            .route("/webhook/{id}", post(webhook::take))
            .route("/memory", get(memory::list))
            .route("/memory/{id}/{decision}", post(memory::decide))
            .route("/policy", get(look::policy_in_force))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(self)
    }

    /// Ends the API's run, if there was a call.
    pub(crate) async fn close(&self) {
        if let Some(session) = self.session.get() {
            self.house.close(session).await;
        }
    }

    async fn session(&self) -> Result<&Session, Response> {
        let door = Door {
            name: "http api",
            principal: None,
            client: None,
            progress: self.house.watched(),
            waits: Waits::Limit,
        };
        let open = || self.house.open(door);
        self.session.get_or_try_init(open).await.map_err(|problem| {
            reply::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                problem.what(),
            )
        })
    }

    /// The API's own run, as far as it has begun.
    fn own_run(&self) -> Option<&RunId> {
        self.session.get().map(Session::run)
    }

    /// Whether this caller may read that run: the operator every one, others their own.
    fn may_read(&self, caller: Caller, run: &str) -> bool {
        caller == Caller::Operator || self.own_run().is_some_and(|own| own.as_str() == run)
    }
}

type Shared = State<Arc<Api>>;

/// A call as it is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked<'a> {
    tool: String,
    /// The bytes as they came: the executor judges them.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

async fn call(State(api): Shared, body: Bytes) -> Response {
    let asked: Asked<'_> = match serde_json::from_slice(&body) {
        Ok(asked) => asked,
        Err(e) => {
            let message = format!("the body is not {{\"tool\", \"arguments\"}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let session = match api.session().await {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let arguments = asked.arguments.map_or("{}", RawValue::get);
    let call = ToolCall::new(asked.tool, arguments);
    reply::document(&api.house.call(session, call).await)
}

/// A script, as the arguments of the tool that runs it.
async fn chain(State(api): Shared, body: Bytes) -> Response {
    let arguments = match serde_json::from_slice::<&RawValue>(&body) {
        Ok(arguments) => arguments.get(),
        Err(e) => {
            let message = format!("the body is not {{\"code\", \"timeout_s\"}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let session = match api.session().await {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let call = ToolCall::new(TOOL_CHAIN, arguments);
    reply::document(&api.house.call(session, call).await)
}

async fn list_calls(State(api): Shared) -> Response {
    match api.own_run() {
        Some(run) => match runs::calls(&api.house, run.as_str()).await {
            Ok(calls) => reply::document(&calls),
            Err(problem) => failed(&problem.to_string()),
        },
        None => reply::document::<[()]>(&[]),
    }
}

async fn list_runs(State(api): Shared, Extension(caller): Extension<Caller>) -> Response {
    match runs::listed(&api.house).await {
        Ok(mut all) => {
            all.retain(|entry| api.may_read(caller, entry.run()));
            reply::document(&all)
        }
        Err(problem) => failed(&problem.to_string()),
    }
}

async fn show_run(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Response {
    if !api.may_read(caller, &run) {
        return reply::not_found("no such run of this token's");
    }
    match timeline::calls(&api.house, &run).await {
        Ok(calls) => reply::document(&calls),
        Err(_) => reply::not_found("no such run"),
    }
}

async fn list_artifacts(State(api): Shared, Extension(caller): Extension<Caller>) -> Response {
    let own = api.own_run().cloned();
    if caller == Caller::Client && own.is_none() {
        return reply::document::<[()]>(&[]);
    }
    let of = own.filter(|_| caller == Caller::Client);
    let house = api.house.clone();
    let listed = move || house.artifacts().list(house.principal(), of.as_ref());
    match tokio::task::spawn_blocking(listed).await {
        Ok(Ok(all)) => reply::document(&all),
        Ok(Err(e)) => failed(&e.to_string()),
        Err(_) => failed("the artifact store broke off"),
    }
}

async fn read_artifact(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    uri: Uri,
) -> Response {
    let run = asked_run(&uri).or_else(|| Some(api.own_run()?.as_str().to_owned()));
    let (Some(reference), Some(run)) = (ArtifactRef::parse(&text), run) else {
        return reply::not_found("no such artifact");
    };
    if !api.may_read(caller, &run) {
        return reply::not_found("no such artifact");
    }
    let house = api.house.clone();
    let owner = Owner {
        principal: house.principal().clone(),
        run: RunId::new(run),
    };
    let read = move || {
        let info = house.artifacts().info(&owner, &reference)?;
        let bytes = house.artifacts().read(&owner, &reference, 0..u64::MAX)?;
        Ok::<_, ArtifactError>((info, bytes))
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok((_, bytes))) => reply::typed(StatusCode::OK, "application/octet-stream", bytes),
        Ok(Err(ArtifactError::NotFound(_))) => reply::not_found("no such artifact"),
        Ok(Err(e)) => failed(&e.to_string()),
        Err(_) => failed("the artifact store broke off"),
    }
}

/// `?run=RUN`: whose artifact; ids need no escapes.
fn asked_run(uri: &Uri) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let mut runs = pairs.filter_map(|pair| pair.strip_prefix("run="));
    runs.next().map(str::to_owned)
}

async fn list_skills(State(api): Shared) -> Response {
    let house = api.house.clone();
    let found = tokio::task::spawn_blocking(move || house.skills().current()).await;
    match found {
        Ok(found) => reply::document(&skills::listed(&found)),
        Err(_) => failed("the look for skills broke off"),
    }
}

fn failed(message: &str) -> Response {
    reply::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
}

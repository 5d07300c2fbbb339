//! `Api`: state shared by the API's routes: the application, the API's own runs, and who may read which run.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use haft::approval::inbox::StoredApproval;
use haft::call::RunId;
use haft::session::Session;
use haft_app::app::App;
use haft_app::hook::Hooks;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::watch;

use crate::api::own::OwnRuns;
use crate::api::tool_list::ToolListBytes;
use crate::bounds::ApiLimits;
use crate::caller::ApiCaller;
use crate::reply;
use crate::tabs::Tabs;

/// State shared by the routes.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) app: App,
    /// Becomes true when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
    /// The API's own runs.
    pub(crate) own: OwnRuns,
    /// Limits on what callers may make the server hold.
    pub(crate) bounds: Arc<ApiLimits>,
    /// The console's open pages.
    pub(crate) tabs: Arc<Tabs>,
    /// The list of all tools, as it is sent.
    pub(crate) tool_list: ToolListBytes,
    /// Answers agents' hooks, in a server that runs for the user.
    pub(crate) hooks: Option<Hooks>,
}

impl Api {
    /// Creates the API of this app, whose callers stay within these limits.
    pub(crate) fn new(
        app: App,
        stopped: watch::Receiver<bool>,
        bounds: Arc<ApiLimits>,
        tabs: Arc<Tabs>,
        hooks: Option<Hooks>,
    ) -> Arc<Self> {
        Arc::new(Self {
            app,
            stopped,
            own: OwnRuns::default(),
            bounds,
            tabs,
            tool_list: ToolListBytes::default(),
            hooks,
        })
    }

    /// Suspends or finishes the API's runs, if there are any.
    pub(crate) async fn release(&self) {
        self.own.release().await;
        if let Some(hooks) = &self.hooks {
            hooks.shut_down().await;
        }
    }

    /// Returns the session for this caller's calls.
    pub(crate) async fn session(&self, caller: ApiCaller) -> Result<Session, Response> {
        if !self.app.site().has_folder() {
            let what = "this server has no workspace: make the call through a `haft serve` in the folder, or with `haft call`";
            return Err(reply::error(StatusCode::CONFLICT, "unavailable", what));
        }
        let session = self.own.session(&self.app, caller).await;
        session.map_err(|problem| {
            reply::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                problem.what(),
            )
        })
    }

    /// Returns whether this caller may read that run: the operator may read any, a client its own.
    pub(crate) fn may_read(&self, caller: ApiCaller, run: &str) -> bool {
        caller == ApiCaller::Operator || self.own.has(caller, run)
    }

    /// Returns the runs in a caller's lists: a client's own, or `None` (all) for the operator.
    pub(crate) fn readable(&self, caller: ApiCaller) -> Option<Vec<RunId>> {
        (caller == ApiCaller::Client).then(|| self.own.of(caller))
    }
}

/// Returns a request as this caller may see it: what a reviewer says of a program's request is for people.
pub(crate) fn request_for(caller: ApiCaller, mut entry: StoredApproval) -> StoredApproval {
    if caller == ApiCaller::Client {
        entry.request.review = None;
    }
    entry
}

/// Returns the calls of a run as this caller may see them, as [`request_for`] does.
pub(crate) fn calls_for(caller: ApiCaller, mut calls: Vec<Value>) -> Vec<Value> {
    if caller == ApiCaller::Client {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            call.remove("review");
        }
    }
    calls
}

/// The extractor for the shared state.
pub(crate) type ApiState = State<Arc<Api>>;

/// Returns the response for a failure on this machine.
pub(crate) fn failed(message: &str) -> Response {
    reply::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
}

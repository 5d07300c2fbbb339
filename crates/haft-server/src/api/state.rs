//! What the routes of the API share: the application, the API's own runs, who may read which run.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use haft::call::RunId;
use haft::session::Session;
use haft_app::app::App;
use haft_app::hook::Hooks;
use http::StatusCode;
use tokio::sync::watch;

use crate::api::own::OwnRuns;
use crate::bounds::Bounds;
use crate::caller::Caller;
use crate::reply;
use crate::tabs::Tabs;

/// What the routes share.
#[derive(Debug)]
pub(crate) struct Api {
    /// The application.
    pub(crate) app: App,
    /// Turns true when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
    /// The runs of the API itself.
    pub(crate) own: OwnRuns,
    /// What callers may make the server hold.
    pub(crate) bounds: Arc<Bounds>,
    /// The console's pages.
    pub(crate) tabs: Arc<Tabs>,
    /// Answers the hooks of agents, in a server of the user's own.
    pub(crate) hooks: Option<Hooks>,
}

impl Api {
    /// The API of this app, whose callers keep within these bounds.
    pub(crate) fn new(
        app: App,
        stopped: watch::Receiver<bool>,
        bounds: Arc<Bounds>,
        tabs: Arc<Tabs>,
        hooks: Option<Hooks>,
    ) -> Arc<Self> {
        Arc::new(Self {
            app,
            stopped,
            own: OwnRuns::default(),
            bounds,
            tabs,
            hooks,
        })
    }

    /// Suspends or finishes the API's runs, if there were calls.
    pub(crate) async fn release(&self) {
        self.own.release().await;
        if let Some(hooks) = &self.hooks {
            hooks.shut().await;
        }
    }

    /// The session for calls of this caller.
    pub(crate) async fn session(&self, caller: Caller) -> Result<Session, Response> {
        if !self.app.site().has_folder() {
            let what = "this server stands in no folder: make the call at a `haft serve` of the folder, or with `haft call`";
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

    /// Whether this caller may read that run: the operator every one, others their own.
    pub(crate) fn may_read(&self, caller: Caller, run: &str) -> bool {
        caller == Caller::Operator || self.own.has(caller, run)
    }

    /// The runs that a caller's lists are about: its own for a client, all (none named) for the operator.
    pub(crate) fn readable(&self, caller: Caller) -> Option<Vec<RunId>> {
        (caller == Caller::Client).then(|| self.own.of(caller))
    }
}

/// How a route gets what it shares with the others.
pub(crate) type Shared = State<Arc<Api>>;

/// The answer where this machine could not do what was asked for.
pub(crate) fn failed(message: &str) -> Response {
    reply::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
}

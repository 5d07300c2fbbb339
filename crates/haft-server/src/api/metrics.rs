//! `GET /metrics`: what happened, counted, for Prometheus.

use axum::extract::State;
use axum::response::Response;
use haft_app::view::metrics;
use http::StatusCode;

use crate::api::state::{Shared, failed};
use crate::reply;

/// The counts of this process since it began; any token of this server reads them: they name tools and nothing of any call.
pub(crate) async fn show(State(api): Shared) -> Response {
    match metrics::text(&api.app).await {
        Ok(text) => reply::typed(StatusCode::OK, metrics::CONTENT_TYPE, text.into_bytes()),
        Err(problem) => failed(&problem.to_string()),
    }
}

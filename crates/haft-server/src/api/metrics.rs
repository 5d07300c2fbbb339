//! `GET /metrics`: counters for Prometheus.

use axum::extract::State;
use axum::response::Response;
use haft_app::view::metrics;
use http::StatusCode;

use crate::api::state::{ApiState, failed};
use crate::reply;

/// Returns this process's counters since it started. Any token of this server may read them: they name tools but reveal nothing
/// about a call.
pub(crate) async fn show(State(api): ApiState) -> Response {
    match metrics::text(&api.app).await {
        Ok(text) => reply::typed(StatusCode::OK, metrics::CONTENT_TYPE, text.into_bytes()),
        Err(problem) => failed(&problem.to_string()),
    }
}

//! JSON responses of the HTTP API: a document, or an error with kind, message and advice as in outcomes.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use haft::error::bounded;
use haft::result::{Outcome, RenderedOutcome};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

/// Returns a document with status 200.
pub(crate) fn document<T: Serialize + ?Sized>(value: &T) -> Response {
    document_with(StatusCode::OK, value)
}

/// Returns a document with this status.
pub(crate) fn document_with<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => typed(status, "application/json", bytes),
        Err(_) => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            "the answer is not JSON",
        ),
    }
}

/// Returns a document that is already written.
pub(crate) fn written(document: &Bytes) -> Response {
    typed(StatusCode::OK, "application/json", document.clone())
}

/// Returns an outcome (contract §3), with what a reader gets of it in marked parts.
pub(crate) fn outcome(outcome: &Outcome) -> Response {
    #[derive(Serialize)]
    struct OutcomeReply<'a> {
        #[serde(flatten)]
        outcome: &'a Outcome,
        rendered: RenderedOutcome<'a>,
    }
    let rendered = outcome.render();
    document(&OutcomeReply { outcome, rendered })
}

/// Returns an error. Its message may repeat input, so its length is limited.
pub(crate) fn error(status: StatusCode, kind: &str, message: &str) -> Response {
    let message = bounded(message.to_owned());
    let body = json!({"error": {"kind": kind, "message": message}});
    typed(status, "application/json", body.to_string().into_bytes())
}

/// Returns a conflict error; `more` holds further members of the error object.
pub(crate) fn conflict(message: &str, advice: &str, more: &Value) -> Response {
    let mut error = json!({"kind": "conflict", "message": bounded(message.to_owned())});
    if !advice.is_empty() {
        error["advice"] = json!(advice);
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        error[name] = value.clone();
    }
    let body = json!({ "error": error }).to_string();
    typed(StatusCode::CONFLICT, "application/json", body.into_bytes())
}

/// Kind and message of an error, as in outcomes.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorBody {
    kind: &'static str,
    message: String,
}

impl ErrorBody {
    /// Creates a failure of this kind.
    pub(crate) fn new(kind: &'static str, message: String) -> Self {
        Self { kind, message }
    }
}

/// Returns a failure as a response.
pub(crate) fn problem(status: StatusCode, failure: &ErrorBody) -> Response {
    error(status, failure.kind, &failure.message)
}

/// Returns the error for an unknown route, run, tool or artifact.
pub(crate) fn not_found(message: &str) -> Response {
    error(StatusCode::NOT_FOUND, "not_found", message)
}

/// Returns bytes with a media type that browsers neither cache nor sniff.
pub(crate) fn typed(status: StatusCode, media_type: &str, bytes: impl Into<Bytes>) -> Response {
    let mut response = (status, axum::body::Body::from(bytes.into())).into_response();
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_str(media_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

//! The memory over HTTP: listed, searched and decided about; the operator adds, edits and removes. The call token reads what its
//! own run wrote.

use std::borrow::Cow;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use haft::memory::{
    CandidateDecision, MAX_LISTED, MemoryAccess, MemoryError, MemoryFilter, MemoryId, MemoryQuery,
    MemoryRecord, MemoryScope, MemoryState as Kept,
};
use haft_app::remember::{self, MemoryText};
use http::{StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::api::state::{ApiState, failed};
use crate::caller::ApiCaller;
use crate::reply;

/// Maximum number of memories in a search result.
const MAX_FOUND: u32 = 50;
/// The name recorded for decisions and changes made here.
const OPERATOR: &str = "operator";

/// `GET /memory`: lists accepted memories; `?state=candidate` lists candidates, for the operator those of the whole tenant; `?q=WORDS` searches, best match first.
pub(crate) async fn list(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    uri: Uri,
) -> Response {
    let (words, state) = (query_value(&uri, "q"), query_value(&uri, "state"));
    let state = match state.as_deref() {
        None | Some("accepted") => Kept::Accepted,
        Some("candidate") => Kept::Candidate,
        Some("rejected") => Kept::Rejected,
        Some(_) => {
            let message = "state is accepted, candidate or rejected";
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
        }
    };
    let run = match api.readable(caller) {
        None => None,
        // A client sees only what its newest run wrote; its earlier runs are for the operator.
        Some(own) => match own.into_iter().next() {
            Some(run) => Some(run),
            None => return reply::document::<[()]>(&[]),
        },
    };
    let (store, asker) = (api.app.memory(), MemoryAccess::now(api.app.principal()));
    if let Some(text) = words {
        let query = MemoryQuery {
            text,
            shelves: Vec::new(),
            run,
            limit: MAX_FOUND,
        };
        return match store.search(&asker, &query).await {
            Ok(hits) => reply::document(&hits),
            Err(error) => refused(&error),
        };
    }
    if caller == ApiCaller::Operator && state == Kept::Candidate {
        return match store.candidates(&asker).await {
            Ok(candidates) => reply::document(&candidates),
            Err(error) => refused(&error),
        };
    }
    let filter = MemoryFilter {
        state: Some(state),
        run,
        limit: MAX_LISTED,
        ..MemoryFilter::default()
    };
    match store.list(&asker, &filter).await {
        Ok(records) => reply::document(&records),
        Err(error) => refused(&error),
    }
}

/// `POST /memory/{id}/accept` and `/memory/{id}/reject`: the gate admits only the operator's token here.
pub(crate) async fn decide(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path((id, word)): Path<(String, String)>,
) -> Response {
    if caller != ApiCaller::Operator {
        let message = "this needs the operator's token";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", message);
    }
    let accept = match word.as_str() {
        "accept" => true,
        "reject" => false,
        _ => return reply::not_found("no such route"),
    };
    let decision = CandidateDecision {
        accept,
        by: OPERATOR.to_owned(),
    };
    answer(remember::decide(&api.app, &MemoryId::new(id), &decision).await)
}

/// A memory as a user submits it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryBody {
    content: Option<String>,
    tags: Option<Vec<String>>,
    /// `user` or `project`; only for a new memory.
    scope: Option<String>,
    /// The revision that the user saw; `None` means the present one.
    revision: Option<u64>,
}

/// `POST /memory`: adds a memory, which is accepted at once.
pub(crate) async fn add(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    body: Bytes,
) -> Response {
    let written = match written(caller, &body) {
        Ok(written) => written,
        Err(refusal) => return *refusal,
    };
    let scope = written.scope.as_deref().unwrap_or("user");
    let Some(scope) = MemoryScope::parse(scope) else {
        let message = format!("unknown scope `{scope}`: expected user or project");
        return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
    };
    let text = MemoryText {
        content: written.content,
        tags: written.tags,
    };
    answer(remember::add(&api.app, scope, text, OPERATOR).await)
}

/// `POST /memory/{id}/edit`: changes a memory's text or tags.
pub(crate) async fn edit(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    let written = match written(caller, &body) {
        Ok(written) => written,
        Err(refusal) => return *refusal,
    };
    let text = MemoryText {
        content: written.content,
        tags: written.tags,
    };
    let id = MemoryId::new(id);
    answer(remember::edit(&api.app, &id, written.revision, text, OPERATOR).await)
}

/// `POST /memory/{id}/remove`: removes a memory and its history.
pub(crate) async fn remove(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    let body = if body.is_empty() {
        Bytes::from_static(b"{}")
    } else {
        body
    };
    let written = match written(caller, &body) {
        Ok(written) => written,
        Err(refusal) => return *refusal,
    };
    answer(remember::remove(&api.app, &MemoryId::new(id), written.revision).await)
}

/// Parses what the operator sent; returns an error response for any other caller or body.
fn written(caller: ApiCaller, body: &[u8]) -> Result<MemoryBody, Box<Response>> {
    if caller != ApiCaller::Operator {
        let message = "this needs the operator's token";
        let refusal = reply::error(StatusCode::FORBIDDEN, "forbidden", message);
        return Err(Box::new(refusal));
    }
    serde_json::from_slice(body).map_err(|e| {
        let message =
            format!("the body is not {{\"content\", \"tags\", \"scope\", \"revision\"}}: {e}");
        let refusal = reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        Box::new(refusal)
    })
}

fn answer(done: Result<MemoryRecord, MemoryError>) -> Response {
    match done {
        Ok(record) => reply::document(&record),
        Err(error) => refused(&error),
    }
}

fn refused(error: &MemoryError) -> Response {
    let message = error.to_string();
    match error {
        MemoryError::NotFound(_) => reply::not_found(&message),
        MemoryError::Decided(..) | MemoryError::Changed(_) | MemoryError::Exists(_) => {
            reply::error(StatusCode::CONFLICT, "conflict", &message)
        }
        MemoryError::NoWords | MemoryError::Invalid(_) => {
            reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message)
        }
        MemoryError::Full(..) | MemoryError::Store(_) => failed(&message),
    }
}

/// Returns a query parameter, decoded.
fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let spaced = value.replace('+', " ");
    let decoded: Cow<'_, str> = percent_decode_str(&spaced).decode_utf8_lossy();
    Some(decoded.into_owned())
}

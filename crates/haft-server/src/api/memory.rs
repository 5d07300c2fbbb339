//! The memory over HTTP: listed, searched, decided about. The call token reads what its own run wrote.

use std::borrow::Cow;

use axum::extract::{Extension, Path, State};
use axum::response::Response;
use haft::memory::{
    Asker, Decision, Filter, MAX_LISTED, MemoryError, MemoryId, Query, State as Kept,
};
use http::{StatusCode, Uri};
use percent_encoding::percent_decode_str;

use crate::api::state::{Shared, failed};
use crate::caller::Caller;
use crate::reply;

/// Most memories of a search.
const FOUND: u32 = 50;

/// `GET /memory`: accepted ones; `?state=candidate` what waits, `?q=WORDS` what fits, the best first.
pub(crate) async fn list(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
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
        // A client's newest run: what it wrote in those before is for the operator to see.
        Some(own) => match own.into_iter().next() {
            Some(run) => Some(run),
            None => return reply::document::<[()]>(&[]),
        },
    };
    let (store, asker) = (api.app.memory(), Asker::now(api.app.principal()));
    if let Some(text) = words {
        let query = Query {
            text,
            shelves: Vec::new(),
            run,
            limit: FOUND,
        };
        return match store.search(&asker, &query).await {
            Ok(hits) => reply::document(&hits),
            Err(error) => refused(&error),
        };
    }
    let filter = Filter {
        state: Some(state),
        run,
        limit: MAX_LISTED,
        ..Filter::default()
    };
    match store.list(&asker, &filter).await {
        Ok(records) => reply::document(&records),
        Err(error) => refused(&error),
    }
}

/// `POST /memory/{id}/accept` and `/memory/{id}/reject`: the gate lets only the operator's token here.
pub(crate) async fn decide(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    Path((id, word)): Path<(String, String)>,
) -> Response {
    if caller != Caller::Operator {
        let message = "this needs the operator's token";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", message);
    }
    let accept = match word.as_str() {
        "accept" => true,
        "reject" => false,
        _ => return reply::not_found("no such route"),
    };
    let decision = Decision {
        accept,
        by: "operator".to_owned(),
    };
    let asker = Asker::now(api.app.principal());
    let memory = api.app.memory();
    match memory.decide(&asker, &MemoryId::new(id), &decision).await {
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

/// A member of the query string, decoded.
fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let spaced = value.replace('+', " ");
    let decoded: Cow<'_, str> = percent_decode_str(&spaced).decode_utf8_lossy();
    Some(decoded.into_owned())
}

//! Runs over HTTP: listed in pages with filters, one as listed, its calls, and the verification of its record.

use std::path::Path;

use axum::extract::{Extension, Path as InPath, State};
use axum::response::Response;
use haft::audit::index::RunFilter;
use haft::audit::runs::run_dir;
use haft::call::RunId;
use haft_app::run::verify;
use haft_app::view::{runs, timeline};
use http::{StatusCode, Uri};
use jiff::Timestamp;

use crate::api::state::{ApiState, calls_for, failed};
use crate::caller::ApiCaller;
use crate::{query, reply};

/// Default and maximum number of runs per page.
const PAGE_SIZES: (u32, u32) = (100, 1_000);

/// `GET /runs`: lists runs, newest first. `tool`, `status` (of a call, or `failed`), `state`, `workspace`, `since` and `until`
/// (RFC 3339) filter; `after` is the last run of the previous page, `limit` the page size.
pub(crate) async fn list(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    uri: Uri,
) -> Response {
    if let Some(own) = api.readable(caller) {
        return match runs::list_of(&api.app, Some(own)).await {
            Ok(all) => reply::document(&all),
            Err(problem) => failed(&problem.to_string()),
        };
    }
    let filter = match filter(&uri) {
        Ok(filter) => filter,
        Err(message) => {
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    match runs::page(&api.app, filter).await {
        Ok(page) => reply::document(&page),
        Err(problem) => failed(&problem.to_string()),
    }
}

/// Parses the filter from the query, or says what is wrong with it.
fn filter(uri: &Uri) -> Result<RunFilter, String> {
    let text = |name: &str| query::text(uri, name).filter(|text| !text.is_empty());
    let mut filter = RunFilter {
        workspace: text("workspace"),
        tool: text("tool"),
        after: text("after").map(run_id).transpose()?,
        since: time(text("since"))?,
        until: time(text("until"))?,
        ..RunFilter::newest(PAGE_SIZES.0)
    };
    if let Some(word) = text("status") {
        runs::words::with_status(&mut filter, &word)?;
    }
    filter.state = text("state")
        .map(|word| runs::words::state(&word))
        .transpose()?;
    if let Some(limit) = text("limit") {
        let number = limit.parse::<u32>().ok().filter(|limit| *limit > 0);
        let number = number.ok_or_else(|| format!("invalid limit `{limit}`: expected 1 to 1000"));
        filter.limit = number?.min(PAGE_SIZES.1);
    }
    Ok(filter)
}

/// Returns a run's id, unless no run can have it.
fn run_id(text: String) -> Result<RunId, String> {
    match run_dir(Path::new(""), &text) {
        Ok(_) => Ok(RunId::new(text)),
        Err(_) => Err(format!(
            "invalid after {text:?}: expected the id of a run, the last of the previous page"
        )),
    }
}

fn time(text: Option<String>) -> Result<Option<i128>, String> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<Timestamp>() {
        Ok(time) => Ok(Some(time.as_nanosecond())),
        Err(_) => Err(format!(
            "invalid time `{text}`: expected RFC 3339, for example 2026-11-24T09:00:00Z"
        )),
    }
}

/// `GET /runs/{run}`: returns its calls on a timeline.
pub(crate) async fn show(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    InPath(run): InPath<String>,
) -> Response {
    if !api.may_read(caller, &run) {
        return reply::not_found("no such run of this token's");
    }
    match timeline::calls(&api.app, &run).await {
        Ok(calls) => reply::document(&calls_for(caller, calls)),
        Err(_) => reply::not_found("no such run"),
    }
}

/// `GET /runs/{run}/about`: returns the run as listed.
pub(crate) async fn about(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    InPath(run): InPath<String>,
) -> Response {
    if !api.may_read(caller, &run) {
        return reply::not_found("no such run of this token's");
    }
    match runs::list_of(&api.app, Some(vec![RunId::new(run.as_str())])).await {
        Ok(mut found) if !found.is_empty() => {
            let mut listed = found.remove(0);
            listed.rule_of_two = runs::rule_of_two(&api.app, &run).await.ok();
            reply::document(&listed)
        }
        Ok(_) => reply::not_found("no such run"),
        Err(problem) => failed(&problem.to_string()),
    }
}

/// `GET /runs/{run}/verify`: verifies the run's record.
pub(crate) async fn verify(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    InPath(run): InPath<String>,
) -> Response {
    if !api.may_read(caller, &run) {
        return reply::not_found("no such run of this token's");
    }
    match verify::verify(api.app.runs(), &run).await {
        Ok(report) => reply::document(&report),
        Err(_) => reply::not_found("no such run"),
    }
}

#[cfg(test)]
mod tests {
    use haft::result::Status;

    use super::*;

    #[test]
    fn a_query_becomes_a_filter_or_an_error_that_names_the_value() {
        let read = |query: &str| filter(&format!("/api/v1/runs?{query}").parse().unwrap());
        let all = read("tool=run_command&status=denied&limit=5000&since=1970-01-01T00:00:01Z");
        let all = all.unwrap();
        assert_eq!(all.tool.as_deref(), Some("run_command"));
        assert_eq!(
            (all.status, all.failed, all.limit),
            (Some(Status::Denied), false, 1_000)
        );
        assert_eq!(all.since, Some(1_000_000_000));
        let failed = read("status=failed&state=open&after=r1&workspace=%2Fw").unwrap();
        assert!(failed.failed && failed.status.is_none());
        assert_eq!(failed.workspace.as_deref(), Some("/w"));
        assert_eq!(read("").unwrap(), RunFilter::newest(100));
        for (query, value) in [
            ("status=bad", "`bad`"),
            ("state=shut", "`shut`"),
            ("limit=0", "`0`"),
            ("until=yesterday", "`yesterday`"),
            ("after=%03", "\\u{3}"),
            ("after=..%2Fx", "../x"),
        ] {
            assert!(read(query).unwrap_err().contains(value), "{query}");
        }
    }
}

//! Lookups: tools and call records by search, full skills, policy explanations, health and overview.

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use haft::clock;
use http::{StatusCode, Uri};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::api::state::{ApiState, failed};
use crate::caller::ApiCaller;
use crate::{query, reply};
use haft_app::view::{health, overview, policy, runs, skills, tools};

/// Maximum number of tools in a search result.
const MAX_TOOLS: usize = 50;
/// Maximum number of calls that a search looks through.
const MAX_SEARCHED: usize = 20_000;
/// Default and maximum number of calls in a search result.
const RESULT_SIZES: (usize, usize) = (100, 1_000);
const NANOS_PER_DAY: i128 = 86_400_000_000_000;

/// Lists all tools, or those that match the words, best match first.
pub(crate) async fn list_tools(State(api): ApiState, uri: Uri) -> Response {
    let snapshot = api.app.tools().snapshot();
    let words = query::text(&uri, "q").filter(|words| !words.trim().is_empty());
    let Some(words) = words else {
        return reply::written(&api.tool_list.of(&snapshot));
    };
    let found = snapshot.search(&words, None, MAX_TOOLS);
    let found = found
        .iter()
        .map(|found| tools::describe(found.entry.spec()));
    reply::document(&found.collect::<Vec<_>>())
}

/// Returns one tool with the policy's usual verdict on it.
pub(crate) async fn show_tool(State(api): ApiState, Path(name): Path<String>) -> Response {
    let snapshot = api.app.tools().snapshot();
    let Some(entry) = snapshot.entry(&name) else {
        return reply::not_found("no such tool");
    };
    let mut shown = tools::describe(entry.spec());
    if let Value::Object(map) = &mut shown {
        let verdict = api.app.executor().policy().usual(entry.spec());
        map.insert("verdict".into(), json!(verdict));
        if let Some(ui) = &entry.spec().ui {
            map.insert("ui".into(), json!({"uri": ui.resource_uri}));
        }
    }
    reply::document(&shown)
}

/// Returns a skill in full.
pub(crate) async fn show_skill(State(api): ApiState, Path(name): Path<String>) -> Response {
    let app = api.app.clone();
    let found = tokio::task::spawn_blocking(move || skills::find_whole(&app, &name));
    match found.await {
        Ok(Ok(skill)) => reply::document(&skill),
        Ok(Err(problem)) => reply::not_found(problem.what()),
        Err(_) => failed("looking for skills failed unexpectedly; the log says why"),
    }
}

/// A hypothetical call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HypotheticalCall<'a> {
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Explains what would happen to a call.
pub(crate) async fn explain(State(api): ApiState, body: Bytes) -> Response {
    let imagined: HypotheticalCall<'_> = match serde_json::from_slice(&body) {
        Ok(imagined) => imagined,
        Err(e) => {
            let message = format!("the body is not {{\"tool\", \"arguments\"}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let arguments = imagined.arguments.map_or("{}", RawValue::get);
    match policy::explain(&api.app, &imagined.tool, arguments) {
        Ok(explanation) => reply::document(&explanation),
        Err(problem) => {
            let (status, kind) = (StatusCode::UNPROCESSABLE_ENTITY, "invalid_arguments");
            let advice = problem.advice().unwrap_or_default();
            reply::error(status, kind, format!("{} {advice}", problem.what()).trim())
        }
    }
}

/// Returns the policy in force. The operator, who may read all records, also gets the number of recent calls that each rule decided.
pub(crate) async fn policy_in_force(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
) -> Response {
    let app = api.app.clone();
    let look = move || policy::overview(&app);
    let Ok(mut shown) = tokio::task::spawn_blocking(look).await else {
        return failed("explaining the policy failed unexpectedly; the log says why");
    };
    if caller == ApiCaller::Operator
        && let Err(problem) = policy::count(&api.app, &mut shown).await
    {
        // The rules matter more than the counts.
        tracing::warn!(%problem, "count what rules decided");
    }
    reply::document(&shown)
}

/// Reports what works here, found by trying, with the version, uptime, disk use and, for the operator, the connected clients.
pub(crate) async fn health(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
) -> Response {
    let report = health::report(&api.app).await;
    let Ok(Value::Object(mut shown)) = serde_json::to_value(&report) else {
        return failed("the health report is not JSON");
    };
    shown.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    shown.insert("uptime_s".into(), json!(api.app.uptime().as_secs()));
    shown.insert("disk".into(), json!(api.app.disk_use()));
    if caller == ApiCaller::Operator {
        match overview::clients(&api.app).await {
            Ok(clients) => drop(shown.insert("clients".into(), json!(clients))),
            Err(problem) => tracing::warn!(%problem, "list the clients"),
        }
    }
    reply::document(&shown)
}

/// Lists the MCP servers behind haft.
pub(crate) async fn servers(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
) -> Response {
    if caller != ApiCaller::Operator {
        let why = "the servers are the operator's: their command lines are listed";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", why);
    }
    reply::document(&api.app.servers().list())
}

/// Returns the overview page's data; `since` (RFC 3339) is the start of the reader's day, by default 24 hours ago.
pub(crate) async fn overview(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    uri: Uri,
) -> Response {
    if caller != ApiCaller::Operator {
        let why = "the overview is about all runs: it is the operator's";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", why);
    }
    let since = query::text(&uri, "since").map(|text| text.parse::<Timestamp>());
    let since = match since {
        None => clock::now() - NANOS_PER_DAY,
        Some(Ok(since)) => since.as_nanosecond(),
        Some(Err(error)) => {
            let message = format!("invalid since: {error}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    match overview::overview(&api.app, since).await {
        Ok(shown) => {
            let disk = api.app.disk_use();
            reply::document(&json!({"overview": shown, "disk": disk}))
        }
        Err(problem) => failed(&problem.to_string()),
    }
}

/// Returns calls of any run that contain all the words, newest runs first.
pub(crate) async fn audit(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    uri: Uri,
) -> Response {
    if caller != ApiCaller::Operator {
        let why = "the records of all runs are the operator's";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", why);
    }
    let words = query::text(&uri, "q").unwrap_or_default().to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    let (status, tool) = (query::text(&uri, "status"), query::text(&uri, "tool"));
    let limit = query::text(&uri, "limit").and_then(|n| n.parse().ok());
    let limit = limit.unwrap_or(RESULT_SIZES.0).min(RESULT_SIZES.1);
    let calls = match runs::recent_calls(&api.app, MAX_SEARCHED).await {
        Ok(calls) => calls,
        Err(problem) => return failed(&problem.to_string()),
    };
    let is = |line: &Value, name: &str, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| line[name] == **wanted)
    };
    let mut matches = Vec::new();
    for line in &calls {
        let text = line.to_string().to_lowercase();
        let fits = words.iter().all(|word| text.contains(word));
        if fits && is(line, "status", &status) && is(line, "tool", &tool) {
            let summary = line["summary"].as_str().unwrap_or_default();
            matches.push(json!({
                "run": line["run"], "call": line["call"], "tool": line["tool"], "status": line["status"],
                "at": line["ts"], "text": summary,
            }));
        }
        if matches.len() > limit {
            break;
        }
    }
    let truncated = matches.len() > limit;
    matches.truncate(limit);
    reply::document(&json!({"matches": matches, "looked_at": calls.len(), "truncated": truncated}))
}

//! Approval requests over HTTP: listed, shown in full, and decided, one by one or several at once.

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, State};
use axum::response::Response;
use haft::approval::inbox::{InboxError, RequestFilter, RequestStatus, StoredApproval};
use haft::approval::listing;
use haft::approval::{ApprovalId, ApprovalScope, Choice, Decision};
use haft::call::{Principal, RunId};
use http::header::HeaderValue;
use http::request::Parts;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::api::state::{Api, ApiState, failed, request_for};
use crate::caller::{ApiCaller, AuthMethod, Peer};
use crate::{query, reply};
use haft_app::decide::DecisionError;
use haft_app::view::approvals::whole::ApprovalDetails;
use haft_app::view::approvals::{ApprovalListItem, file};
use haft_app::view::rule;

/// Maximum number of requests per response.
const MAX_REQUESTS: usize = 10_000;
/// Default number of requests per response.
const DEFAULT_REQUESTS: usize = 1_000;
/// Maximum number of decisions per batch.
const MAX_BATCH: usize = 200;

/// The caller that views requests: a client sees those of its own runs, an operator all of its tenant.
pub(crate) struct Viewer {
    caller: ApiCaller,
    principal: Principal,
}

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let extensions = &parts.extensions;
        match (extensions.get().copied(), extensions.get().cloned()) {
            (Some(caller), Some(principal)) => Ok(Self { caller, principal }),
            _ => Err(missing_gate()),
        }
    }
}

/// Returns the error for a request that passed no check because its route has no gate in front of it.
fn missing_gate() -> Response {
    failed("this route is served without the checks that belong before it")
}

/// Lists the pending requests, or others.
pub(crate) async fn list(State(api): ApiState, viewer: Viewer, uri: Uri) -> Response {
    let Some(filter) = filter(&viewer.principal, &uri) else {
        let known = "status is waiting, all, or one of pending, approved, denied, answered, running, done, expired, withdrawn, in_doubt";
        return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", known);
    };
    let newest = query::text(&uri, "newest").and_then(|n| n.parse::<usize>().ok());
    let mut items = match list_requests(&api, viewer.caller, filter).await {
        Ok(items) => items,
        Err(error) => return unavailable(&error),
    };
    if let Some(newest) = newest {
        items.reverse();
        items.truncate(newest);
    }
    let mut response = reply::document(&items);
    let total = HeaderValue::from(items.len());
    response.headers_mut().insert("x-total", total);
    response
}

/// Returns the requests of the runs that a caller may read. The limit applies to those, so others' requests do not crowd out a
/// client's own.
async fn list_requests(
    api: &Api,
    caller: ApiCaller,
    filter: RequestFilter,
) -> Result<Vec<ApprovalListItem>, InboxError> {
    let inbox = &**api.app.executor().inbox();
    let mut found = Vec::new();
    let limit = filter.limit;
    let mut keep = |entry: StoredApproval| {
        let entry = request_for(caller, entry);
        let item = ApprovalListItem::of(&api.app, &entry);
        found.push((entry.request.created, item));
    };
    if let Some(own) = api.readable(caller) {
        let wanted = |run: &RunId| filter.run.as_ref().is_none_or(|only| only == run);
        for run in own.into_iter().filter(wanted) {
            let of_run = RequestFilter {
                run: Some(run),
                ..filter.clone()
            };
            listing::each(inbox, of_run, &mut keep).await?;
        }
        found.sort_by(|(a, one), (b, other)| (a, &one.id).cmp(&(b, &other.id)));
        found.truncate(limit);
    } else {
        listing::each(inbox, filter, keep).await?;
    }
    Ok(found.into_iter().map(|(_, item)| item).collect())
}

fn filter(principal: &Principal, uri: &Uri) -> Option<RequestFilter> {
    let parameter = |name| query::text(uri, name);
    let status = match parameter("status").as_deref() {
        None | Some("waiting") => vec![RequestStatus::Pending],
        Some("all") => Vec::new(),
        Some(word) => vec![RequestStatus::parse(word)?],
    };
    let usual = if parameter("newest").is_some() {
        MAX_REQUESTS
    } else {
        DEFAULT_REQUESTS
    };
    let limit = parameter("limit").and_then(|n| n.parse().ok());
    Some(RequestFilter {
        tenant: principal.tenant.to_string(),
        status,
        run: parameter("run").map(RunId::new),
        after: parameter("after").map(ApprovalId::new),
        limit: limit.unwrap_or(usual).min(MAX_REQUESTS),
    })
}

/// Returns one request in full.
pub(crate) async fn show(State(api): ApiState, viewer: Viewer, Path(id): Path<String>) -> Response {
    match entry(&api, &viewer, &id).await {
        Ok(entry) => reply::document(&ApprovalDetails::of(&api.app, &entry)),
        Err(response) => response,
    }
}

async fn entry(api: &Api, viewer: &Viewer, id: &str) -> Result<StoredApproval, Response> {
    let found = api.app.executor().inbox().get(&ApprovalId::new(id)).await;
    let found = found.map_err(|error| unavailable(&error))?;
    let mine = |entry: &StoredApproval| {
        entry.request.principal.tenant == viewer.principal.tenant
            && api.may_read(viewer.caller, entry.request.run.as_str())
    };
    found
        .filter(mine)
        .map(|entry| request_for(viewer.caller, entry))
        .ok_or_else(|| reply::not_found("no such approval"))
}

/// Reports what a rule would have allowed.
pub(crate) async fn try_rule(
    State(api): ApiState,
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Response {
    let entry = match entry(&api, &viewer, &id).await {
        Ok(entry) => entry,
        Err(response) => return response,
    };
    let suggested = || {
        let proposed = entry.request.proposal().map(str::to_owned);
        proposed.or_else(|| entry.request.suggested.first().cloned())
    };
    let Some(text) = query::text(&uri, "rule").or_else(suggested) else {
        return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", "name a rule");
    };
    reply::document(&rule::try_rule(&api.app, &entry, &text).await)
}

/// Returns a part of one file of a request, before and after.
pub(crate) async fn file(
    State(api): ApiState,
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Response {
    let entry = match entry(&api, &viewer, &id).await {
        Ok(entry) => entry,
        Err(response) => return response,
    };
    let refused = |message| reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
    let Some(path) = query::text(&uri, "path") else {
        return refused("name a file: path=…");
    };
    let mut range = file::ByteRange::default();
    if let Some(offset) = query::text(&uri, "offset") {
        let Ok(offset) = offset.parse() else {
            return refused("offset is not a number");
        };
        range.offset = offset;
    }
    if let Some(length) = query::text(&uri, "length") {
        let Ok(length) = length.parse() else {
            return refused("length is not a number");
        };
        range.length = length;
    }
    let app = api.app.clone();
    let read = move || file::file(&app, &entry.request, &path, range);
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(sides)) => reply::document(&sides),
        Ok(Err(problem)) => reply::not_found(problem.what()),
        Err(_) => failed("reading the file failed unexpectedly; the log says why"),
    }
}

/// The body of a decision.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    decision: Option<String>,
    #[serde(default)]
    scope: ApprovalScope,
    #[serde(default)]
    edit: Option<Box<RawValue>>,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    stop: bool,
    #[serde(default)]
    answers: Option<Map<String, Value>>,
    #[serde(default)]
    text: Option<String>,
}

impl DecisionBody {
    fn read(body: &[u8]) -> Result<Self, Box<Response>> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(body).map_err(|e| {
            let message = format!("the body is not a decision: {e}");
            Box::new(reply::error(
                StatusCode::BAD_REQUEST,
                "invalid_arguments",
                &message,
            ))
        })
    }

    fn choice(self, word: &str) -> Option<Choice> {
        Some(match word {
            "approve" => Choice::Approve {
                scope: self.scope,
                edited: self.edit.map(|edit| edit.get().to_owned()),
                rule: self.rule,
            },
            "deny" => Choice::Deny {
                message: self.message,
                stop: self.stop,
            },
            "answer" => Choice::Answer {
                answers: match (self.answers, self.text) {
                    (Some(answers), _) => Value::Object(answers).to_string(),
                    (None, text) => json!({"text": text.unwrap_or_default()}).to_string(),
                },
            },
            _ => return None,
        })
    }
}

/// Decides about one request.
pub(crate) async fn decide(
    State(api): ApiState,
    sender: DecisionStamp,
    Path((id, word)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let decision_body = match DecisionBody::read(&body) {
        Ok(decision_body) => decision_body,
        Err(refused) => return *refused,
    };
    let Some(choice) = decision_body.choice(&word) else {
        return reply::not_found("decide by approve, deny or answer");
    };
    match sender.decide(&api, &id, choice).await {
        Ok(entry) => reply::document(&ApprovalDetails::of(&api.app, &entry)),
        Err(refused) => {
            let (status, error) = refusal(&refused);
            reply::problem(status, &error)
        }
    }
}

/// Who decides, and from where: the stamp on a decision.
pub(crate) struct DecisionStamp {
    principal: Principal,
    way: AuthMethod,
    /// `None` if unknown.
    peer: Option<Peer>,
}

impl<S: Sync> FromRequestParts<S> for DecisionStamp {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let extensions = &parts.extensions;
        match (extensions.get().cloned(), extensions.get().copied()) {
            (Some(principal), Some(way)) => Ok(Self {
                principal,
                way,
                peer: extensions.get().copied(),
            }),
            _ => Err(missing_gate()),
        }
    }
}

impl DecisionStamp {
    /// Applies this sender's choice to a request of its tenant.
    async fn decide(
        &self,
        api: &Api,
        id: &str,
        choice: Choice,
    ) -> Result<StoredApproval, DecisionError> {
        let id = ApprovalId::new(id);
        let entry = api.app.executor().inbox().get(&id).await;
        let entry = entry.map_err(DecisionError::Inbox)?;
        let own = |entry: &StoredApproval| entry.request.principal.tenant == self.principal.tenant;
        if !entry.as_ref().is_some_and(own) {
            return Err(DecisionError::Inbox(InboxError::NotFound(id)));
        }
        let way = self.way.as_str();
        let from = match self.peer {
            Some(peer) => format!("{way} {}", peer.0),
            None => way.to_owned(),
        };
        let decision = Decision::new(choice, self.principal.subject.to_string(), from);
        api.app.decide(&id, decision).await
    }
}

/// Several decisions, each with its own choice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBatch {
    decisions: Vec<DecisionBody>,
}

/// The result of one decision in a batch.
#[derive(Debug, Serialize)]
struct DecisionResult {
    id: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<ApprovalDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<reply::ErrorBody>,
}

/// Decides about several requests.
pub(crate) async fn batch(State(api): ApiState, sender: DecisionStamp, body: Bytes) -> Response {
    let batch: DecisionBatch = match serde_json::from_slice(&body) {
        Ok(batch) => batch,
        Err(e) => {
            let message = format!("the body is not {{\"decisions\": […]}}: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    if batch.decisions.len() > MAX_BATCH {
        let message = format!("at most {MAX_BATCH} decisions at once");
        return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
    }
    let mut results = Vec::with_capacity(batch.decisions.len());
    for mut said in batch.decisions {
        let id = said.id.take().unwrap_or_default();
        let word = said.decision.take().unwrap_or_default();
        let decided = match said.choice(&word) {
            Some(choice) => sender.decide(&api, &id, choice).await,
            None => Err(DecisionError::Unfit {
                denied: false,
                what: "decide by approve, deny or answer".to_owned(),
            }),
        };
        results.push(match decided {
            Ok(entry) => DecisionResult {
                id,
                ok: true,
                entry: Some(ApprovalDetails::of(&api.app, &entry)),
                error: None,
            },
            Err(refused) => DecisionResult {
                id,
                ok: false,
                entry: None,
                error: Some(refusal(&refused).1),
            },
        });
    }
    reply::document(&json!({ "results": results }))
}

/// Returns the status and error for a decision that was refused.
pub(crate) fn refusal(refused: &DecisionError) -> (StatusCode, reply::ErrorBody) {
    let (status, kind) = match refused {
        DecisionError::Inbox(InboxError::NotFound(_)) => (StatusCode::NOT_FOUND, "not_found"),
        DecisionError::Inbox(InboxError::Over { .. }) => (StatusCode::GONE, "conflict"),
        DecisionError::Inbox(InboxError::Unavailable(_)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
        DecisionError::Inbox(_) | DecisionError::Conflict { .. } => {
            (StatusCode::CONFLICT, "conflict")
        }
        DecisionError::Unfit { denied: true, .. } => (StatusCode::FORBIDDEN, "denied"),
        DecisionError::Unfit { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_arguments"),
    };
    let message = match refused {
        DecisionError::Inbox(error) => error.to_string(),
        DecisionError::Unfit { what, .. } | DecisionError::Conflict { what, .. } => what.clone(),
    };
    (status, reply::ErrorBody::new(kind, message))
}

fn unavailable(error: &InboxError) -> Response {
    match error {
        InboxError::Unavailable(_) => reply::error(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            &error.to_string(),
        ),
        _ => failed(&error.to_string()),
    }
}

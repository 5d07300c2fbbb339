//! The console's routes: pages, login and logout, and tickets.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use haft::clock;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::console::pages::{Pages, add_security_headers};
use crate::console::sessions::{ConsoleSession, IDLE_TIMEOUT};
use crate::console::{About, Console};
use crate::reply;
use crate::same_user::SocketEnds;

/// Maximum size of a body here: a code or a path, and its braces.
const MAX_BODY: usize = 4096;
/// Maximum length of a page's name, in bytes.
const MAX_TAB: usize = 64;

type ConsoleState = State<Arc<Console>>;

/// Returns the routes of the pages and, below `/api/v1`, `POST login`, `POST login-link`, `POST tickets`, `GET session`,
/// `POST tabs` and `POST logout`. The gate has already checked access: anyone may use the pages and `login`, only the operator
/// the rest.
pub(crate) fn router(console: Arc<Console>) -> Router {
    let pages = get(page);
    let mut router = Router::new().route("/", pages.clone());
    for path in Pages::paths() {
        router = router.route(&path, pages.clone());
    }
    router
        .route("/api/v1/login", post(login))
        .route("/api/v1/login-link", post(link))
        .route("/api/v1/tickets", post(ticket))
        .route("/api/v1/session", get(session))
        .route("/api/v1/tabs", post(tab))
        .route("/api/v1/logout", post(logout))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(console)
}

/// Answers an address without a route: with a page for a user, with an error for a program.
pub(crate) async fn unknown(
    State(console): ConsoleState,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if Pages::is_wrong_address(&method, uri.path(), &headers) {
        return console.pages.answer_wrong_address(&headers);
    }
    reply::not_found("no such route")
}

async fn page(State(console): ConsoleState, uri: Uri, headers: HeaderMap) -> Response {
    console.pages.answer(uri.path(), &headers)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    code: String,
}

async fn login(
    State(console): ConsoleState,
    ends: Option<Extension<SocketEnds>>,
    body: Bytes,
) -> Response {
    let Ok(login) = serde_json::from_slice::<Login>(&body) else {
        let message = "the body is not {\"code\"}";
        return error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
    };
    if !(console.redeem(&login.code) || redeem_own(&console, &login.code, ends).await) {
        let message = "the login code is wrong, was used, is older than 5 minutes or was given to another user; `haft console` gives another, `haft console --no-open` one for any browser";
        return error(StatusCode::UNAUTHORIZED, "unauthorized", message);
    }
    let fresh = match console.open() {
        Ok(fresh) => fresh,
        Err(e) => return error(StatusCode::INTERNAL_SERVER_ERROR, "failed", &e.to_string()),
    };
    let idle = i128::try_from(IDLE_TIMEOUT.as_nanos()).unwrap_or(i128::MAX);
    let expires = clock::rfc3339(clock::now().saturating_add(idle));
    let body = json!({"secret": fresh.secret, "expires": expires});
    with_cookie(
        document(StatusCode::OK, &body),
        &console.cookie.set(&fresh.id),
    )
}

/// Consumes a code that only a program of this server's user may use. From any other user it stays unused.
async fn redeem_own(console: &Console, code: &str, ends: Option<Extension<SocketEnds>>) -> bool {
    let (true, Some(Extension(ends))) = (console.is_own(code), ends) else {
        return false;
    };
    let same = tokio::task::spawn_blocking(move || ends.are_of_one_user()).await;
    same.unwrap_or(false) && console.redeem_own(code)
}

/// The body of a request for a login link.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct LinkRequest {
    /// For a browser of the server's own user: others may read the link on its way there.
    same_user: bool,
}

/// Returns a link for a later visit, under the host name of this request.
async fn link(State(console): ConsoleState, headers: HeaderMap, body: Bytes) -> Response {
    let request = match serde_json::from_slice::<LinkRequest>(&body) {
        Ok(request) => request,
        Err(_) if body.is_empty() => LinkRequest::default(),
        Err(_) => {
            let message = "the body is not {\"same_user\"}";
            return error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
        }
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host else {
        let message = "the request names no host";
        return error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
    };
    let base = format!("{}://{host}", console.scheme());
    let link = if request.same_user {
        console.own_login_link(&base)
    } else {
        console.login_link(&base)
    };
    match link {
        Ok(url) => document(StatusCode::OK, &json!({"url": url})),
        Err(e) => error(StatusCode::INTERNAL_SERVER_ERROR, "failed", &e.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketRequest {
    path: String,
}

/// Issues a ticket for a URL that the browser opens by itself.
async fn ticket(State(console): ConsoleState, body: Bytes) -> Response {
    let Ok(ticket_request) = serde_json::from_slice::<TicketRequest>(&body) else {
        let message = "the body is not {\"path\"}";
        return error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
    };
    match console.ticket(&ticket_request.path) {
        Ok(ticket) => document(StatusCode::OK, &json!({"ticket": ticket})),
        Err(e) => error(StatusCode::INTERNAL_SERVER_ERROR, "failed", &e.to_string()),
    }
}

/// A page's report about itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TabReport {
    tab: String,
    /// Whether a user sees it, or would see a notification that it shows.
    attentive: bool,
}

/// Records whether a page is visible: while one is, there are no desktop notifications.
async fn tab(
    State(console): ConsoleState,
    session: Option<Extension<ConsoleSession>>,
    body: Bytes,
) -> Response {
    let says = serde_json::from_slice::<TabReport>(&body).ok();
    let says = says.filter(|says| (1..=MAX_TAB).contains(&says.tab.len()));
    let (Some(says), Some(_)) = (says, session) else {
        let message = "a page of the console sends {\"tab\", \"attentive\"}";
        return error(StatusCode::BAD_REQUEST, "invalid_arguments", message);
    };
    console
        .tabs
        .record_report(&says.tab, says.attentive, Instant::now());
    StatusCode::NO_CONTENT.into_response()
}

#[derive(Serialize)]
struct SessionView<'a> {
    #[serde(flatten)]
    about: &'a About,
    #[serde(skip_serializing_if = "Option::is_none")]
    strength: Option<&'a String>,
}

/// Returns what the top bar shows, for a page that is logged in. Only the login returns the secret.
async fn session(
    State(console): ConsoleState,
    session: Option<Extension<ConsoleSession>>,
) -> Response {
    if session.is_none() {
        let message = "there is no console session; open a login link";
        return error(StatusCode::UNAUTHORIZED, "unauthorized", message);
    }
    let (about, strength) = (&console.about, console.strength.get());
    document(StatusCode::OK, &SessionView { about, strength })
}

async fn logout(State(console): ConsoleState, headers: HeaderMap) -> Response {
    console.close(&headers);
    with_cookie(
        StatusCode::NO_CONTENT.into_response(),
        &console.cookie.clear(),
    )
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response {
    let body: Value = json!({"error": {"kind": kind, "message": message}});
    document(status, &body)
}

fn document<T: Serialize>(status: StatusCode, value: &T) -> Response {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let mut response = (status, Body::from(bytes)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_security_headers(headers);
    response
}

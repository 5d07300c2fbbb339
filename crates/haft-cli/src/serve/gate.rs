//! The gate before all routes, known or not: Host, Origin, token or console session, and what each may change.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use haft::call::Principal;
use haft_console::Console;
use haft_mcp::guard::{HostGuard, bearer, same_token};
use haft_mcp::opener::ByOperator;
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::serve::reply;

/// Who asks, once the gate let them through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// With the call token, or with none where none is asked for.
    Client,
    /// With the operator's token, or a console session.
    Operator,
}

/// By which way the caller showed who they are: what a decision is stamped with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A token, or none where none is asked for.
    Token,
    /// A console session.
    Console,
}

impl Way {
    /// The word in a decision's stamp.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Token => "api",
            Self::Console => "console",
        }
    }
}

/// Whose connection a request came by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What the gate compares with.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The pages and the sessions of those who logged in.
    pub(crate) console: Arc<Console>,
    /// The names of this server.
    pub(crate) hosts: HostGuard,
    /// The callers' token; `None` when `--no-auth` dropped it.
    pub(crate) call: Option<String>,
    /// The operator's token.
    pub(crate) operator: String,
    /// For whom calls are made.
    pub(crate) principal: Principal,
}

/// What needs no token beside the console's pages.
const HEALTH: &str = "/healthz";

/// Where a login code is given: it is what shows who asks.
const LOGIN: &str = "/api/v1/login";

/// Where replies of the webhook go.
const WEBHOOK: &str = "/api/v1/webhook/";

/// Where a console session counts. MCP clients have tokens.
const API: &str = "/api/v1/";

/// Where the call token may POST.
const CALLS: [&str; 3] = ["/api/v1/calls", "/api/v1/chains", "/mcp"];

/// These routes behind the gate. Around all of them, so that a route nobody knows answers no stranger either.
pub(crate) fn before(gate: Arc<Gate>, routes: Router) -> Router {
    let checked = middleware::from_fn_with_state(gate, check);
    Router::new().fallback_service(routes).layer(checked)
}

/// Lets a request through to the routes, or answers it.
async fn check(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    match gate.admit(request.method(), request.uri().path(), request.headers()) {
        Ok(caller) => {
            if let Some((caller, way)) = caller {
                request.extensions_mut().insert(caller);
                request.extensions_mut().insert(way);
                request.extensions_mut().insert(gate.principal.clone());
                if caller == Caller::Operator {
                    request.extensions_mut().insert(ByOperator);
                }
            }
            next.run(request).await
        }
        Err(refusal) => *refusal,
    }
}

impl Gate {
    /// Who asks; `None` where nobody needs to say. The refusal otherwise.
    fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<(Caller, Way)>, Box<Response>> {
        let single = |name| one(headers, name);
        let (Ok(host), Ok(origin), Ok(authorization)) =
            (single(HOST), single(ORIGIN), single(AUTHORIZATION))
        else {
            return Err(Box::new(forbidden("a header is given twice or is no text")));
        };
        if !self.hosts.allows_host(host) {
            return Err(Box::new(forbidden("the Host header names another server")));
        }
        if !self.hosts.allows_origin(origin) {
            return Err(Box::new(forbidden("the Origin is another site")));
        }
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        // Whoever sends an authorization is who it says; a cookie beside it changes nothing.
        if authorization.is_none()
            && path.starts_with(API)
            && let Some(session) = self.console.session(headers)
        {
            return if reads || session.may_change() || path == LOGIN {
                Ok(Some((Caller::Operator, Way::Console)))
            } else {
                Err(Box::new(forbidden("the session's secret is missing")))
            };
        }
        let caller = self.caller(bearer(authorization));
        match caller {
            None if reads && (path == HEALTH || self.console.is_page(path)) => Ok(None),
            _ if path == LOGIN && *method == Method::POST => Ok(None),
            // The signature of its body is what shows who asks.
            None if path.starts_with(WEBHOOK) && *method == Method::POST => Ok(None),
            None => Err(Box::new(unauthorized())),
            // Ending one's own MCP session is a DELETE.
            Some(Caller::Client) if !reads && !may_call(method, path) => {
                Err(Box::new(forbidden("this needs the operator's token")))
            }
            caller => Ok(caller.map(|caller| (caller, Way::Token))),
        }
    }

    fn caller(&self, token: Option<&str>) -> Option<Caller> {
        match (token, &self.call) {
            (Some(token), _) if same_token(token, &self.operator) => Some(Caller::Operator),
            (Some(token), Some(call)) => same_token(token, call).then_some(Caller::Client),
            (_, None) => Some(Caller::Client),
            (None, Some(_)) => None,
        }
    }
}

/// What the call token may change: calls, and its own MCP sessions.
fn may_call(method: &Method, path: &str) -> bool {
    (*method == Method::POST && CALLS.contains(&path))
        || (*method == Method::DELETE && path == "/mcp")
}

/// A header's value; an error where it stands twice or is no text: two readers could take two values.
fn one(headers: &HeaderMap, name: http::HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    first
        .map(|value| value.to_str().map_err(|_| ()))
        .transpose()
}

fn forbidden(why: &'static str) -> Response {
    reply::error(StatusCode::FORBIDDEN, "forbidden", why)
}

fn unauthorized() -> Response {
    let why =
        "send `Authorization: Bearer TOKEN`; the token is in the file that `haft serve` names";
    let mut response = reply::error(StatusCode::UNAUTHORIZED, "unauthorized", why);
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

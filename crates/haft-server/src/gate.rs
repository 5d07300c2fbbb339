//! `ApiGate`: checks in front of all routes, known or not: Host, Origin, token or console session, and what each caller may change.

use std::sync::Arc;

use crate::console::Console;
use crate::console::pages::Pages;
use crate::console::sessions::ConsoleSession;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use haft::bounds::{CallerClass, ShareKey};
use haft::call::Principal;
use haft_app::access::IdentifiedCaller;
use haft_mcp::guard::{HostGuard, HostGuardError, bearer, one, same_token};
use haft_mcp::intake::IntakeError;
use haft_mcp::opener::{OperatorMarker, ViewName};
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use crate::bounds::{ApiLimits, HOOKS_PATH, LimitReached};
use crate::caller::{ApiCaller, AuthMethod};
use crate::listen::ConnectionSlot;
use crate::people::{People, TokenChallenge, TokenRefusal};
use crate::{query, reply};

/// What the gate checks against.
#[derive(Debug)]
pub(crate) struct ApiGate {
    /// The console with its pages and sessions.
    pub(crate) console: Arc<Console>,
    /// The names of this server.
    pub(crate) hosts: HostGuard,
    /// The call token; `None` under `--no-auth`.
    pub(crate) call: Option<String>,
    /// The operator's token.
    pub(crate) operator: String,
    /// Callers with tokens of their own.
    pub(crate) people: People,
    /// The principal that calls are made for.
    pub(crate) principal: Principal,
    /// Limits on what callers may make the server hold.
    pub(crate) bounds: Arc<ApiLimits>,
}

/// The login route: the code in its body is the credential.
const LOGIN: &str = "/api/v1/login";

/// The prefix of the webhook's reply routes, one per request. The signature of the body is the credential.
const WEBHOOK: &str = "/api/v1/webhook/";

/// The prefix within which console sessions are valid. MCP clients have tokens.
const API: &str = "/api/v1/";

/// The MCP endpoint.
const MCP: &str = "/mcp";

/// The query parameter that carries a ticket.
const TICKET: &str = "ticket";

/// Where the call token may POST.
const CALLS: [&str; 3] = ["/api/v1/calls", "/api/v1/chains", MCP];

/// Returns whether a request to this path may wait for a user.
fn is_call(path: &str) -> bool {
    CALLS.contains(&path) || path.starts_with(HOOKS_PATH)
}

/// Returns whether a request needs no token. Applies to any caller, with or without one; the console's pages are public as well.
fn is_public(method: &Method, path: &str) -> bool {
    let reply = |path: &str| {
        let id = path.strip_prefix(WEBHOOK);
        id.is_some_and(|id| !id.is_empty() && !id.contains(['/', '%']))
    };
    match *method {
        Method::GET | Method::HEAD => path == "/healthz",
        Method::POST => path == LOGIN || reply(path),
        _ => false,
    }
}

/// Puts the gate in front of these routes. It wraps them all, so that unknown routes do not answer strangers either.
pub(crate) fn before(gate: Arc<ApiGate>, routes: Router) -> Router {
    let checked = middleware::from_fn_with_state(gate, check);
    Router::new().fallback_service(routes).layer(checked)
}

/// Passes a request to the routes, or answers it.
async fn check(State(gate): State<Arc<ApiGate>>, request: Request, next: Next) -> Response {
    let admitted = match gate.admit(&request) {
        Ok(Admission::Person(token)) => {
            let path = request.uri().path().to_owned();
            gate.person(&token, &path).await.map(Some)
        }
        Ok(Admission::Public) => Ok(None),
        Ok(Admission::Known(known)) => Ok(Some(known)),
        Err(refusal) => Err(refusal),
    };
    let answered = match admitted {
        Ok(known) => gate.handle_request(request, known, next).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    harden(response.headers_mut());
    response
}

/// What a request shows about its sender.
enum Admission {
    /// Nothing, and nothing is needed.
    Public,
    /// A caller that the gate identifies by itself.
    Known(KnownCaller),
    /// A token that is neither of the two in the state folder.
    Person(String),
}

/// A caller that passed the gate.
struct KnownCaller {
    caller: ApiCaller,
    way: AuthMethod,
    session: Option<ConsoleSession>,
    /// Who it is, if not this server's user.
    person: Option<IdentifiedCaller>,
}

impl KnownCaller {
    fn class(&self) -> CallerClass {
        self.caller.class()
    }

    /// Returns whose share of the limits applies; `usual` is this server's user.
    fn share(&self, usual: &Principal) -> ShareKey {
        let person = self.person.as_ref().map(|person| &person.principal);
        ShareKey {
            class: self.class(),
            principal: Some(person.unwrap_or(usual).clone()),
        }
    }

    /// Tells the routes who the caller is.
    fn note(self, request: &mut Extensions, principal: &Principal) {
        request.insert(self.caller);
        request.insert(self.way);
        match self.person {
            Some(person) => {
                request.insert(person.principal);
                if let Some(view) = person.view {
                    request.insert(ViewName(view.into()));
                }
            }
            None => {
                request.insert(principal.clone());
            }
        }
        if self.caller == ApiCaller::Operator {
            request.insert(OperatorMarker);
        }
        if let Some(session) = self.session {
            request.insert(session);
        }
    }
}

/// Sets the default headers of every response, unless its route set them: no caching, no type sniffing, no framing by pages of
/// another origin.
pub(crate) fn harden(headers: &mut HeaderMap) {
    const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
    let usual = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (RESOURCE_POLICY, "same-origin"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in usual {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

impl ApiGate {
    /// Identifies the caller as far as that is possible without waiting, or refuses the request.
    fn admit(&self, request: &Request) -> Result<Admission, GateRefusal> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let path = uri.path();
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_wrong = Pages::is_wrong_address(method, path, headers);
        let page = (reads && Pages::is_page(path)) || is_wrong;
        if page {
            self.hosts.check_page(uri, headers)?;
        } else {
            self.hosts.check(uri, headers)?;
        }
        if page || is_public(method, path) || (reads && self.people.is_public_path(path)) {
            return Ok(Admission::Public);
        }
        let authorization = one(headers, &AUTHORIZATION)?;
        // A caller that sends an authorization is identified by it; a cookie beside it changes nothing.
        if authorization.is_none()
            && let Some(session) = self.console_session(method, uri, headers)
        {
            return Ok(Admission::Known(KnownCaller {
                caller: ApiCaller::Operator,
                way: AuthMethod::Console,
                session: Some(session),
                person: None,
            }));
        }
        let token = bearer(authorization);
        let caller = match (self.caller(token), token) {
            (Some(caller), _) => caller,
            (None, Some(token)) => return Ok(Admission::Person(token.to_owned())),
            (None, None) => return Err(self.without_token(path)),
        };
        // A client ends its own MCP session with a DELETE.
        if caller == ApiCaller::Client && !reads && !may_call(method, path) {
            return Err(GateRefusal::NotTheOperator);
        }
        Ok(Admission::Known(KnownCaller {
            caller,
            way: AuthMethod::Token,
            session: None,
            person: None,
        }))
    }

    /// Returns the refusal for a caller without a token.
    fn without_token(&self, path: &str) -> GateRefusal {
        let challenge = self.people.challenge().filter(|_| path == MCP);
        challenge.map_or(GateRefusal::NoToken, |challenge| {
            GateRefusal::Challenged(Box::new(challenge))
        })
    }

    /// Identifies the owner of a token that is neither of the two in the state folder. Such tokens are valid for MCP only.
    async fn person(&self, token: &str, path: &str) -> Result<KnownCaller, GateRefusal> {
        let person = self.people.find(token).await.map_err(|away| match away {
            TokenRefusal::Challenged(challenge) if path == MCP => {
                GateRefusal::Challenged(Box::new(challenge))
            }
            TokenRefusal::NoView(view) if path == MCP => GateRefusal::NoView(view),
            TokenRefusal::NoView(_) => GateRefusal::ForMcpAlone,
            TokenRefusal::Unknown | TokenRefusal::Challenged(_) => GateRefusal::UnknownToken,
        })?;
        if path != MCP {
            return Err(GateRefusal::ForMcpAlone);
        }
        Ok(KnownCaller {
            caller: ApiCaller::Client,
            way: AuthMethod::Token,
            session: None,
            person: Some(person),
        })
    }

    /// Returns the console session of a request: by cookie and secret, or by cookie and ticket if the browser opens a URL by
    /// itself.
    fn console_session(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<ConsoleSession> {
        let path = uri.path();
        if !path.starts_with(API) {
            return None;
        }
        if let Some(session) = self.console.session(headers) {
            return Some(session);
        }
        let ticket = query::text(uri, TICKET).filter(|_| *method == Method::GET)?;
        self.console.session_by_ticket(headers, path, &ticket)
    }

    /// Passes a request to its route, within the limits of its caller's class.
    async fn handle_request(
        &self,
        mut request: Request,
        known: Option<KnownCaller>,
        next: Next,
    ) -> Result<Response, GateRefusal> {
        let class = known
            .as_ref()
            .map_or(CallerClass::Stranger, KnownCaller::class);
        let guest = request.extensions().get::<Arc<ConnectionSlot>>();
        let share = known.as_ref().map(|known| known.share(&self.principal));
        if let (Some(share), Some(guest)) = (&share, guest)
            && !guest.shows(share)
        {
            return Err(LimitReached("connections are open").into());
        }
        if let Some(known) = known {
            known.note(request.extensions_mut(), &self.principal);
        }
        let path = request.uri().path();
        // MCP has limits of its own, and the pages are the same bytes for everyone.
        if path == MCP || Pages::is_page(path) {
            return Ok(next.run(request).await);
        }
        let bounds = &self.bounds;
        let places = if is_call(path) {
            &bounds.calls
        } else {
            &bounds.requests
        };
        bounds.pass(places, class, request, next).await
    }

    fn caller(&self, token: Option<&str>) -> Option<ApiCaller> {
        match (token, &self.call) {
            (Some(token), _) if same_token(token, &self.operator) => Some(ApiCaller::Operator),
            (Some(token), Some(call)) => same_token(token, call).then_some(ApiCaller::Client),
            (_, None) => Some(ApiCaller::Client),
            (None, Some(_)) => None,
        }
    }
}

/// Returns whether the call token may make this change: calls, and ending its own MCP sessions.
fn may_call(method: &Method, path: &str) -> bool {
    (*method == Method::POST && is_call(path)) || (*method == Method::DELETE && path == MCP)
}

/// Why a request is not passed to the routes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GateRefusal {
    /// It is meant for another server, or a page of another origin made it.
    #[error(transparent)]
    Foreign(#[from] HostGuardError),
    /// Its token identifies no one that this server knows.
    #[error("send `Authorization: Bearer TOKEN` with a token of this server")]
    UnknownToken,
    /// It has no token.
    #[error("send `Authorization: Bearer TOKEN`; the token is in the file that `haft serve` names")]
    NoToken,
    /// Its caller is sent to an authorization server.
    #[error("{0}")]
    Challenged(Box<TokenChallenge>),
    /// Its caller's view is not in the settings.
    #[error("the view `{0}` of this token is not in the settings of this server")]
    NoView(String),
    /// Its token is for MCP, and it goes elsewhere.
    #[error("this token is valid only for `/mcp`")]
    ForMcpAlone,
    /// It makes a change that only the operator may make.
    #[error("this needs the operator's token")]
    NotTheOperator,
    /// Other callers of its class hold too much.
    #[error(transparent)]
    Busy(#[from] LimitReached),
    /// Its body was not accepted.
    #[error(transparent)]
    Body(#[from] IntakeError),
}

impl IntoResponse for GateRefusal {
    fn into_response(self) -> Response {
        let (status, kind) = match &self {
            Self::Foreign(_) | Self::NotTheOperator | Self::NoView(_) | Self::ForMcpAlone => {
                (StatusCode::FORBIDDEN, "forbidden")
            }
            Self::Challenged(challenge) => challenge.status(),
            Self::NoToken | Self::UnknownToken => (StatusCode::UNAUTHORIZED, "unauthorized"),
            Self::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            Self::Body(error) => (error.status(), "invalid_arguments"),
        };
        let mut response = reply::error(status, kind, &self.to_string());
        let headers = response.headers_mut();
        if let Self::Challenged(challenge) = &self {
            if let Some(value) = challenge.header() {
                headers.insert(WWW_AUTHENTICATE, value);
            }
        } else if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

//! `McpService`: MCP over Streamable HTTP: one service for both eras, to be mounted at `/mcp`.
//!
//! The service itself checks Host, Origin and token according to its [`Access`]. It limits what clients make it hold (bodies,
//! answers, calls, sessions and streams), with a separate share for each principal, and for the operator.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use haft::bounds::{CallerClass, Charge, ConcurrencyLimit, ShareKey};
use haft::call::Principal;
use haft::future::BoxFuture;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;

use crate::core::{Core, EncodedResponse};
use crate::intake::{BodyLimits, Intake, IntakeError, OutgoingBudget};
use crate::job::Job;
use crate::limits::shares;
use crate::opener::Transport;
use crate::wire::{self, InvalidMessage, RequestId, RpcError, RpcMessage};

mod access;
mod callers;
mod exchange;
mod legacy;
mod mirrored;
mod modern;
mod pace;
mod reply_body;
mod resume;
mod route;
mod session;
mod sessions;

pub use access::{Access, AccessDenied, TokenOwner};
pub use reply_body::McpBody;

use callers::StatelessRuns;
use exchange::{HttpResponder, ResponseOptions};
use pace::RequestPace;
use session::SessionLease;
use sessions::ClientSessions;

/// Time limit for a client to send a request's body.
const BODY_DEADLINE: Duration = Duration::from_secs(30);

/// The HTTP service. Clones share their sessions.
#[derive(Debug, Clone)]
pub struct McpService(Arc<HttpState>);

/// State shared by all requests.
#[derive(Debug)]
pub(crate) struct HttpState {
    core: Arc<Core>,
    access: Access,
    sessions: Arc<ClientSessions>,
    callers: Arc<StatelessRuns>,
    bodies: Intake,
    outgoing: OutgoingBudget,
    /// Calls in progress.
    calls: ConcurrencyLimit,
    /// Other requests in progress.
    reads: ConcurrencyLimit,
    /// Open streams of changes.
    streams: ConcurrencyLimit,
    pace: RequestPace,
}

/// A POST that has been read: the message's bytes and its headers.
struct PostRequest {
    headers: HeaderMap,
    caller: TokenOwner,
    body: Bytes,
    accepts_events: bool,
}

/// The next step for a POST whose body is no longer needed.
enum PostAction {
    Answered(Response<McpBody>),
    Work(RunJob),
}

/// A run's job, ready to be performed.
struct RunJob {
    lease: SessionLease,
    id: RequestId,
    job: Job,
    /// Whose share of the limits it uses.
    share: ShareKey,
    accepts_events: bool,
    /// The charge for the job's arguments.
    charge: Option<Charge>,
}

impl McpService {
    pub(crate) fn new(core: Arc<Core>, access: Access) -> Self {
        let limits = &core.limits;
        Self(Arc::new(HttpState {
            sessions: ClientSessions::new(limits),
            callers: StatelessRuns::new(limits),
            bodies: Intake::new(shares(limits.body_bytes)),
            outgoing: OutgoingBudget::new(shares(limits.answer_bytes)),
            calls: ConcurrencyLimit::new(&shares(limits.calls)),
            reads: ConcurrencyLimit::new(&shares(limits.reads)),
            streams: ConcurrencyLimit::new(&shares(limits.streams)),
            pace: RequestPace::new(threads()),
            access,
            core,
        }))
    }

    /// Ends every session, stream and run. Later requests are refused or open new ones, so stop listening first.
    pub fn shutdown(&self) {
        self.0.sessions.end_all();
        self.0.callers.end_all();
    }

    /// Ends the sessions and runs of the principals that no longer count, with their streams, running calls and tasks. `is_over` gets
    /// the principal and when its client opened the run, in nanoseconds since 1970.
    pub fn end_clients(&self, is_over: impl Fn(&Principal, i128) -> bool) {
        self.0.sessions.revoke(&is_over);
        self.0.callers.revoke(&is_over);
    }

    /// Returns the number of open handshake-era sessions.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }
}

impl<B> tower_service::Service<Request<B>> for McpService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<McpBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let door = Arc::clone(&self.0);
        Box::pin(async move { Ok(door.handle(request).await) })
    }
}

impl HttpState {
    async fn handle<B>(self: Arc<Self>, request: Request<B>) -> Response<McpBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (share, mut response) = match self.access.admit(&request) {
            Ok(caller) => (caller.share(), self.serve(request, caller).await),
            Err(denied) => (CallerClass::Stranger.into(), denied.respond()),
        };
        if let Some(StrayMessage(reason)) = response.extensions_mut().remove() {
            self.core.stray(Transport::Http, &reason);
        }
        let mut fits = true;
        if let Some(bytes) = response.body_mut().bytes_mut() {
            let held = self.outgoing.hold(std::mem::take(bytes), &share);
            fits = held.is_some();
            *bytes = held.unwrap_or_default();
        }
        if !fits {
            let (id, error) = (None, busy());
            response = refuse(&InvalidMessage { id, error });
        }
        let headers = response.headers_mut();
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
        response
    }

    async fn serve<B>(
        self: &Arc<Self>,
        request: Request<B>,
        caller: TokenOwner,
    ) -> Response<McpBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match *request.method() {
            Method::POST => match self.read(request, caller).await {
                Ok((post, charge)) => {
                    let share = post.caller.share();
                    self.pace
                        .run(&share, Box::pin(self.post(post, charge)))
                        .await
                }
                Err(response) => response,
            },
            Method::GET => legacy::watch(self, request.headers(), &caller),
            Method::DELETE => legacy::end(self, request.headers(), &caller),
            _ => not_allowed("GET, POST, DELETE"),
        }
    }

    /// Checks the headers that describe the body, and reads it within its limits.
    async fn read<B>(
        &self,
        request: Request<B>,
        caller: TokenOwner,
    ) -> Result<(PostRequest, Charge), Response<McpBody>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            let message = "the content type is not application/json";
            return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let (accepts_json, accepts_events) = accepted(&parts.headers);
        if !accepts_json {
            let message = "the client must accept application/json and text/event-stream";
            return Err(plain(StatusCode::NOT_ACCEPTABLE, message));
        }
        let within = BodyLimits {
            bytes: self.core.limits.message_bytes,
            time: BODY_DEADLINE,
        };
        let body_read = self.bodies.read(body, &caller.share(), within).await;
        let body_read = body_read.map_err(|error| match error {
            IntakeError::TooLarge(limit) => too_large(limit),
            error => plain(error.status(), error.to_string()),
        })?;
        let post = PostRequest {
            headers: parts.headers,
            caller,
            body: body_read.bytes,
            accepts_events,
        };
        Ok((post, body_read.charge))
    }

    async fn post(self: &Arc<Self>, post: PostRequest, charge: Charge) -> Response<McpBody> {
        let step = self.step(&post).await;
        // From here on, only what the job has copied is kept.
        drop(post);
        match step {
            PostAction::Answered(response) => response,
            PostAction::Work(work) => self.perform(work, charge).await,
        }
    }

    async fn step(self: &Arc<Self>, post: &PostRequest) -> PostAction {
        let message = match wire::parse(&post.body) {
            Ok(message) => message,
            Err(refused) => return PostAction::Answered(refuse(&refused)),
        };
        match route::choose(&post.headers, &message) {
            Ok(route::Route::Modern(version)) => modern::step(self, post, message, version).await,
            Ok(route::Route::Legacy) => legacy::step(self, post, message).await,
            Err(error) => {
                let id = match message {
                    RpcMessage::Request(request) => Some(request.id),
                    RpcMessage::Notification(_) | RpcMessage::Response(_) => None,
                };
                PostAction::Answered(refuse(&InvalidMessage { id, error }))
            }
        }
    }

    /// Performs a job, if there is a place for it.
    async fn perform(self: &Arc<Self>, mut work: RunJob, mut charge: Charge) -> Response<McpBody> {
        let places = if work.job.is_call() {
            &self.calls
        } else {
            &self.reads
        };
        let Some(place) = places.take(&work.share) else {
            let (id, error) = (Some(work.id), busy());
            return refuse(&InvalidMessage { id, error });
        };
        charge.shrink(charge.held().saturating_sub(work.job.bytes()));
        work.charge = Some(charge);
        work.lease.mark_used();
        if work.lease.run().era.is_modern() {
            modern::perform(self, work, place).await
        } else {
            legacy::perform(self, work, place).await
        }
    }

    /// Combines an answer with what it takes to send it.
    fn exchange(
        &self,
        sending: ResponseOptions,
        answer: BoxFuture<'static, EncodedResponse>,
    ) -> HttpResponder {
        HttpResponder {
            answer,
            sending,
            outgoing: self.outgoing.clone(),
            keep_alive: self.core.limits.keep_alive,
        }
    }
}

impl fmt::Debug for PostRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers contain the caller's token.
        f.debug_struct("PostRequest")
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Returns how many threads the runtime works with.
fn threads() -> usize {
    tokio::runtime::Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers())
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let essence = value.and_then(|v| v.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Returns whether the client accepts JSON, and event streams. A client that does not say accepts everything.
fn accepted(headers: &HeaderMap) -> (bool, bool) {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return (true, true);
    }
    let (mut json, mut events) = (false, false);
    let types = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    for part in types {
        let essence = part.split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "*/*" => (json, events) = (true, true),
            "application/json" | "application/*" => json = true,
            "text/event-stream" | "text/*" => events = true,
            _ => {}
        }
    }
    (json, events)
}

/// Marks a response to a message that belongs to no run; the reason is for the host's record.
#[derive(Clone)]
struct StrayMessage(Cow<'static, str>);

/// Returns the refusal of a message, with the status for its error.
fn refuse(refused: &InvalidMessage) -> Response<McpBody> {
    let mut response = respond(
        EncodedResponse::error(refused.id.as_ref(), &refused.error),
        true,
    );
    let reason = StrayMessage(refused.error.message.clone());
    response.extensions_mut().insert(reason);
    response
}

/// Returns a JSON response. In the handshake era, an error in response to a valid request is a 200: clients do not read the body otherwise.
fn respond(answer: EncodedResponse, strict: bool) -> Response<McpBody> {
    let status = match answer.error {
        Some(RpcError::BUSY) => StatusCode::SERVICE_UNAVAILABLE,
        Some(RpcError::METHOD_NOT_FOUND) if strict => StatusCode::NOT_FOUND,
        Some(
            RpcError::PARSE
            | RpcError::INVALID_REQUEST
            | RpcError::HEADER_MISMATCH
            | RpcError::MISSING_CAPABILITY
            | RpcError::VERSION,
        ) => StatusCode::BAD_REQUEST,
        Some(RpcError::INVALID_PARAMS) if strict => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    json(status, answer.bytes)
}

fn json(status: StatusCode, bytes: Vec<u8>) -> Response<McpBody> {
    let mut response = Response::new(McpBody::whole(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}

/// Returns a refusal when there is no message to answer.
fn plain(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Response<McpBody> {
    let error = RpcError::invalid_request(message);
    let mut response = json(status, EncodedResponse::error(None, &error).bytes);
    response
        .extensions_mut()
        .insert(StrayMessage(error.message));
    response
}

/// Returns the error for a class of callers that makes the server hold too much.
fn busy() -> RpcError {
    let message =
        "too many requests are under way or too many answers untaken: try again in a moment";
    RpcError::new(RpcError::BUSY, message)
}

fn too_large(limit: usize) -> Response<McpBody> {
    let mut response = refuse(&InvalidMessage::too_long(limit));
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

fn not_allowed(allow: &'static str) -> Response<McpBody> {
    let mut response = plain(
        StatusCode::METHOD_NOT_ALLOWED,
        "this method is not served here",
    );
    let headers = response.headers_mut();
    headers.insert(ALLOW, http::HeaderValue::from_static(allow));
    response
}

/// Returns the response to a message that needs no answer.
fn accepted_empty() -> Response<McpBody> {
    let mut response = Response::new(McpBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

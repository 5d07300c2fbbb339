//! MCP over Streamable HTTP: one service for both eras, to be mounted at `/mcp`.
//!
//! Host, Origin and token are checked before it is reached (see [`crate::guard`]). A checked caller may be named by a
//! [`haft::call::Principal`] among the request's extensions: sessions are then theirs alone.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use haft::audit::BoxFuture;
use haft::call::Principal;
use http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::opener::{ByOperator, Transport};
use crate::server::{Answer, Core};
use crate::wire::{self, Message, Refused, RpcError};

mod exchange;
mod legacy;
mod modern;
mod reply_body;
mod route;
mod session;

pub use reply_body::McpBody;

use session::{Callers, Sessions};

/// How long a client may take to send a request's body.
const BODY_DEADLINE: Duration = Duration::from_secs(30);
/// Bodies are counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// The HTTP service. Clones share their sessions.
#[derive(Debug, Clone)]
pub struct McpService(Arc<Door>);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Door {
    core: Arc<Core>,
    sessions: Arc<Sessions>,
    callers: Arc<Callers>,
    /// Pieces of request bodies that may be held.
    bodies: Arc<Semaphore>,
    /// Streams of changes that may be open.
    streams: Arc<Semaphore>,
}

/// A POST that was read: the message's bytes, and what its headers said.
struct Post {
    headers: HeaderMap,
    principal: Option<Principal>,
    operator: bool,
    body: Bytes,
    /// Room for the body, given back when the request is done.
    room: OwnedSemaphorePermit,
    accepts_events: bool,
}

impl McpService {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let sessions = Arc::new(Sessions::new(&core.limits));
        let callers = Arc::new(Callers::new(&core.limits));
        Self(Arc::new(Door {
            bodies: Arc::new(Semaphore::new(core.limits.body_bytes / PIECE)),
            streams: Arc::new(Semaphore::new(core.limits.sessions)),
            core,
            sessions,
            callers,
        }))
    }

    /// Ends every session, stream and run. Requests that come later are refused or open new ones: stop listening first.
    pub fn shutdown(&self) {
        self.0.sessions.end_all();
        self.0.callers.end_all();
    }

    /// How many legacy sessions are open.
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

impl Door {
    async fn handle<B>(self: Arc<Self>, request: Request<B>) -> Response<McpBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut response = match *request.method() {
            Method::POST => match self.read(request).await {
                Ok(post) => self.post(post).await,
                Err(response) => response,
            },
            Method::GET => legacy::watch(&self, &request.into_parts().0),
            Method::DELETE => legacy::end(&self, &request.into_parts().0),
            _ => not_allowed("GET, POST, DELETE"),
        };
        if let Some(Stray(reason)) = response.extensions_mut().remove() {
            self.core.stray(Transport::Http, &reason);
        }
        response
    }

    /// Checks the headers that say what the body is, and reads it within its bounds.
    async fn read<B>(&self, request: Request<B>) -> Result<Post, Response<McpBody>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            let message = "the content type is not application/json";
            return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let (accepts_json, accepts_events) = accepted(&parts.headers);
        if !accepts_json {
            let message = "the client must accept application/json and text/event-stream";
            return Err(plain(StatusCode::NOT_ACCEPTABLE, message));
        }
        let limit = self.core.limits.message_bytes;
        let length = parts.headers.get(CONTENT_LENGTH);
        let length = length.and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let pieces = length.unwrap_or(limit) / PIECE + 1;
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.bodies).acquire_many_owned(pieces).await else {
            return Err(plain(StatusCode::SERVICE_UNAVAILABLE, "shutting down"));
        };
        let whole = Limited::new(body, limit).collect();
        let body = match tokio::time::timeout(BODY_DEADLINE, whole).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large(limit)),
            Ok(Err(_)) => return Err(plain(StatusCode::BAD_REQUEST, "the body broke off")),
            Err(_) => {
                return Err(plain(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body came too slowly",
                ));
            }
        };
        Ok(Post {
            principal: parts.extensions.remove::<Principal>(),
            operator: parts.extensions.get::<ByOperator>().is_some(),
            headers: parts.headers,
            body,
            room,
            accepts_events,
        })
    }

    async fn post(self: &Arc<Self>, post: Post) -> Response<McpBody> {
        let body = post.body.clone();
        let message = match wire::parse(&body) {
            Ok(message) => message,
            Err(refused) => return refuse(&refused),
        };
        match route::choose(&post.headers, &message) {
            Ok(route::Route::Modern(version)) => modern::serve(self, post, message, version).await,
            Ok(route::Route::Legacy) => legacy::serve(self, post, message).await,
            Err(error) => {
                let id = match message {
                    Message::Request(request) => Some(request.id),
                    Message::Notification(_) | Message::Response(_) => None,
                };
                refuse(&Refused { id, error })
            }
        }
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers carry the caller's token.
        f.debug_struct("Post")
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let essence = value.and_then(|v| v.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the client takes JSON, and event streams. One that says nothing takes all.
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
struct Stray(Cow<'static, str>);

/// A refusal of a message, with the status the error stands for.
fn refuse(refused: &Refused) -> Response<McpBody> {
    let mut response = respond(Answer::error(refused.id.as_ref(), &refused.error), true);
    let reason = Stray(refused.error.message.clone());
    response.extensions_mut().insert(reason);
    response
}

/// A JSON answer. In the handshake era an error that answers a sound request is a 200: its clients read no body otherwise.
fn respond(answer: Answer, strict: bool) -> Response<McpBody> {
    let status = match answer.error {
        Some(RpcError::BUSY) => StatusCode::SERVICE_UNAVAILABLE,
        Some(RpcError::METHOD_NOT_FOUND) if strict => StatusCode::NOT_FOUND,
        Some(
            RpcError::PARSE
            | RpcError::INVALID_REQUEST
            | RpcError::HEADER_MISMATCH
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

/// A refusal before there was a message to answer.
fn plain(status: StatusCode, message: &'static str) -> Response<McpBody> {
    let error = RpcError::invalid_request(message);
    let mut response = json(status, Answer::error(None, &error).bytes);
    response.extensions_mut().insert(Stray(message.into()));
    response
}

fn too_large(limit: usize) -> Response<McpBody> {
    let mut response = refuse(&Refused::too_long(limit));
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

/// Taken, and nothing to answer.
fn accepted_empty() -> Response<McpBody> {
    let mut response = Response::new(McpBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

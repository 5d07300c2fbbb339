//! The handshake era over HTTP: sessions identified by `Mcp-Session-Id`.

use std::sync::Arc;

use haft::bounds::ConcurrencyPermit;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use tokio::sync::mpsc;

use super::exchange::{self, ResponseOptions};
use super::resume::ResumableStream;
use super::session::SessionLease;
use super::{
    HttpState, McpBody, PostAction, PostRequest, RunJob, TokenOwner, accepted, accepted_empty,
    json, not_allowed, refuse, respond, route,
};
use crate::core::{EncodedResponse, ParsedRequest};
use crate::era::{Era, Revision};
use crate::filter::SubscriptionFilter;
use crate::job::Job;
use crate::listen::RunWatch;
use crate::opener::{ClientInfo, ClientOrigin, Transport};
use crate::replies::Reply;
use crate::wire::params::RequestParams;
use crate::wire::{
    self, InvalidMessage, RequestId, RpcError, RpcMessage, RpcNotification, RpcRequest, reply,
};

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
/// The error code that SDKs expect for an unknown session, along with status 404.
const NO_SESSION: i32 = -32001;

/// Maximum number of a change stream's frames queued for a client.
const MAX_QUEUED_FRAMES: usize = 16;

/// Handles a message of the handshake era.
pub(crate) async fn step(
    door: &Arc<HttpState>,
    post: &PostRequest,
    message: RpcMessage<'_>,
) -> PostAction {
    let leased = session(door, &post.headers, &post.caller);
    match message {
        RpcMessage::Request(request) => self::request(door, post, &request, leased).await,
        RpcMessage::Notification(notification) => PostAction::Answered(match leased {
            Ok(lease) => handle_notification(&lease, &notification),
            Err(why) => why.respond(None),
        }),
        RpcMessage::Response(response) => PostAction::Answered(match leased {
            Ok(lease) => handle_response(&lease, response, post.caller.operator),
            Err(why) => why.respond(None),
        }),
    }
}

async fn request(
    door: &Arc<HttpState>,
    post: &PostRequest,
    request: &RpcRequest<'_>,
    leased: Result<SessionLease, SessionLookupError>,
) -> PostAction {
    let id = &request.id;
    let job = RequestParams::parse(request.params).and_then(|p| Job::legacy(&request.method, &p));
    match job {
        Ok(job @ Job::Initialize(..)) => {
            return PostAction::Answered(open(door, post, id, job).await);
        }
        // A client may check that the server is there before it introduces itself.
        Ok(Job::Ping) if !post.headers.contains_key(SESSION_HEADER) => {
            return PostAction::Answered(json(StatusCode::OK, reply::empty(id)));
        }
        Err(error) if request.method == "initialize" => {
            return PostAction::Answered(respond(EncodedResponse::error(Some(id), &error), false));
        }
        _ => {}
    }
    let lease = match leased {
        Ok(lease) => lease,
        Err(why) => return PostAction::Answered(why.respond(Some(id))),
    };
    match job {
        Ok(job) => PostAction::Work(RunJob {
            lease,
            id: id.clone(),
            job: job.by(post.caller.operator),
            share: post.caller.share(),
            accepts_events: post.accepts_events,
            charge: None,
        }),
        Err(error) => {
            door.core
                .refused(lease.run(), Transport::Http, &error.message);
            PostAction::Answered(respond(EncodedResponse::error(Some(id), &error), false))
        }
    }
}

fn handle_notification(
    lease: &SessionLease,
    notification: &RpcNotification<'_>,
) -> Response<McpBody> {
    if notification.method == "notifications/cancelled"
        && let Ok(params) = RequestParams::parse(notification.params)
        && let Some(id) = params.request_id()
    {
        lease.run().in_flight.cancel(id);
    }
    accepted_empty()
}

/// Takes the client's answer to one of this server's requests; the response is the same if no request waits for it.
fn handle_response(
    lease: &SessionLease,
    response: wire::RpcResponse<'_>,
    operator: bool,
) -> Response<McpBody> {
    if let Some(id) = response.id {
        let reply = Reply {
            result: response.result.map(ToOwned::to_owned),
            error: response.error.map(ToOwned::to_owned),
            operator,
        };
        lease.run().replies.take(&id, reply);
    }
    accepted_empty()
}

/// Opens a session.
async fn open(
    door: &Arc<HttpState>,
    post: &PostRequest,
    id: &RequestId,
    job: Job,
) -> Response<McpBody> {
    let refused = |error| {
        let id = Some(id.clone());
        refuse(&InvalidMessage { id, error })
    };
    let Job::Initialize(revision, client_info, can) = &job else {
        return refused(RpcError::invalid_request("the session is not initialized"));
    };
    let share = post.caller.share();
    let arrival = ClientOrigin {
        transport: Transport::Http,
        principal: share.principal.clone(),
        view: post.caller.view.clone(),
        class: share.class,
    };
    let client = ClientInfo::new(
        client_info.clone(),
        can.clone(),
        Era::Legacy(*revision),
        arrival,
    );
    let run = match door.core.open(client).await {
        Ok(run) => run,
        Err(error) => return refused(RpcError::new(RpcError::INTERNAL, error.to_string())),
    };
    let Some(name) = door.sessions.add(&run, share) else {
        run.end();
        return refused(RpcError::new(
            RpcError::BUSY,
            "too many sessions are in use: end one, or try again later",
        ));
    };
    let answer = door.core.answer(&run, id, job, None).await;
    let mut response = respond(answer, false);
    response.headers_mut().insert(SESSION_HEADER, name);
    response
}

/// Performs a session's job. It continues when the client's connection breaks, as this era requires; a client cancels with a message.
pub(crate) async fn perform(
    door: &Arc<HttpState>,
    work: RunJob,
    place: ConcurrencyPermit,
) -> Response<McpBody> {
    let RunJob {
        lease,
        id,
        job,
        share,
        accepts_events,
        charge,
    } = work;
    let Some(ticket) = lease.run().in_flight.enter(&id) else {
        let error = RpcError::invalid_request("a request with this id is under way");
        return refuse(&InvalidMessage {
            id: Some(id),
            error,
        });
    };
    let (sender, notes) = (job.talks() && accepts_events)
        .then(exchange::notes)
        .unzip();
    let sending = ResponseOptions {
        id: id.clone(),
        share,
        notes,
        accepts_events,
        strict: false,
        resume: (lease.run().era >= Revision::V2025_11_25).then(|| Arc::clone(lease.streams())),
    };
    let (core, on_failure) = (Arc::clone(&door.core), id.clone());
    let work = tokio::spawn(async move {
        let request = ParsedRequest {
            id: id.clone(),
            job,
            notes: sender,
        };
        let work = Box::pin(core.bounded(lease.run(), request, (charge, place)));
        let done = ticket.run(work).await;
        lease.keep_for(done.as_ref());
        done.unwrap_or_else(|| {
            let error = RpcError::new(RpcError::CANCELLED, "the request was cancelled");
            EncodedResponse::error(Some(&id), &error)
        })
    });
    let answer = async move {
        work.await.unwrap_or_else(|_| {
            let error = RpcError::new(RpcError::INTERNAL, "the request failed");
            EncodedResponse::error(Some(&on_failure), &error)
        })
    };
    door.exchange(sending, Box::pin(answer)).respond().await
}

/// Handles a GET: a stream of the session's changes.
pub(crate) fn watch(
    door: &Arc<HttpState>,
    headers: &HeaderMap,
    caller: &TokenOwner,
) -> Response<McpBody> {
    if is_modern(headers) || !headers.contains_key(SESSION_HEADER) {
        return not_allowed("POST");
    }
    let (_, accepts_events) = accepted(headers);
    if !accepts_events {
        let message = "the client must accept text/event-stream";
        return super::plain(StatusCode::NOT_ACCEPTABLE, message);
    }
    let lease = match session(door, headers, caller) {
        Ok(lease) => lease,
        Err(why) => return why.respond(None),
    };
    let Some(place) = door.streams.take(&caller.share()) else {
        let error = RpcError::new(RpcError::BUSY, "too many streams of changes are open");
        return refuse(&InvalidMessage { id: None, error });
    };
    lease.mark_used();
    if let Some(lost) = lost_stream(headers, &lease) {
        return resume_stream(door, lease, place, lost);
    }
    let (frames, body) = mpsc::channel(MAX_QUEUED_FRAMES);
    let keep_alive = door.core.limits.keep_alive;
    tokio::spawn(async move {
        let mut watch = RunWatch::new(lease.run(), SubscriptionFilter::LISTS);
        let mut frame = exchange::ping();
        while frames.try_send(frame).is_ok() {
            frame = tokio::select! {
                () = frames.closed() => break,
                change = watch.next() => match change.notification(None) {
                    Some(told) => exchange::event(&told),
                    None => break,
                },
                () = tokio::time::sleep(keep_alive) => exchange::ping(),
            };
        }
        drop((place, lease));
    });
    exchange::events(body)
}

/// Returns the stream that a client lost, and the last event that it received.
fn lost_stream(headers: &HeaderMap, lease: &SessionLease) -> Option<LostStream> {
    let id = headers.get("last-event-id")?.to_str().ok()?;
    let (stream, event) = lease.streams().find(id)?;
    Some(LostStream { stream, event })
}

/// A stream that its client lost.
struct LostStream {
    stream: Arc<ResumableStream>,
    /// The last event that the client received.
    event: u64,
}

/// Resumes a stream that its client lost.
fn resume_stream(
    door: &Arc<HttpState>,
    lease: SessionLease,
    place: ConcurrencyPermit,
    lost: LostStream,
) -> Response<McpBody> {
    let (frames, body) = mpsc::channel(MAX_QUEUED_FRAMES);
    let keep_alive = door.core.limits.keep_alive;
    tokio::spawn(async move {
        let LostStream { stream, event } = lost;
        if stream.follow(event, &frames, keep_alive).await {
            lease.streams().forget(&stream);
        }
        drop((place, lease));
    });
    exchange::events(body)
}

/// Handles a DELETE: ends a session.
pub(crate) fn end(
    door: &Arc<HttpState>,
    headers: &HeaderMap,
    caller: &TokenOwner,
) -> Response<McpBody> {
    if is_modern(headers) || !headers.contains_key(SESSION_HEADER) {
        return not_allowed("POST");
    }
    match session(door, headers, caller) {
        Ok(lease) => {
            door.sessions.end(&lease);
            let mut response = Response::new(McpBody::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Err(why) => why.respond(None),
    }
}

fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(route::VERSION).and_then(|v| v.to_str().ok());
    version.is_some_and(|version| Revision::parse(version).is_none())
}

/// Why a request has no session.
#[derive(Debug, Clone, Copy)]
enum SessionLookupError {
    Unnamed,
    Unknown,
}

impl SessionLookupError {
    fn respond(self, id: Option<&RequestId>) -> Response<McpBody> {
        match self {
            Self::Unnamed => {
                let error = RpcError::invalid_request(
                    "the header Mcp-Session-Id is missing: send initialize first, or name the protocol version in _meta",
                );
                let id = id.cloned();
                refuse(&InvalidMessage { id, error })
            }
            Self::Unknown => {
                let error = RpcError::new(NO_SESSION, "no such session: send initialize again");
                let answer = EncodedResponse::error(id, &error);
                json(StatusCode::NOT_FOUND, answer.bytes)
            }
        }
    }
}

/// Returns the session that a request names. Another caller's session is treated as unknown.
fn session(
    door: &HttpState,
    headers: &HeaderMap,
    caller: &TokenOwner,
) -> Result<SessionLease, SessionLookupError> {
    let mut names = headers.get_all(SESSION_HEADER).iter();
    let name = names.next().ok_or(SessionLookupError::Unnamed)?;
    let alone = names.next().is_none();
    let found = name.to_str().ok().filter(|_| alone);
    let found = found.and_then(|name| door.sessions.lease(name, caller));
    found.ok_or(SessionLookupError::Unknown)
}

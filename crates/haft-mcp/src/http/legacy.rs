//! The handshake era over HTTP: sessions by `Mcp-Session-Id`.

use std::sync::Arc;

use haft::call::Principal;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::exchange::{self, Exchange};
use super::session::Lease;
use super::{
    Door, McpBody, Post, accepted, accepted_empty, json, not_allowed, refuse, respond, route,
};
use crate::era::{Era, Revision};
use crate::job::Job;
use crate::listen::{self, Change, Watch};
use crate::opener::{ClientInfo, Transport};
use crate::replies::Reply;
use crate::server::Answer;
use crate::wire::params::Params;
use crate::wire::{self, Id, Message, Refused, RpcError};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The code under which SDKs expect an unknown session, beside the status 404.
const NO_SESSION: i32 = -32001;

/// Answers a message of the handshake era.
pub(crate) async fn serve(door: &Arc<Door>, post: Post, message: Message<'_>) -> Response<McpBody> {
    let request = match message {
        Message::Request(request) => request,
        Message::Notification(notification) => {
            let lease = match session(door, &post.headers, post.principal.as_ref()) {
                Ok(lease) => lease,
                Err(why) => return why.respond(None),
            };
            if notification.method == "notifications/cancelled"
                && let Ok(params) = Params::parse(notification.params)
                && let Some(id) = params.request_id()
            {
                lease.run().in_flight.cancel(id);
            }
            return accepted_empty();
        }
        Message::Response(response) => return answered(door, &post, response),
    };
    let job = Params::parse(request.params).and_then(|p| Job::legacy(&request.method, &p));
    match job {
        Ok(job @ Job::Initialize(..)) => return open(door, post, request.id, job).await,
        Err(error) if request.method == "initialize" => {
            return respond(Answer::error(Some(&request.id), &error), false);
        }
        _ => {}
    }
    let lease = match session(door, &post.headers, post.principal.as_ref()) {
        Ok(lease) => lease,
        Err(why) => return why.respond(Some(request.id)),
    };
    match job {
        Ok(job) => {
            let job = job.by(post.operator);
            perform(door, post, lease, (request.id, job)).await
        }
        Err(error) => {
            lease.run().refused(&error.message);
            respond(Answer::error(Some(&request.id), &error), false)
        }
    }
}

/// Takes the client's answer to a request of ours; one that nobody waits for is as good.
fn answered(door: &Arc<Door>, post: &Post, response: wire::Response<'_>) -> Response<McpBody> {
    let lease = match session(door, &post.headers, post.principal.as_ref()) {
        Ok(lease) => lease,
        Err(why) => return why.respond(None),
    };
    if let Some(id) = response.id {
        let reply = Reply {
            result: response.result.map(ToOwned::to_owned),
            operator: post.operator,
        };
        lease.run().replies.take(&id, reply);
    }
    accepted_empty()
}

/// Opens a session.
async fn open(door: &Arc<Door>, post: Post, id: Id, job: Job) -> Response<McpBody> {
    let refused = |error| {
        let id = Some(id.clone());
        refuse(&Refused { id, error })
    };
    if !door.sessions.make_room() {
        return refused(RpcError::new(
            RpcError::BUSY,
            "too many sessions are open: end one, or try again later",
        ));
    }
    let principal = post.principal;
    let Job::Initialize(revision, said, can) = &job else {
        return refused(RpcError::invalid_request("the session is not initialized"));
    };
    let from = (Transport::Http, principal.clone());
    let client = ClientInfo::new(said.clone(), *can, Era::Legacy(*revision), from);
    let opened = door.core.open(client).await;
    let run = match opened {
        Ok(run) => run,
        Err(error) => return refused(RpcError::new(RpcError::INTERNAL, error.to_string())),
    };
    let Some(name) = door.sessions.add(&run, principal) else {
        run.end();
        return refused(RpcError::new(RpcError::BUSY, "no session could be named"));
    };
    let answer = door.core.answer(&run, &id, job, None).await;
    let mut response = respond(answer, false);
    response.headers_mut().insert(SESSION, name);
    response
}

/// Does a job of a session. It goes on when the client's connection breaks, as the era wants; the client cancels by saying so.
async fn perform(
    door: &Arc<Door>,
    post: Post,
    lease: Lease,
    (id, job): (Id, Job),
) -> Response<McpBody> {
    let Some(ticket) = lease.run().in_flight.enter(&id) else {
        let error = RpcError::invalid_request("a request with this id is under way");
        return refuse(&Refused {
            id: Some(id),
            error,
        });
    };
    let asks = lease.run().client.elicitation.any();
    let talks = matches!(&job, Job::Call(call) if call.token.is_some() || asks);
    let (said, notes) = (talks && post.accepts_events)
        .then(exchange::channel)
        .unzip();
    let (core, room) = (Arc::clone(&door.core), post.room);
    let on_failure = id.clone();
    let work = tokio::spawn(async move {
        let work = Box::pin(core.answer(lease.run(), &id, job, said));
        let done = ticket.run(work).await;
        drop(room);
        lease.keep_for(done.as_ref());
        done.unwrap_or_else(|| {
            let error = RpcError::new(RpcError::CANCELLED, "the request was cancelled");
            Answer::error(Some(&id), &error)
        })
    });
    let answer = async move {
        work.await.unwrap_or_else(|_| {
            let error = RpcError::new(RpcError::INTERNAL, "the request failed");
            Answer::error(Some(&on_failure), &error)
        })
    };
    Exchange {
        answer: Box::pin(answer),
        notes,
        accepts_events: post.accepts_events,
        strict: false,
        keep_alive: door.core.limits.keep_alive,
    }
    .respond()
    .await
}

/// GET: a stream of the session's changes.
pub(crate) fn watch(door: &Arc<Door>, request: &Parts) -> Response<McpBody> {
    let headers = &request.headers;
    if is_modern(headers) || !headers.contains_key(SESSION) {
        return not_allowed("POST");
    }
    let (_, accepts_events) = accepted(headers);
    if !accepts_events {
        let message = "the client must accept text/event-stream";
        return super::plain(StatusCode::NOT_ACCEPTABLE, message);
    }
    let lease = match session(door, headers, request.extensions.get()) {
        Ok(lease) => lease,
        Err(why) => return why.respond(None),
    };
    let Ok(permit) = Arc::clone(&door.streams).try_acquire_owned() else {
        let error = RpcError::new(RpcError::BUSY, "too many streams of changes are open");
        return refuse(&Refused { id: None, error });
    };
    let (frames, body) = exchange::channel();
    let keep_alive = door.core.limits.keep_alive;
    tokio::spawn(async move {
        let mut watch = Watch::new(lease.run(), true);
        let mut frame = exchange::ping();
        while frames.try_send(frame).is_ok() {
            frame = tokio::select! {
                () = frames.closed() => break,
                change = watch.next() => match change {
                    Change::Tools => exchange::event(&listen::legacy_changed()),
                    Change::Over => break,
                },
                () = tokio::time::sleep(keep_alive) => exchange::ping(),
            };
        }
        drop((permit, lease));
    });
    exchange::events(body)
}

/// DELETE: ends a session.
pub(crate) fn end(door: &Arc<Door>, request: &Parts) -> Response<McpBody> {
    let headers = &request.headers;
    if is_modern(headers) || !headers.contains_key(SESSION) {
        return not_allowed("POST");
    }
    match session(door, headers, request.extensions.get()) {
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
enum NoSession {
    Unnamed,
    Unknown,
}

impl NoSession {
    fn respond(self, id: Option<Id>) -> Response<McpBody> {
        match self {
            Self::Unnamed => {
                let error = RpcError::invalid_request(
                    "the header Mcp-Session-Id is missing: send initialize first, or name the protocol version in _meta",
                );
                refuse(&Refused { id, error })
            }
            Self::Unknown => {
                let error = RpcError::new(NO_SESSION, "no such session: send initialize again");
                let answer = Answer::error(id.as_ref(), &error);
                json(StatusCode::NOT_FOUND, answer.bytes)
            }
        }
    }
}

/// The session a request names. Another's is as unknown as one that never was.
fn session(
    door: &Door,
    headers: &HeaderMap,
    principal: Option<&Principal>,
) -> Result<Lease, NoSession> {
    let name = headers.get(SESSION).ok_or(NoSession::Unnamed)?;
    let found = name.to_str().ok();
    let found = found.and_then(|name| door.sessions.lease(name, principal));
    found.ok_or(NoSession::Unknown)
}

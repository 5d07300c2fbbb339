//! The stateless era over HTTP: every POST stands alone.

use std::sync::Arc;

use http::Response;
use tokio::sync::mpsc;

use super::exchange::{self, Exchange};
use super::session::Lease;
use super::{Door, McpBody, Post, accepted_empty, refuse, route};
use crate::elicit::Elicitation;
use crate::era::{Era, MODERN};
use crate::job::{Envelope, Job, unsupported_version};
use crate::listen::{self, Change, Watch};
use crate::opener::{ClientInfo, Transport};
use crate::wire::params::Params;
use crate::wire::{Id, Message, Refused, Request, RpcError};

/// Answers a message of the stateless era.
pub(crate) async fn serve(
    door: &Arc<Door>,
    post: Post,
    message: Message<'_>,
    version: String,
) -> Response<McpBody> {
    let request = match message {
        Message::Request(request) => request,
        // Nothing a notification says means anything here: closing the stream is how a client cancels.
        Message::Notification(_) if version == MODERN => return accepted_empty(),
        Message::Notification(_) => {
            let error = unsupported_version(&version);
            return refuse(&Refused { id: None, error });
        }
        Message::Response(_) => {
            let error = RpcError::invalid_request("no answer was asked for");
            return refuse(&Refused { id: None, error });
        }
    };
    let prepared = prepare(door, &post, &request).await;
    match prepared {
        Ok((lease, job)) => perform(door, post, lease, (request.id, job)).await,
        Err(error) => {
            let id = Some(request.id);
            refuse(&Refused { id, error })
        }
    }
}

async fn prepare(
    door: &Door,
    post: &Post,
    request: &Request<'_>,
) -> Result<(Lease, Job), RpcError> {
    let params = Params::parse(request.params)?;
    let envelope = Envelope::read(params.meta()?)?;
    let named = params.named(&request.method);
    route::check(&post.headers, &envelope.version, &request.method, named)?;
    let envelope = envelope.served()?;
    let job = envelope.job(&request.method, &params)?;
    let job = job.by(post.operator);
    let (client, can) = (
        envelope.meta.client_info(),
        envelope.meta.client_capabilities,
    );
    let can = Elicitation::of(can, Era::Modern);
    let from = (Transport::Http, post.principal.clone());
    let client = ClientInfo::new(client, can, Era::Modern, from);
    let lease = door.callers.lease(&door.core, client).await?;
    Ok((lease, job))
}

async fn perform(
    door: &Arc<Door>,
    post: Post,
    lease: Lease,
    (id, job): (Id, Job),
) -> Response<McpBody> {
    if let Job::Listen(tools) = job {
        return subscribe(door, lease, id, tools);
    }
    let progress = matches!(&job, Job::Call(call) if call.token.is_some()) && post.accepts_events;
    let (said, notes) = progress.then(exchange::channel).unzip();
    let (core, room) = (Arc::clone(&door.core), post.room);
    let answer = async move {
        let answer = core.answer(lease.run(), &id, job, said).await;
        drop(room);
        lease.keep_for(Some(&answer));
        answer
    };
    Exchange {
        answer: Box::pin(answer),
        notes,
        accepts_events: post.accepts_events,
        strict: true,
        keep_alive: door.core.limits.keep_alive,
    }
    .respond()
    .await
}

/// A stream of changes, until the client goes or the server ends.
fn subscribe(door: &Arc<Door>, lease: Lease, id: Id, tools: bool) -> Response<McpBody> {
    let Ok(permit) = Arc::clone(&door.streams).try_acquire_owned() else {
        let error = RpcError::new(RpcError::BUSY, "too many streams of changes are open");
        return refuse(&Refused {
            id: Some(id),
            error,
        });
    };
    let (frames, body) = exchange::channel();
    let (door, mut watch) = (Arc::clone(door), Watch::new(lease.run(), tools));
    tokio::spawn(async move {
        let mut frame = exchange::event(&listen::acknowledged(&id, tools));
        while send(&frames, frame) {
            frame = tokio::select! {
                () = frames.closed() => break,
                change = watch.next() => match change {
                    Change::Tools => exchange::event(&listen::changed(&id)),
                    Change::Over => {
                        let last = listen::finished(&id, door.core.info());
                        send(&frames, exchange::event(&last));
                        break;
                    }
                },
                () = tokio::time::sleep(door.core.limits.keep_alive) => exchange::ping(),
            };
        }
        drop((permit, lease));
    });
    exchange::events(body)
}

/// Sends a frame; false when the client is gone or so far behind that the stream must end.
fn send(frames: &mpsc::Sender<Vec<u8>>, frame: Vec<u8>) -> bool {
    frames.try_send(frame).is_ok()
}

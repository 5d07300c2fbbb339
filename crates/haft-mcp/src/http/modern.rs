//! The stateless era over HTTP: every POST is self-contained.

use std::sync::Arc;

use bytes::Bytes;
use haft::bounds::ConcurrencyPermit;
use http::Response;
use tokio::sync::mpsc;

use super::exchange::{self, ResponseOptions};
use super::{
    HttpState, McpBody, PostAction, PostRequest, RunJob, accepted_empty, mirrored, refuse, route,
};
use crate::capabilities::ClientCapabilities;
use crate::core::ParsedRequest;
use crate::era::{Era, MODERN};
use crate::filter::SubscriptionFilter;
use crate::job::{Job, RequestEnvelope, unsupported_version};
use crate::listen::{self, RunWatch};
use crate::opener::{ClientInfo, ClientOrigin, Transport};
use crate::wire::params::RequestParams;
use crate::wire::{InvalidMessage, RpcError, RpcMessage, RpcRequest};

/// Maximum number of a change stream's frames queued for a client.
const MAX_QUEUED_FRAMES: usize = 16;

/// Handles a message of the stateless era.
pub(crate) async fn step(
    door: &Arc<HttpState>,
    post: &PostRequest,
    message: RpcMessage<'_>,
    version: String,
) -> PostAction {
    let request = match message {
        RpcMessage::Request(request) => request,
        // Notifications have no meaning here: a client cancels by closing the stream.
        RpcMessage::Notification(_) if version == MODERN => {
            return PostAction::Answered(accepted_empty());
        }
        RpcMessage::Notification(_) => {
            let error = unsupported_version(&version);
            return PostAction::Answered(refuse(&InvalidMessage { id: None, error }));
        }
        RpcMessage::Response(_) => {
            let error = RpcError::invalid_request("no answer was asked for");
            return PostAction::Answered(refuse(&InvalidMessage { id: None, error }));
        }
    };
    match prepare(door, post, &request).await {
        Ok(work) => PostAction::Work(work),
        Err(error) => {
            let id = Some(request.id);
            PostAction::Answered(refuse(&InvalidMessage { id, error }))
        }
    }
}

async fn prepare(
    door: &HttpState,
    post: &PostRequest,
    request: &RpcRequest<'_>,
) -> Result<RunJob, RpcError> {
    let params = RequestParams::parse(request.params)?;
    let envelope = RequestEnvelope::read(params.meta()?)?;
    let named = params.named(&request.method);
    route::check(&post.headers, &envelope.version, &request.method, named)?;
    let envelope = envelope.served()?;
    let job = envelope.job(&request.method, &params)?;
    let job = job.by(post.caller.operator);
    let (client, can) = (
        envelope.meta.client_info(),
        envelope.meta.client_capabilities,
    );
    let can = ClientCapabilities::of(can, Era::Modern);
    let share = post.caller.share();
    let arrival = ClientOrigin {
        transport: Transport::Http,
        principal: share.principal.clone(),
        view: post.caller.view.clone(),
        class: share.class,
    };
    let client = ClientInfo::new(client, can, Era::Modern, arrival);
    let lease = door.callers.lease(&door.core, client, &share).await?;
    if let Job::Call(call) = &job
        && let Some(entry) = lease.run().session.tools().entry(&call.name)
    {
        mirrored::check(&post.headers, &entry.spec().input_schema, &call.arguments)?;
    }
    Ok(RunJob {
        lease,
        id: request.id.clone(),
        job,
        share,
        accepts_events: post.accepts_events,
        charge: None,
    })
}

/// Performs a job. It ends when the client disconnects.
pub(crate) async fn perform(
    door: &Arc<HttpState>,
    mut work: RunJob,
    place: ConcurrencyPermit,
) -> Response<McpBody> {
    if let Job::Listen(filter) = &mut work.job {
        let filter = std::mem::take(filter);
        // A stream takes a place among the streams instead.
        drop(place);
        return subscribe(door, work, filter);
    }
    let RunJob {
        lease,
        id,
        job,
        share,
        accepts_events,
        charge,
    } = work;
    let talks = job.talks() && accepts_events;
    let (sender, notes) = talks.then(exchange::notes).unzip();
    let sending = ResponseOptions {
        id: id.clone(),
        share,
        notes,
        accepts_events,
        strict: true,
        resume: None,
    };
    let core = Arc::clone(&door.core);
    let answer = async move {
        let request = ParsedRequest {
            id,
            job,
            notes: sender,
        };
        let answer = core.bounded(lease.run(), request, (charge, place)).await;
        lease.keep_for(Some(&answer));
        answer
    };
    door.exchange(sending, Box::pin(answer)).respond().await
}

/// Opens a stream of changes, which lasts until the client disconnects or the server ends.
fn subscribe(door: &Arc<HttpState>, work: RunJob, filter: SubscriptionFilter) -> Response<McpBody> {
    let RunJob {
        lease, id, share, ..
    } = work;
    let Some(place) = door.streams.take(&share) else {
        let error = RpcError::new(RpcError::BUSY, "too many streams of changes are open");
        return refuse(&InvalidMessage {
            id: Some(id),
            error,
        });
    };
    let (frames, body) = mpsc::channel(MAX_QUEUED_FRAMES);
    let door = Arc::clone(door);
    tokio::spawn(async move {
        let mut watch = RunWatch::subscribe(lease.run(), filter).await;
        let mut frame = exchange::event(&listen::acknowledged(&id, watch.filter()));
        while send(&frames, frame) {
            frame = tokio::select! {
                () = frames.closed() => break,
                change = watch.next() => {
                    let Some(notification) = change.notification(Some(&id)) else {
                        let last = listen::finished(&id, door.core.info());
                        send(&frames, exchange::event(&last));
                        break;
                    };
                    exchange::event(&notification)
                }
                () = tokio::time::sleep(door.core.limits.keep_alive) => exchange::ping(),
            };
        }
        drop((watch, place, lease));
    });
    exchange::events(body)
}

/// Sends a frame; returns false if the client is gone, or so slow that the stream must end.
fn send(frames: &mpsc::Sender<Bytes>, frame: Bytes) -> bool {
    frames.try_send(frame).is_ok()
}

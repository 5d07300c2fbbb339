//! `HttpResponder`: the response to one request: JSON, or an event stream if there is something to send before the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::bounds::ShareKey;
use haft::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use tokio::sync::mpsc;

use super::resume::{ResumableStream, ResumableStreams};
use super::{McpBody, busy, respond};
use crate::core::EncodedResponse;
use crate::intake::OutgoingBudget;
use crate::wire::RequestId;

/// Frames queued for a client that asked for progress: only a few, since further progress is collected where it is charged.
const MAX_QUEUED_FRAMES: usize = 2;

/// A request in progress.
pub(crate) struct HttpResponder {
    /// The answer. Dropping it cancels the work unless something else holds it.
    pub(crate) answer: BoxFuture<'static, EncodedResponse>,
    pub(crate) sending: ResponseOptions,
    /// Charges the answer until it is sent.
    pub(crate) outgoing: OutgoingBudget,
    pub(crate) keep_alive: Duration,
}

/// How to send an answer.
#[derive(Debug)]
pub(crate) struct ResponseOptions {
    /// The request that it answers.
    pub(crate) id: RequestId,
    /// Whose share of unsent answers it uses.
    pub(crate) share: ShareKey,
    /// Notifications that precede the answer, for a client that accepts event streams.
    pub(crate) notes: Option<mpsc::Receiver<Vec<u8>>>,
    /// Whether the client accepts event streams.
    pub(crate) accepts_events: bool,
    /// Whether the HTTP status reflects errors (2026-07-28).
    pub(crate) strict: bool,
    /// Keeps a stream that its client may lose (2025-11-25).
    pub(crate) resume: Option<Arc<ResumableStreams>>,
}

impl HttpResponder {
    /// Waits for whichever comes first: the answer, a notification, or a silence that calls for a keep-alive.
    pub(crate) async fn respond(mut self) -> Response<McpBody> {
        let first = tokio::select! {
            biased;
            answer = &mut self.answer => {
                // A notification sent while the answer was made still precedes it.
                let Some(note) = self.sending.notes.as_mut().and_then(|notes| notes.try_recv().ok()) else {
                    return respond(answer, self.sending.strict);
                };
                self.answer = Box::pin(std::future::ready(answer));
                Some(note)
            }
            Some(note) = next(&mut self.sending.notes) => Some(note),
            () = tokio::time::sleep(self.keep_alive), if self.sending.accepts_events => None,
        };
        let (frames, body) = mpsc::channel(MAX_QUEUED_FRAMES);
        let lost = self.sending.resume.as_ref().map(|streams| streams.begin());
        let opening = match &lost {
            Some(stream) => Some(stream.first_event()),
            None if first.is_none() => Some(ping()),
            None => None,
        };
        let first = first.map(|note| event_to_resume(lost.as_deref(), &note));
        for frame in opening.into_iter().chain(first) {
            // The channel is new and has room for two.
            let _first = frames.try_send(frame);
        }
        tokio::spawn(self.stream(lost, frames));
        events(body)
    }

    /// Sends the notifications, then the answer. A client that disconnects ends this, unless it can resume the stream. What a
    /// slow client has not received waits at its source; the work itself continues.
    async fn stream(mut self, lost: Option<Arc<ResumableStream>>, frames: mpsc::Sender<Bytes>) {
        loop {
            let said = async {
                // The select below notices a client that is gone.
                let room = frames.reserve().await.ok()?;
                let note = next(&mut self.sending.notes).await?;
                Some((room, note))
            };
            tokio::select! {
                biased;
                () = frames.closed() => break,
                Some((room, note)) = said => {
                    let event = event_to_resume(lost.as_deref(), &note);
                    room.send(event);
                }
                answer = &mut self.answer => {
                    while let Some(Ok(note)) = self.sending.notes.as_mut().map(mpsc::Receiver::try_recv) {
                        let event = event_to_resume(lost.as_deref(), &note);
                        let _gone = frames.send(event).await;
                    }
                    let last = self.last(lost.as_deref(), &answer);
                    let sent = frames.send(last).await.is_ok();
                    return self.over(lost, sent);
                }
                () = tokio::time::sleep(self.keep_alive) => {
                    let _full = frames.try_send(ping());
                }
            }
        }
        if let Some(stream) = lost {
            self.keep_for_absent_client(stream).await;
        }
    }

    /// Keeps the notifications and the answer for a client that lost its stream.
    async fn keep_for_absent_client(mut self, stream: Arc<ResumableStream>) {
        loop {
            tokio::select! {
                biased;
                Some(note) = next(&mut self.sending.notes) => {
                    event_to_resume(Some(&stream), &note);
                }
                answer = &mut self.answer => {
                    while let Some(Ok(note)) = self.sending.notes.as_mut().map(mpsc::Receiver::try_recv) {
                        event_to_resume(Some(&stream), &note);
                    }
                    self.last(Some(&stream), &answer);
                    return self.over(Some(stream), false);
                }
            }
        }
    }

    /// Keeps an ended stream for a while, for a client that lost it.
    fn over(&self, lost: Option<Arc<ResumableStream>>, sent: bool) {
        if let Some((streams, stream)) = self.sending.resume.as_ref().zip(lost) {
            streams.forget_later(stream, sent);
        }
    }

    /// Returns the answer as the stream's last event, charged until it is sent and for as long as it is kept.
    fn last(&self, lost: Option<&ResumableStream>, answer: &EncodedResponse) -> Bytes {
        let ResponseOptions { id, share, .. } = &self.sending;
        let (number, line) = lost.map(ResumableStream::next_id).unwrap_or_default();
        let held = self.outgoing.hold(event_with(&line, &answer.bytes), share);
        let busy = || event_with(&line, &EncodedResponse::error(Some(id), &busy()).bytes);
        let last = held.unwrap_or_else(busy);
        if let Some(stream) = lost {
            stream.keep(number, &last, true);
        }
        last
    }
}

/// Returns the next notification; `None` if there are none to come.
async fn next(notes: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match notes {
        Some(notes) => notes.recv().await,
        None => None,
    }
}

/// Returns a message as an event, and keeps it if its client can resume the stream.
fn event_to_resume(lost: Option<&ResumableStream>, message: &[u8]) -> Bytes {
    let Some(stream) = lost else {
        return event(message);
    };
    let (number, id) = stream.next_id();
    let event = event_with(&id, message);
    stream.keep(number, &event, false);
    event
}

/// Returns a message as an event.
pub(crate) fn event(message: &[u8]) -> Bytes {
    event_with("", message)
}

/// Returns a message as an event, preceded by the line with its id.
fn event_with(id: &str, message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + id.len() + 32);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b"event: message\ndata: ");
    // A newline would end the event's line; in JSON, it can only be layout.
    out.extend(
        message
            .iter()
            .map(|&b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }),
    );
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// Returns a keep-alive comment.
pub(crate) fn ping() -> Bytes {
    Bytes::from_static(b": ping\n\n")
}

/// Returns the start of an event stream.
pub(crate) fn events(frames: mpsc::Receiver<Bytes>) -> Response<McpBody> {
    let mut response = Response::new(McpBody::events(frames));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    let not_kept = HeaderValue::from_static("no-store, no-transform");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, not_kept);
    // Proxies that buffer output would delay progress.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    response
}

/// Returns a channel for notifications that precede an answer.
pub(crate) fn notes() -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>) {
    mpsc::channel(MAX_QUEUED_FRAMES)
}

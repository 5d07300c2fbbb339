//! `SseWire`: the wire to a server with HTTP+SSE (2024-11-05): one event stream for everything that the server sends, and an
//! address, named by the first event, for what haft sends.
//!
//! The transport is deprecated; haft only uses it for servers that support no other. A stream that breaks off cannot be resumed:
//! the wire closes, and the next call opens a new one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft::text::clip;
use haft_http::connections::HttpExchange;
use haft_http::waits::Waits;
use haft_wire::events::{SseEvent, SseParser};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use url::Url;

use crate::client::courier::{Courier, MAX_REFUSAL_BODY, whole};
use crate::client::endpoint::Endpoint;
use crate::client::error::ClientError;
use crate::client::pending::AwaitedResponses;
use crate::client::server_change::ServerChange;
use crate::client::speech;
use crate::client::wire::{Wire, WireRequest};
use crate::era::Era;

/// Time limit for a server to name the address for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a server to accept a final notice.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// The wire to a server with HTTP+SSE.
pub(crate) struct SseWire {
    post: Arc<SsePostTarget>,
    pending: Arc<AwaitedResponses>,
    reader: JoinHandle<()>,
}

/// Where messages are sent.
struct SsePostTarget {
    courier: Arc<Courier>,
    to: Endpoint,
}

impl Drop for SseWire {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl SseWire {
    /// Opens the stream and waits until the server has named the address for messages.
    pub(crate) async fn open(courier: Arc<Courier>) -> Result<Self, ClientError> {
        let named = tokio::time::timeout(ENDPOINT_TIMEOUT, begin(&courier)).await;
        let (stream, to) = named.map_err(|_| ClientError::Late {
            method: "the stream's beginning".into(),
            limit: ENDPOINT_TIMEOUT,
            said: String::new(),
        })??;
        let post = Arc::new(SsePostTarget {
            to: Endpoint {
                url: to,
                ..courier.endpoint.clone()
            },
            courier,
        });
        let pending = Arc::new(AwaitedResponses::new());
        let reader = tokio::spawn(read(stream, Arc::clone(&pending), Arc::clone(&post)));
        Ok(Self {
            post,
            pending,
            reader,
        })
    }

    fn closed() -> ClientError {
        let said = "its stream of events ended".to_owned();
        ClientError::Closed { said }
    }
}

/// Removes a request when its caller stops waiting, and tells the server.
struct SseCancelGuard<'a> {
    wire: &'a SseWire,
    id: u64,
}

impl Drop for SseCancelGuard<'_> {
    fn drop(&mut self) {
        if !self.wire.pending.forget(self.id) || !self.wire.is_open() {
            return;
        }
        let (post, id) = (Arc::clone(&self.wire.post), self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let tell = post.send(speech::cancelled(id));
                let _gone = tokio::time::timeout(NOTICE_TIMEOUT, tell).await;
            });
        }
    }
}

impl Wire for SseWire {
    fn ask<'a>(&'a self, mut ask: WireRequest<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let answered = self.pending.begin(&mut ask);
            let _waiting = SseCancelGuard {
                wire: self,
                id: ask.id,
            };
            if !self.is_open() {
                return Err(Self::closed());
            }
            self.post.send(ask.message).await?;
            match answered.await {
                Ok(Err(ClientError::Closed { .. })) | Err(_) => Err(Self::closed()),
                Ok(answer) => answer,
            }
        })
    }

    fn send_notification(
        &self,
        message: Vec<u8>,
        _era: Era,
    ) -> BoxFuture<'_, Result<(), ClientError>> {
        Box::pin(self.post.send(message))
    }

    fn transport(&self) -> &'static str {
        "sse"
    }

    fn is_open(&self) -> bool {
        self.pending.is_open()
    }

    fn list_changes(&self) -> watch::Receiver<u64> {
        self.pending.list_changes()
    }

    fn news(&self) -> broadcast::Receiver<ServerChange> {
        self.pending.news()
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn may_ignore_discover(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.reader.abort();
        self.pending.end();
        self.post.courier.close();
        Box::pin(std::future::ready(()))
    }
}

impl SsePostTarget {
    async fn send(&self, message: Vec<u8>) -> Result<(), ClientError> {
        let exchange = self.courier.send(self.to.post(message)?).await?;
        let exchange = match self.courier.check_status(exchange).await {
            // The address belongs to this stream, so the server no longer knows the stream.
            Err(ClientError::Http { status: 404, .. }) => return Err(ClientError::SessionOver),
            other => other?,
        };
        whole(exchange, MAX_REFUSAL_BODY).await.map(drop)
    }
}

/// A stream, with the events that came after the first one.
struct SseStream {
    exchange: HttpExchange,
    events: SseParser,
    first_events: Vec<SseEvent>,
}

/// Opens the stream and reads the address that its first event names.
async fn begin(courier: &Courier) -> Result<(SseStream, Url), ClientError> {
    let endpoint = &courier.endpoint;
    let exchange = courier.send(endpoint.stream()?).await?;
    let exchange = courier.check_status(exchange).await?;
    if !exchange.is_event_stream() {
        return Err(ClientError::Malformed(
            "it answers with no stream of events".into(),
        ));
    }
    let mut stream = SseStream {
        exchange,
        events: SseParser::new(endpoint.longest),
        first_events: Vec::new(),
    };
    let longest = endpoint.longest;
    while let Some(part) = stream.exchange.next(&Waits::default()).await? {
        let found = stream.events.push(&part);
        let mut found = found
            .map_err(|_| ClientError::TooLong(longest))?
            .into_iter();
        if let Some(first) = found.by_ref().find(|event| event.kind == "endpoint") {
            let to = address(&endpoint.url, &String::from_utf8_lossy(&first.data))?;
            stream.first_events = found.collect();
            return Ok((stream, to));
        }
    }
    Err(SseWire::closed())
}

/// Parses the address for messages. It must have the same origin, since haft's credentials are sent to it.
fn address(base: &Url, named: &str) -> Result<Url, ClientError> {
    let wrong = |why: &str| {
        let named = clip(named, 200);
        ClientError::Malformed(format!(
            "the address that it takes messages at, {named:?}, {why}"
        ))
    };
    let url = base.join(named.trim()).map_err(|_| wrong("is not a URL"))?;
    if url.origin() != base.origin() {
        return Err(wrong("is of another origin than the server's"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a login"));
    }
    Ok(url)
}

/// Reads messages until the stream ends, then fails all requests in progress.
async fn read(mut stream: SseStream, pending: Arc<AwaitedResponses>, post: Arc<SsePostTarget>) {
    let longest = post.to.longest;
    let first_events = std::mem::take(&mut stream.first_events);
    handle_events(first_events, &pending, &post);
    while let Ok(Some(part)) = stream.exchange.next(&Waits::default()).await {
        let Ok(events) = stream.events.push(&part) else {
            pending.fail_overlong(&[], longest);
            break;
        };
        handle_events(events, &pending, &post);
    }
    pending.end();
}

fn handle_events(events: Vec<SseEvent>, pending: &AwaitedResponses, post: &Arc<SsePostTarget>) {
    let messages = events.into_iter();
    for event in messages.filter(|event| matches!(event.kind.as_str(), "" | "message")) {
        if let Some((inquiry, ask)) = pending.hear(event.data.into()) {
            let post = Arc::clone(post);
            inquiry.answer(ask, async move |answer| {
                let send = post.send(answer);
                let _gone = tokio::time::timeout(NOTICE_TIMEOUT, send).await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_origin_of_the_stream_and_nowhere_else() {
        let base = Url::parse("https://tickets.example:8443/a/sse?key=1").unwrap();
        for (named, expect) in [
            (
                "/messages/?session_id=1",
                Ok("https://tickets.example:8443/messages/?session_id=1"),
            ),
            ("messages", Ok("https://tickets.example:8443/a/messages")),
            ("?s=1", Ok("https://tickets.example:8443/a/sse?s=1")),
            (
                "https://tickets.example:8443/m",
                Ok("https://tickets.example:8443/m"),
            ),
            ("https://tickets.example/m", Err("another origin")),
            ("http://tickets.example:8443/m", Err("another origin")),
            ("https://other.example:8443/m", Err("another origin")),
            ("//other.example:8443/m", Err("another origin")),
            ("/\\other.example/m", Err("another origin")),
            ("https://a:b@tickets.example:8443/m", Err("holds a login")),
            ("file:///etc/passwd", Err("another origin")),
            ("http://[", Err("is not a URL")),
        ] {
            match (address(&base, named), expect) {
                (Ok(url), Ok(expect)) => assert_eq!(url.as_str(), expect),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{named}: {error}");
                }
                (found, expect) => panic!("{named}: {found:?}, not {expect:?}"),
            }
        }
    }
}

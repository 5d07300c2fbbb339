//! The wire of a server behind Streamable HTTP: a POST for each message, answered by JSON or by a stream of events.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft::future::BoxFuture;
use haft::progress::Progress;
use haft::text::clip;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::client::connections::{Connections, Dial, Exchange};
use crate::client::error::ClientError;
use crate::client::events::Events;
use crate::client::speech::{self, Heard};
use crate::client::wire::{Ask, Wire};
use crate::era::Era;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long to wait before a stream that broke off is asked for again, where the server says nothing.
const RETRY: Duration = Duration::from_millis(500);
/// How long a server may take to accept a notice at the end: that a request was cancelled, that a session is over.
const NOTICE_LIMIT: Duration = Duration::from_secs(5);
/// How often a stream is asked for again.
const MOST_RETRIES: usize = 20;
/// The longest body of a refusal that is read.
const REFUSAL: usize = 64 * 1024;

/// Where a server is.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Host and port, as the header `Host` says it.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Headers of every request: keys, mostly.
    pub headers: HeaderMap,
    /// The longest message that the server may send, in bytes.
    pub longest: usize,
}

/// The wire to a server behind HTTP.
pub struct HttpWire {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for HttpWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpWire").finish_non_exhaustive()
    }
}

struct Inner {
    endpoint: Endpoint,
    connections: Connections,
    session: Mutex<Option<HeaderValue>>,
    changes: watch::Sender<u64>,
}

impl HttpWire {
    /// The wire to this endpoint.
    pub fn new(endpoint: Endpoint, dial: Box<dyn Dial>) -> Self {
        Self {
            inner: Arc::new(Inner {
                endpoint,
                connections: Connections::new(dial),
                session: Mutex::default(),
                changes: watch::Sender::new(0),
            }),
        }
    }
}

/// Tells a server of the handshake era that a request was cancelled; in the stateless one, closing its stream does.
struct Waiting<'a> {
    inner: &'a Arc<Inner>,
    id: u64,
    era: Option<Era>,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(era @ Era::Legacy(_)) = self.era else {
            return;
        };
        if self.answered {
            return;
        }
        let (inner, id) = (Arc::clone(self.inner), self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let tell = inner.tell(speech::cancelled(id), era);
                let _gone = tokio::time::timeout(NOTICE_LIMIT, tell).await;
            });
        }
    }
}

impl Wire for HttpWire {
    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let mut waiting = Waiting {
                inner: &self.inner,
                id: ask.id,
                era: ask.era,
                answered: false,
            };
            let answer = self.inner.ask(ask).await;
            waiting.answered = true;
            answer
        })
    }

    fn tell(&self, message: Vec<u8>, era: Era) -> BoxFuture<'_, Result<(), ClientError>> {
        Box::pin(self.inner.tell(message, era))
    }

    fn is_open(&self) -> bool {
        true
    }

    fn list_changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    fn last_words(&self) -> String {
        String::new()
    }

    fn may_stay_silent(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.leave())
    }
}

impl Inner {
    async fn ask(&self, ask: Ask<'_>) -> Result<Bytes, ClientError> {
        let mut request = self.request(Method::POST, ask.era, ask.message)?;
        if ask.era == Some(Era::Modern) {
            let headers = request.headers_mut();
            headers.insert(METHOD, header_value(ask.method)?);
            if let Some(name) = ask.name {
                headers.insert(NAME, header_value(name)?);
            }
        }
        let begins = ask.era.is_none();
        if begins {
            *self.session.lock() = None;
        }
        let exchange = self.connections.send(request).await?;
        let exchange = self.admitted(exchange, ask.era).await?;
        let headers = exchange.response.headers();
        if begins && let Some(session) = headers.get(SESSION) {
            *self.session.lock() = Some(session.clone());
        }
        if is_stream(headers) {
            let listening = Listening {
                id: ask.id,
                era: ask.era,
                progress: ask.progress,
            };
            return self.listen(exchange, listening).await;
        }
        self.whole(exchange, self.endpoint.longest).await
    }

    async fn tell(&self, message: Vec<u8>, era: Era) -> Result<(), ClientError> {
        let request = self.request(Method::POST, Some(era), message)?;
        let exchange = self.connections.send(request).await?;
        let exchange = self.admitted(exchange, Some(era)).await?;
        self.whole(exchange, REFUSAL).await.map(drop)
    }

    /// Ends the session, where there is one.
    async fn leave(&self) {
        let session = self.session.lock().take();
        if let Some(session) = session
            && let Ok(mut request) = self.request(Method::DELETE, None, Vec::new())
        {
            request.headers_mut().insert(SESSION, session);
            // A server may refuse it; there is nothing to do then.
            let send = self.connections.send(request);
            let _gone = tokio::time::timeout(NOTICE_LIMIT, send).await;
        }
        self.connections.close();
    }

    fn request(
        &self,
        method: Method,
        era: Option<Era>,
        message: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::new(Full::new(Bytes::from(message)));
        *request.method_mut() = method;
        let malformed =
            |what: &str| ClientError::Unreachable(format!("its address has a wrong {what}"));
        let path = self.endpoint.path.parse();
        *request.uri_mut() = path.map_err(|_| malformed("path"))?;
        let headers = request.headers_mut();
        headers.extend(self.endpoint.headers.clone());
        let host = HeaderValue::from_str(&self.endpoint.authority);
        headers.insert(HOST, host.map_err(|_| malformed("host"))?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        if let Some(era) = era {
            headers.insert(VERSION, HeaderValue::from_static(era.as_str()));
        }
        if let Some(session) = &*self.session.lock() {
            headers.insert(SESSION, session.clone());
        }
        Ok(request)
    }

    /// A response that answers; an error for one that refuses.
    async fn admitted(
        &self,
        exchange: Exchange,
        era: Option<Era>,
    ) -> Result<Exchange, ClientError> {
        let status = exchange.response.status();
        if status.is_success() {
            return Ok(exchange);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let challenge = exchange.response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok());
            return Err(ClientError::Unauthorized {
                status: status.as_u16(),
                challenge: clip(challenge.unwrap_or_default(), 500).into_owned(),
            });
        }
        let has_session = matches!(era, Some(Era::Legacy(_))) && self.session.lock().is_some();
        if status == StatusCode::NOT_FOUND && has_session {
            *self.session.lock() = None;
            return Err(ClientError::SessionOver);
        }
        let body = self.whole(exchange, REFUSAL).await.unwrap_or_default();
        // An error of the protocol comes with a status of its own in the stateless era.
        if let Err(error @ ClientError::Refused { .. }) = speech::result(&body) {
            return Err(error);
        }
        let text = String::from_utf8_lossy(&body);
        Err(ClientError::Http {
            status: status.as_u16(),
            body: clip(&text, 300).into_owned(),
        })
    }

    /// A whole body.
    async fn whole(&self, mut exchange: Exchange, longest: usize) -> Result<Bytes, ClientError> {
        let mut parts = Vec::new();
        let mut length = 0;
        while let Some(part) = frame(&mut exchange).await? {
            length += part.len();
            if length > longest {
                return Err(ClientError::TooLong(longest));
            }
            parts.push(part);
        }
        exchange.keep().await;
        Ok(match <[Bytes; 1]>::try_from(parts) {
            Ok([whole]) => whole,
            Err(parts) => parts.concat().into(),
        })
    }

    /// Listens to a stream until the answer comes; asks for one again that breaks off, where that is possible.
    async fn listen(&self, mut exchange: Exchange, to: Listening) -> Result<Bytes, ClientError> {
        let mut events = Events::new(self.endpoint.longest);
        for _ in 0..=MOST_RETRIES {
            let broke = match self.hear(&mut exchange, &mut events, &to).await {
                Ok(Some(answer)) => {
                    // The stream ends behind its answer.
                    if let Ok(None) = frame(&mut exchange).await {
                        exchange.keep().await;
                    }
                    return Ok(answer);
                }
                Ok(None) => "its stream ended before the answer".to_owned(),
                Err(ClientError::Closed { said }) => said,
                Err(error) => return Err(error),
            };
            let resumable = matches!(to.era, Some(Era::Legacy(_)) | None);
            let last = events
                .last_id
                .clone()
                .filter(|id| resumable && !id.is_empty());
            let Some(last) = last else {
                return Err(ClientError::Closed { said: broke });
            };
            tokio::time::sleep(events.retry.unwrap_or(RETRY)).await;
            exchange = self.go_on(&last, to.era).await?;
        }
        let said = format!("its stream broke off {MOST_RETRIES} times");
        Err(ClientError::Closed { said })
    }

    /// Asks for what follows an event.
    async fn go_on(&self, last: &str, era: Option<Era>) -> Result<Exchange, ClientError> {
        let mut request = self.request(Method::GET, era, Vec::new())?;
        request.headers_mut().remove(CONTENT_TYPE);
        let stream = HeaderValue::from_static("text/event-stream");
        request.headers_mut().insert(ACCEPT, stream);
        request
            .headers_mut()
            .insert(LAST_EVENT, header_value(last)?);
        let exchange = self.connections.send(request).await?;
        self.admitted(exchange, era).await
    }

    /// The answer out of a stream; none where the stream ends without.
    async fn hear(
        &self,
        exchange: &mut Exchange,
        events: &mut Events,
        to: &Listening,
    ) -> Result<Option<Bytes>, ClientError> {
        while let Some(part) = frame(exchange).await? {
            let found = events.push(&part);
            let found = found.map_err(|_| ClientError::TooLong(self.endpoint.longest))?;
            for event in found {
                match speech::hear(&event.data) {
                    Heard::Answer(id) if id == to.id => return Ok(Some(event.data.into())),
                    Heard::Request(answer) => {
                        if let Some(era) = to.era {
                            self.tell(answer, era).await?;
                        }
                    }
                    Heard::ListChanged => self.changes.send_modify(|count| *count += 1),
                    Heard::Progress(id, line) if id == to.id => {
                        speech::pass_on(to.progress.as_ref(), line);
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }
}

/// Whom a stream is for.
struct Listening {
    id: u64,
    era: Option<Era>,
    progress: Option<Progress>,
}

/// The next piece of a body; none at its end.
async fn frame(exchange: &mut Exchange) -> Result<Option<Bytes>, ClientError> {
    loop {
        match exchange.response.body_mut().frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let said = error.to_string();
                return Err(ClientError::Closed { said });
            }
        }
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start();
    kind.get(..17)
        .is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}

/// A header's value; what a header cannot hold as `=?base64?…?=` (2026-07-28, transports).
fn header_value(text: &str) -> Result<HeaderValue, ClientError> {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b)) && text.trim() == text;
    let value = if plain && !text.starts_with("=?") {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::from_str(&format!("=?base64?{}?=", STANDARD.encode(text)))
    };
    value.map_err(|_| ClientError::Unreachable("a header is too long".into()))
}

//! `StreamableSession`: a session of Streamable HTTP: messages to the server, and what comes back on the streams that it opens.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use haft::progress::Progress;
use haft_http::connections::HttpExchange;
use haft_http::waits::Waits;
use haft_wire::events::SseParser;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client::courier::{Courier, MAX_REFUSAL_BODY, whole};
use crate::client::endpoint::header_value;
use crate::client::error::ClientError;
use crate::client::respond::Inquiry;
use crate::client::server_change::ChangeBroadcast;
use crate::client::speech::{self, ServerMessage};
use crate::client::wire::WireRequest;
use crate::era::Era;

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// Delay before a stream that broke off is requested again, unless the server sets one.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Time limit for a server to accept a final notice: that a request was cancelled, or a session is over.
pub(super) const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a stream may take to end after its answer, so that its connection can be reused.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a stream is requested again.
const MAX_RETRIES: usize = 20;

/// The state of a session.
pub(super) struct StreamableSession {
    pub(super) courier: Arc<Courier>,
    /// The server's id for the session, if there is one.
    id: Mutex<Option<HeaderValue>>,
    pub(super) bulletin: ChangeBroadcast,
    /// Calls in progress that have a responder.
    inquiries: Mutex<Vec<Weak<Inquiry>>>,
    /// Receives what belongs to no call.
    no_call: Arc<Inquiry>,
}

impl StreamableSession {
    pub(super) fn new(courier: Arc<Courier>) -> Self {
        Self {
            courier,
            id: Mutex::default(),
            bulletin: ChangeBroadcast::new(),
            inquiries: Mutex::default(),
            no_call: Arc::new(Inquiry::new(None)),
        }
    }

    /// Ends the session at the server, if there is one.
    pub(super) async fn leave(&self) {
        let courier = &self.courier;
        let session = self.id.lock().take();
        if let Some(session) = session
            && let Ok(mut request) = courier.endpoint.request(Method::DELETE, Bytes::new())
        {
            request.headers_mut().insert(SESSION_HEADER, session);
            // If the server refuses, there is nothing more to do.
            let send = courier.send(request);
            let _gone = tokio::time::timeout(NOTICE_TIMEOUT, send).await;
        }
        courier.close();
    }

    pub(super) async fn ask(self: &Arc<Self>, ask: WireRequest<'_>) -> Result<Bytes, ClientError> {
        let mut request = self.post(ask.era, ask.message)?;
        if ask.era == Some(Era::Modern) {
            let headers = request.headers_mut();
            headers.insert(METHOD_HEADER, header_value(ask.method)?);
            if let Some(name) = ask.name {
                headers.insert(NAME_HEADER, header_value(name)?);
            }
            for (name, value) in ask.mirrored {
                let name = HeaderName::try_from(name);
                let name = name.map_err(|e| ClientError::Malformed(e.to_string()))?;
                headers.insert(name, header_value(value)?);
            }
        }
        if ask.inquiry.can_respond() {
            let mut inquiry = self.inquiries.lock();
            inquiry.retain(|call| call.strong_count() > 0);
            inquiry.push(Arc::downgrade(&ask.inquiry));
        }
        let begins = ask.era.is_none();
        if begins {
            *self.id.lock() = None;
        }
        let exchange = self.courier.send(request).await?;
        let exchange = self.check_status(exchange, ask.era).await?;
        let headers = exchange.response.headers();
        if begins && let Some(session) = headers.get(SESSION_HEADER) {
            *self.id.lock() = Some(session.clone());
        }
        if exchange.is_event_stream() {
            let listening = StreamRequest {
                id: ask.id,
                era: ask.era,
                progress: ask.progress,
                inquiry: ask.inquiry,
            };
            return self.wait_for_answer(exchange, listening).await;
        }
        whole(exchange, self.courier.endpoint.longest).await
    }

    pub(super) async fn send_notification(
        &self,
        message: Vec<u8>,
        era: Era,
    ) -> Result<(), ClientError> {
        let request = self.post(Some(era), message)?;
        let exchange = self.courier.send(request).await?;
        let exchange = self.check_status(exchange, Some(era)).await?;
        whole(exchange, MAX_REFUSAL_BODY).await.map(drop)
    }

    fn post(
        &self,
        era: Option<Era>,
        message: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = self.courier.endpoint.post(message)?;
        self.mark(&mut request, era);
        Ok(request)
    }

    /// Sets the headers for the revision and the session.
    fn mark(&self, request: &mut Request<Full<Bytes>>, era: Option<Era>) {
        let headers = request.headers_mut();
        if let Some(era) = era {
            headers.insert(VERSION_HEADER, HeaderValue::from_static(era.as_str()));
        }
        if let Some(session) = &*self.id.lock() {
            headers.insert(SESSION_HEADER, session.clone());
        }
    }

    /// Returns the response if it is successful; an error if it is a refusal.
    async fn check_status(
        &self,
        exchange: HttpExchange,
        era: Option<Era>,
    ) -> Result<HttpExchange, ClientError> {
        let has_session = matches!(era, Some(Era::Legacy(_))) && self.id.lock().is_some();
        if exchange.response.status() == StatusCode::NOT_FOUND && has_session {
            return Err(ClientError::SessionOver);
        }
        self.courier.check_status(exchange).await
    }

    /// Listens to a stream until the answer arrives; requests a stream that breaks off again if possible.
    async fn wait_for_answer(
        self: &Arc<Self>,
        mut exchange: HttpExchange,
        to: StreamRequest,
    ) -> Result<Bytes, ClientError> {
        let mut events = SseParser::new(self.courier.endpoint.longest);
        for _ in 0..=MAX_RETRIES {
            let broke = match self.next_answer(&mut exchange, &mut events, &to).await {
                Ok(Some(answer)) => {
                    tokio::spawn(end(exchange));
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
            tokio::time::sleep(events.retry.unwrap_or(RETRY_DELAY)).await;
            exchange = self.stream(Some(&last), to.era).await?;
            // A half-read event ended with its stream.
            events = events.resumed();
        }
        let said = format!("its stream broke off {MAX_RETRIES} times");
        Err(ClientError::Closed { said })
    }

    /// Requests the server's own stream, or the events that follow `last`.
    pub(super) async fn stream(
        &self,
        last: Option<&str>,
        era: Option<Era>,
    ) -> Result<HttpExchange, ClientError> {
        let mut request = self.courier.endpoint.stream()?;
        self.mark(&mut request, era);
        if let Some(last) = last {
            request
                .headers_mut()
                .insert(LAST_EVENT_HEADER, header_value(last)?);
        }
        let exchange = self.courier.send(request).await?;
        let exchange = self.check_status(exchange, era).await?;
        if !exchange.is_event_stream() {
            let why = "it answers with no stream of events";
            return Err(ClientError::Malformed(why.into()));
        }
        Ok(exchange)
    }

    /// Returns the answer from a stream; `None` if the stream ends without one.
    async fn next_answer(
        self: &Arc<Self>,
        exchange: &mut HttpExchange,
        events: &mut SseParser,
        to: &StreamRequest,
    ) -> Result<Option<Bytes>, ClientError> {
        let longest = self.courier.endpoint.longest;
        while let Some(part) = exchange.next(&Waits::default()).await? {
            let found = events.push(&part);
            for event in found.map_err(|_| ClientError::TooLong(longest))? {
                match speech::hear(&event.data) {
                    ServerMessage::Answer(id) if id == to.id => return Ok(Some(event.data.into())),
                    ServerMessage::Unread(id, why) if id == to.id => {
                        return Err(ClientError::Malformed(why));
                    }
                    ServerMessage::Request(ask) => {
                        if let Some(era) = to.era {
                            self.answer(&to.inquiry, ask, era);
                        }
                    }
                    ServerMessage::News(news) => self.bulletin.post(news),
                    ServerMessage::Progress(id, line) if id == to.id => {
                        speech::pass_on(to.progress.as_ref(), line);
                    }
                    ServerMessage::Notification(method, params) => to.inquiry.hear(&method, params),
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Returns the call that a request on the server's own stream is for. The request does not name its call, so if several are
    /// possible, it is for none.
    pub(super) fn call_of_server_request(&self) -> Arc<Inquiry> {
        let inquiry = self.inquiries.lock();
        let mut calls = inquiry.iter().filter_map(Weak::upgrade);
        match (calls.next(), calls.next()) {
            (Some(one), None) => one,
            _ => Arc::clone(&self.no_call),
        }
    }

    /// Answers a server's request in the background while its stream is read.
    pub(super) fn answer(
        self: &Arc<Self>,
        inquiry: &Inquiry,
        ask: speech::ServerRequest,
        era: Era,
    ) {
        let inner = Arc::clone(self);
        inquiry.answer(ask, async move |answer| {
            let tell = inner.send_notification(answer, era);
            let _gone = tokio::time::timeout(NOTICE_TIMEOUT, tell).await;
        });
    }
}

/// Keeps the connection of a stream that ends after its answer, as it should.
async fn end(mut exchange: HttpExchange) {
    let waits = Waits::until(Instant::now() + END_TIMEOUT);
    if let Ok(None) = exchange.next(&waits).await {
        exchange.keep().await;
    }
}

/// The request that a stream belongs to.
struct StreamRequest {
    id: u64,
    era: Option<Era>,
    progress: Option<Progress>,
    inquiry: Arc<Inquiry>,
}

//! `Exchange`: one request and its answer, with a time limit for each wait and size limits for the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::text::clip;
use haft_wire::{Dialect, Reply, ReplyLimits, Usage, WireError};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::http_model::dial::Dial;
use crate::http_model::place::Place;
use crate::http_model::retry;
use crate::http_model::timeouts::Timeouts;
use crate::model::{ModelError, ModelEvent, Wait};

/// Maximum number of bytes read of an error response.
const MAX_REFUSAL: usize = 64 << 10;
/// Maximum number of characters of its message that are repeated.
const MAX_MESSAGE: usize = 500;

type Sender = SendRequest<Full<Bytes>>;

/// Requests to one place.
#[derive(Debug)]
pub(super) struct Exchange {
    place: Place,
    dial: Arc<dyn Dial>,
    timeouts: Timeouts,
    limits: ReplyLimits,
    /// A connection whose last answer was read to its end.
    idle: Mutex<Option<Sender>>,
}

/// A request.
#[derive(Debug)]
pub(super) struct Post<'a> {
    pub(super) dialect: Dialect,
    /// The path below the base URL.
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
}

/// Shows parts of an answer as they arrive.
pub(super) type Show<'a> = dyn FnMut(ModelEvent) + Send + 'a;

impl Exchange {
    pub(super) fn new(
        place: Place,
        dial: Arc<dyn Dial>,
        timeouts: Timeouts,
        limits: ReplyLimits,
    ) -> Self {
        Self {
            place,
            dial,
            timeouts,
            limits,
            idle: Mutex::new(None),
        }
    }

    /// Sends a request and returns the reply.
    pub(super) async fn send(
        &self,
        post: &Post<'_>,
        show: &mut Show<'_>,
    ) -> Result<Reply, ModelError> {
        let dialect = post.dialect;
        let deadline = Instant::now() + self.timeouts.whole;
        let request = self.request(post)?;
        let (response, sender) = self.answered(request, deadline).await?;
        let mut body = Body {
            exchange: self,
            response,
            read: 0,
            deadline,
        };
        if !body.response.status().is_success() {
            return Err(body.refusal().await);
        }
        let reply = if body.is_stream() {
            body.streamed(dialect, show).await?
        } else {
            let whole = body.whole(self.limits.reply).await?;
            dialect.read(&whole, self.limits)?
        };
        // Only a body that was read to its end leaves a reusable connection.
        if body.at_end().await {
            *self.idle.lock() = Some(sender);
        }
        Ok(reply)
    }

    fn request(&self, post: &Post<'_>) -> Result<Request<Full<Bytes>>, ModelError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.place.path(post.path))
            .header(HOST, self.place.authority())
            .body(Full::new(post.body.clone()));
        let mut request = request.map_err(|error| ModelError::Setting(error.to_string()))?;
        for (name, value) in post.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    /// Returns the head of the answer, using the kept connection or a new one.
    async fn answered(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Sender), ModelError> {
        let kept = self.idle.lock().take().filter(Sender::is_ready);
        let (mut sender, is_new) = match kept {
            Some(sender) => (sender, false),
            None => (self.connect().await?, true),
        };
        let mut sent = self.first_byte(&mut sender, request, deadline).await?;
        if let Err(failed) = &mut sent
            && !is_new
            // The server has closed the connection meanwhile without reading any of the request.
            && let Some(request) = failed.take_message()
        {
            sender = self.connect().await?;
            sent = self.first_byte(&mut sender, request, deadline).await?;
        }
        match sent {
            Ok(response) => Ok((response, sender)),
            Err(failed) => Err(self.unreachable(failed.into_error())),
        }
    }

    async fn first_byte(
        &self,
        sender: &mut Sender,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Result<Response<Incoming>, TrySendError>, ModelError> {
        let limit = self.timeouts.first_byte;
        let sent = timeout_at(
            deadline.min(Instant::now() + limit),
            sender.try_send_request(request),
        );
        sent.await.map_err(|_| self.late(Wait::FirstByte, limit))
    }

    async fn connect(&self) -> Result<Sender, ModelError> {
        let limit = self.timeouts.connect;
        let host = self.place.host();
        let connecting = async {
            let dialed = self
                .dial
                .dial(&host, self.place.port(), self.place.is_secure());
            let stream = dialed.await.map_err(|error| self.unreachable(error))?;
            let shaken = http1::handshake(TokioIo::new(stream)).await;
            shaken.map_err(|error| self.unreachable(error))
        };
        let (sender, connection) = timeout(limit, connecting)
            .await
            .map_err(|_| self.late(Wait::Connect, limit))??;
        // The task ends with its sender.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a model ended");
            }
        });
        Ok(sender)
    }

    fn unreachable(&self, why: impl std::fmt::Display) -> ModelError {
        ModelError::Unreachable {
            place: self.place.to_string(),
            why: why.to_string(),
        }
    }

    fn late(&self, wait: Wait, limit: Duration) -> ModelError {
        ModelError::Timeout {
            place: self.place.to_string(),
            wait,
            limit,
        }
    }
}

type TrySendError = hyper::client::conn::TrySendError<Request<Full<Bytes>>>;

/// The body of an answer.
struct Body<'a> {
    exchange: &'a Exchange,
    response: Response<Incoming>,
    read: usize,
    deadline: Instant,
}

impl Body<'_> {
    fn is_stream(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        kind.trim_start().starts_with("text/event-stream")
    }

    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let limit = self.exchange.timeouts.next_byte;
        loop {
            let next = Instant::now() + limit;
            let frame = timeout_at(next.min(self.deadline), self.response.body_mut().frame());
            let frame = frame.await.map_err(|_| {
                if next < self.deadline {
                    return self.exchange.late(Wait::NextByte, limit);
                }
                self.exchange
                    .late(Wait::Whole, self.exchange.timeouts.whole)
            })?;
            match frame {
                None => return Ok(None),
                // The caller decides what a broken answer means: some of it may have been shown.
                Some(Err(_)) => return Err(WireError::Cut(self.read).into()),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read += data.len();
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    async fn streamed(
        &mut self,
        dialect: Dialect,
        show: &mut Show<'_>,
    ) -> Result<Reply, ModelError> {
        let limit = self.exchange.limits.reply;
        let mut reader = dialect.reader(self.exchange.limits);
        let mut deltas = Vec::new();
        let mut reported = Usage::default();
        while !reader.is_whole()
            && let Some(piece) = self.next().await?
        {
            if self.read > limit {
                let what = "a reply";
                return Err(WireError::TooLarge { what, limit }.into());
            }
            let taken = reader.push(&piece, &mut deltas);
            for delta in deltas.drain(..) {
                show(ModelEvent::Delta(delta));
            }
            let usage = reader.usage();
            if usage != reported {
                reported = usage;
                show(ModelEvent::Usage(usage));
            }
            taken?;
        }
        Ok(reader.finish()?)
    }

    async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            if whole.len() + piece.len() > limit {
                let what = "a reply";
                return Err(WireError::TooLarge { what, limit }.into());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Returns whether the body has ended, as far as can be told without waiting long.
    async fn at_end(&mut self) -> bool {
        const SOON: Duration = Duration::from_millis(20);
        let rest = async { while let Some(Ok(_)) = self.response.body_mut().frame().await {} };
        timeout(SOON, rest).await.is_ok()
    }

    /// Reads the provider's reason for a refusal.
    async fn refusal(mut self) -> ModelError {
        let status = self.response.status().as_u16();
        let retry_after = retry::wanted(self.response.headers());
        self.deadline = self
            .deadline
            .min(Instant::now() + self.exchange.timeouts.refusal);
        let mut body = Vec::new();
        // If the body breaks off, is too slow or does not end, use what has arrived: the status matters most.
        while let Ok(Some(piece)) = self.next().await {
            let room = MAX_REFUSAL - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() >= room {
                break;
            }
        }
        ModelError::Status {
            place: self.exchange.place.to_string(),
            status,
            message: message_in(&body),
            retry_after,
        }
    }
}

/// Returns the message of a refusal: `error.message` prefixed with its code or type, else the beginning of the text.
fn message_in(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    // Gemini's errors are in a list when they answer a streaming request.
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").unwrap_or(value);
    let word = ["code", "type", "status"]
        .iter()
        .find_map(|name| error.get(name).and_then(Value::as_str));
    let message = error.get("message").and_then(Value::as_str);
    let message = message.or_else(|| error.as_str());
    match (word, message) {
        (Some(word), Some(message)) => {
            clip(&format!("{word}: {message}"), MAX_MESSAGE).into_owned()
        }
        (None, Some(message)) => clip(message, MAX_MESSAGE).into_owned(),
        _ if text.trim().is_empty() => "it says no more".to_owned(),
        _ => clip(text.trim(), MAX_MESSAGE).into_owned(),
    }
}

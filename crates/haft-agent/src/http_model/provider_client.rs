//! `ProviderClient`: requests to one provider and its answers, with a time limit for each wait and size limits for the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::text::clip;
use haft_http::body::BodyError;
use haft_http::connections::{ConnectionPool, Destination, HttpExchange, SendError};
use haft_http::dial::Dial;
use haft_http::waits::{Wait, Waits};
use haft_wire::{Dialect, Reply, ReplyLimits, Usage, WireError};
use http::header::HOST;
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::http_model::place::ProviderLocation;
use crate::http_model::retry;
use crate::http_model::timeouts::Timeouts;
use crate::model::{ModelError, ModelEvent};

/// Maximum number of bytes read of an error response.
const MAX_REFUSAL: usize = 64 << 10;
/// Maximum number of characters of its message that are repeated.
const MAX_MESSAGE: usize = 500;
/// Maximum number of idle connections to keep: a loop makes one request after the other.
const MAX_IDLE: usize = 1;

/// Requests to one place.
#[derive(Debug)]
pub(super) struct ProviderClient {
    place: ProviderLocation,
    connections: ConnectionPool,
    timeouts: Timeouts,
    limits: ReplyLimits,
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

impl ProviderClient {
    pub(super) fn new(
        place: ProviderLocation,
        dial: Arc<dyn Dial>,
        timeouts: Timeouts,
        limits: ReplyLimits,
    ) -> Self {
        let to = Destination {
            host: place.host(),
            port: place.port(),
            secure: place.is_secure(),
        };
        Self {
            place,
            connections: ConnectionPool::new(to, dial, MAX_IDLE),
            timeouts,
            limits,
        }
    }

    /// Sends a request and returns the reply.
    pub(super) async fn send(
        &self,
        post: &Post<'_>,
        show: &mut Show<'_>,
    ) -> Result<Reply, ModelError> {
        let dialect = post.dialect;
        let waits = Waits {
            connect: Some(self.timeouts.connect),
            first_byte: Some(self.timeouts.first_byte),
            next_byte: Some(self.timeouts.next_byte),
            deadline: Some(Instant::now() + self.timeouts.whole),
        };
        let sent = self.connections.send(self.request(post)?, &waits).await;
        let mut body = ReplyBody {
            client: self,
            exchange: sent.map_err(|error| self.not_sent(error))?,
            waits,
        };
        if !body.exchange.response.status().is_success() {
            return Err(body.refusal().await);
        }
        let reply = if body.exchange.is_event_stream() {
            body.streamed(dialect, show).await?
        } else {
            dialect.read(&body.whole().await?, self.limits)?
        };
        body.keep_if_at_end().await;
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

    fn not_sent(&self, error: SendError) -> ModelError {
        match error {
            SendError::Unreachable(why) | SendError::Closed(why) => ModelError::Unreachable {
                place: self.place.to_string(),
                why,
            },
            SendError::Late(wait) => self.late(wait),
        }
    }

    fn late(&self, wait: Wait) -> ModelError {
        ModelError::Timeout {
            place: self.place.to_string(),
            wait,
            limit: match wait {
                Wait::Connect => self.timeouts.connect,
                Wait::FirstByte => self.timeouts.first_byte,
                Wait::NextByte => self.timeouts.next_byte,
                Wait::Whole => self.timeouts.whole,
            },
        }
    }
}

/// The body of an answer.
struct ReplyBody<'a> {
    client: &'a ProviderClient,
    exchange: HttpExchange,
    waits: Waits,
}

impl ReplyBody<'_> {
    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let piece = self.exchange.next(&self.waits).await;
        piece.map_err(|error| self.broken(&error))
    }

    async fn whole(&mut self) -> Result<Bytes, ModelError> {
        let limit = self.client.limits.reply;
        let whole = self.exchange.whole(limit, &self.waits).await;
        whole.map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &BodyError) -> ModelError {
        match error {
            BodyError::Late(wait) => self.client.late(*wait),
            // The caller decides what a broken answer means: some of it may have been shown.
            BodyError::Broken(_) => WireError::Cut(self.exchange.received()).into(),
            BodyError::TooLong(limit) => too_large(*limit),
        }
    }

    async fn streamed(
        &mut self,
        dialect: Dialect,
        show: &mut Show<'_>,
    ) -> Result<Reply, ModelError> {
        let limit = self.client.limits.reply;
        let mut reader = dialect.reader(self.client.limits);
        let mut deltas = Vec::new();
        let mut reported = Usage::default();
        while !reader.is_whole()
            && let Some(piece) = self.next().await?
        {
            if self.exchange.received() > limit {
                return Err(too_large(limit));
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

    /// Keeps the connection if the body has ended, as far as can be told without waiting long.
    async fn keep_if_at_end(self) {
        const SOON: Duration = Duration::from_millis(20);
        let mut exchange = self.exchange;
        let ending = async move {
            while let Some(_rest) = exchange.next(&Waits::default()).await? {}
            exchange.keep().await;
            Ok::<_, BodyError>(())
        };
        // Only a body that was read to its end leaves a reusable connection; otherwise the next request opens one.
        let _ = timeout(SOON, ending).await;
    }

    /// Reads the provider's reason for a refusal.
    async fn refusal(mut self) -> ModelError {
        let status = self.exchange.response.status().as_u16();
        let retry_after = retry::wanted(self.exchange.response.headers());
        let end = Instant::now() + self.client.timeouts.refusal;
        self.waits.deadline = self.waits.deadline.map(|deadline| deadline.min(end));
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
            place: self.client.place.to_string(),
            status,
            message: message_in(&body),
            retry_after,
        }
    }
}

fn too_large(limit: usize) -> ModelError {
    let what = "a reply";
    WireError::TooLarge { what, limit }.into()
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

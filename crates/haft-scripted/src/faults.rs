//! Turns a reply into bytes, cut into pieces, with the faults that the scenario injects.

use bytes::Bytes;
use haft_wire::Dialect;
use serde_json::{Value, json};

use crate::body::BodyEnd;
use crate::random::Random;
use crate::refusal::ProviderError;
use crate::scenario::{ErrorEvent, ErrorResponse, InjectedFault, StreamCut};
use crate::stream::StreamEvent;

/// The content type of a stream.
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// The content type of a body.
const JSON: &str = "application/json";

/// A reply ready to be sent.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) end: BodyEnd,
    /// The pause before it, in milliseconds.
    pub(crate) delay_ms: u64,
}

/// Cuts a reply into pieces.
#[derive(Debug)]
pub(crate) struct ReplyCutter<'r> {
    pub(crate) cut: StreamCut,
    pub(crate) random: &'r mut Random,
}

/// A reply before faults are injected.
#[derive(Debug)]
pub(crate) enum ReplyContent {
    /// The body of a reply that is not streamed.
    Body(Value),
    /// The events of a stream.
    Events(Vec<StreamEvent>),
}

impl Delivery {
    /// Creates an error response of the provider.
    pub(crate) fn refusal(refusal: &ProviderError, dialect: Dialect) -> Self {
        let body = refusal.body(dialect).to_string();
        Self {
            status: refusal.status,
            content_type: JSON.to_owned(),
            headers: Vec::new(),
            pieces: vec![body.into()],
            end: BodyEnd::Whole,
            delay_ms: 0,
        }
    }

    /// Creates an error response given by the scenario.
    pub(crate) fn status(status: &ErrorResponse, dialect: Dialect) -> Self {
        let message = match (&status.message, status.code) {
            (Some(message), _) => message.as_str(),
            (None, 429) => "Rate limit reached. Please try again later.",
            (None, 529 | 503) => "The model is overloaded. Please try again later.",
            (None, 500..) => {
                "The server had an error while processing your request. Sorry about that!"
            }
            (None, _) => "The request is refused.",
        };
        let refusal = ProviderError::new(status.code, message);
        let mut body = refusal.body(dialect);
        let mut headers: Vec<(String, String)> = status.headers.clone().into_iter().collect();
        if let Some(seconds) = status.retry_after_s {
            headers.push(("retry-after".to_owned(), seconds.to_string()));
            if dialect == Dialect::Gemini {
                body["error"]["details"] = json!([{
                    "@type": "type.googleapis.com/google.rpc.RetryInfo",
                    "retryDelay": format!("{seconds}s"),
                }]);
            }
        }
        let mut delivery = Self::refusal(&refusal, dialect);
        delivery.pieces = vec![body.to_string().into()];
        if let Some(body) = &status.body {
            "text/html; charset=utf-8".clone_into(&mut delivery.content_type);
            delivery.pieces = vec![body.clone().into()];
        }
        delivery.headers = headers;
        delivery
    }

    /// Creates a reply, cut into pieces, with or without a fault.
    pub(crate) fn reply(
        content: ReplyContent,
        fault: Option<&InjectedFault>,
        dialect: Dialect,
        knife: ReplyCutter<'_>,
    ) -> Self {
        match (fault, &content) {
            (Some(InjectedFault::Status(status)), _) => return Self::status(status, dialect),
            (Some(InjectedFault::ErrorEvent(error)), ReplyContent::Body(_)) => {
                return Self::refusal(&error_refusal(error, dialect), dialect);
            }
            _ => {}
        }
        let content_type = match content {
            ReplyContent::Body(_) => JSON,
            ReplyContent::Events(_) => EVENTS,
        };
        let mut parts: Vec<Vec<u8>> = match content {
            ReplyContent::Body(body) => vec![body.to_string().into_bytes()],
            ReplyContent::Events(events) => {
                let events = spoil_events(events, fault, dialect);
                events
                    .into_iter()
                    .map(|event| event.text.into_bytes())
                    .collect()
            }
        };
        let end = spoil_bytes(&mut parts, fault, content_type == JSON);
        Self {
            status: 200,
            content_type: content_type.to_owned(),
            headers: Vec::new(),
            pieces: knife.pieces(&parts),
            end,
            delay_ms: 0,
        }
    }
}

/// Injects a fault that affects whole events.
fn spoil_events(
    mut events: Vec<StreamEvent>,
    fault: Option<&InjectedFault>,
    dialect: Dialect,
) -> Vec<StreamEvent> {
    match fault {
        Some(InjectedFault::Unterminated) => events.retain(|event| !event.is_closing),
        Some(InjectedFault::ErrorEvent(error)) => {
            events.retain(|event| !event.is_closing);
            events.truncate(events.len().div_ceil(2));
            events.push(error_event(error, dialect, events.len()));
        }
        Some(InjectedFault::RepeatEvent(number)) => {
            let length = i64::try_from(events.len()).unwrap_or(i64::MAX);
            let at = if *number < 0 {
                length + number
            } else {
                *number
            };
            let at = usize::try_from(at)
                .unwrap_or_default()
                .min(events.len() - 1);
            events.insert(at, events[at].clone());
        }
        _ => {}
    }
    events
}

fn error_refusal(error: &ErrorEvent, dialect: Dialect) -> ProviderError {
    let status = match dialect {
        Dialect::Anthropic => 529,
        Dialect::Gemini => 503,
        _ => 500,
    };
    ProviderError {
        kind: error.kind.clone(),
        ..ProviderError::new(status, error.message.as_str())
    }
}

fn error_event(error: &ErrorEvent, dialect: Dialect, number: usize) -> StreamEvent {
    let body = error_refusal(error, dialect).body(dialect);
    match dialect {
        Dialect::OpenAiResponses => StreamEvent::named(
            "error",
            &json!({
                "type": "error", "code": body["error"]["type"], "message": error.message,
                "param": null, "sequence_number": number,
            }),
        ),
        Dialect::Anthropic => StreamEvent::named("error", &body),
        Dialect::OpenAiChat | Dialect::Gemini => StreamEvent::data(&body),
    }
}

/// Injects a fault into the bytes; returns how they end.
fn spoil_bytes(parts: &mut Vec<Vec<u8>>, fault: Option<&InjectedFault>, is_body: bool) -> BodyEnd {
    match fault {
        Some(InjectedFault::AbortAfter(bytes)) => {
            shorten(parts, *bytes);
            BodyEnd::Abort
        }
        Some(InjectedFault::HangAfter(bytes)) => {
            shorten(parts, *bytes);
            BodyEnd::Hang
        }
        Some(InjectedFault::Unterminated) if is_body => {
            let half = parts.iter().map(Vec::len).sum::<usize>() / 2;
            shorten(parts, half);
            BodyEnd::Whole
        }
        Some(InjectedFault::BrokenUtf8) => {
            let middle = parts.len() / 2;
            let at = parts[middle].len() / 2;
            parts[middle].insert(at, 0xff);
            BodyEnd::Whole
        }
        _ => BodyEnd::Whole,
    }
}

fn shorten(parts: &mut Vec<Vec<u8>>, mut bytes: usize) {
    for part in parts.iter_mut() {
        part.truncate(bytes);
        bytes -= part.len();
    }
    parts.retain(|part| !part.is_empty());
}

impl ReplyCutter<'_> {
    fn pieces(self, parts: &[Vec<u8>]) -> Vec<Bytes> {
        let whole: Bytes = parts.concat().into();
        match self.cut {
            StreamCut::Whole => vec![whole],
            StreamCut::Events => parts.iter().map(|part| part.clone().into()).collect(),
            StreamCut::Bytes => (0..whole.len()).map(|at| whole.slice(at..=at)).collect(),
            StreamCut::Random => {
                let most = (whole.len() / 250).max(96);
                let mut rest = whole;
                let mut pieces = Vec::new();
                while !rest.is_empty() {
                    let length = place(&rest[..most.min(rest.len())], self.random);
                    pieces.push(rest.split_to(length));
                }
                pieces
            }
        }
    }
}

/// Returns where to cut these bytes: anywhere, but half of the time inside a multi-byte character if there is one.
fn place(bytes: &[u8], random: &mut Random) -> usize {
    let anywhere = random.up_to(bytes.len());
    let within = bytes.iter().skip(1).position(|byte| byte & 0xc0 == 0x80);
    match within {
        Some(before) if random.up_to(2) == 1 => before + 1,
        _ => anywhere,
    }
}

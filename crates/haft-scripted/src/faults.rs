//! Turns a reply into bytes, cut into pieces, with the faults that the scenario injects.

use bytes::Bytes;
use haft_wire::Dialect;
use serde_json::{Value, json};

use crate::body::End;
use crate::random::Random;
use crate::refusal::Refusal;
use crate::scenario::{Cut, ErrorEvent, Fault, Status};
use crate::stream::Event;

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
    pub(crate) end: End,
    /// The pause before it, in milliseconds.
    pub(crate) delay_ms: u64,
}

/// Cuts a reply into pieces.
#[derive(Debug)]
pub(crate) struct Knife<'r> {
    pub(crate) cut: Cut,
    pub(crate) random: &'r mut Random,
}

/// A reply before faults are injected.
#[derive(Debug)]
pub(crate) enum Content {
    /// The body of a reply that is not streamed.
    Body(Value),
    /// The events of a stream.
    Events(Vec<Event>),
}

impl Delivery {
    /// Creates an error response of the provider.
    pub(crate) fn refusal(refusal: &Refusal, dialect: Dialect) -> Self {
        let body = refusal.body(dialect).to_string();
        Self {
            status: refusal.status,
            content_type: JSON.to_owned(),
            headers: Vec::new(),
            pieces: vec![body.into()],
            end: End::Whole,
            delay_ms: 0,
        }
    }

    /// Creates an error response given by the scenario.
    pub(crate) fn status(status: &Status, dialect: Dialect) -> Self {
        let message = match (&status.message, status.code) {
            (Some(message), _) => message.as_str(),
            (None, 429) => "Rate limit reached. Please try again later.",
            (None, 529 | 503) => "The model is overloaded. Please try again later.",
            (None, 500..) => {
                "The server had an error while processing your request. Sorry about that!"
            }
            (None, _) => "The request is refused.",
        };
        let refusal = Refusal::new(status.code, message);
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
        content: Content,
        fault: Option<&Fault>,
        dialect: Dialect,
        knife: Knife<'_>,
    ) -> Self {
        match (fault, &content) {
            (Some(Fault::Status(status)), _) => return Self::status(status, dialect),
            (Some(Fault::ErrorEvent(error)), Content::Body(_)) => {
                return Self::refusal(&error_refusal(error, dialect), dialect);
            }
            _ => {}
        }
        let content_type = match content {
            Content::Body(_) => JSON,
            Content::Events(_) => EVENTS,
        };
        let mut parts: Vec<Vec<u8>> = match content {
            Content::Body(body) => vec![body.to_string().into_bytes()],
            Content::Events(events) => {
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
fn spoil_events(mut events: Vec<Event>, fault: Option<&Fault>, dialect: Dialect) -> Vec<Event> {
    match fault {
        Some(Fault::Unterminated) => events.retain(|event| !event.is_closing),
        Some(Fault::ErrorEvent(error)) => {
            events.retain(|event| !event.is_closing);
            events.truncate(events.len().div_ceil(2));
            events.push(error_event(error, dialect, events.len()));
        }
        Some(Fault::RepeatEvent(number)) => {
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

fn error_refusal(error: &ErrorEvent, dialect: Dialect) -> Refusal {
    let status = match dialect {
        Dialect::Anthropic => 529,
        Dialect::Gemini => 503,
        _ => 500,
    };
    Refusal {
        kind: error.kind.clone(),
        ..Refusal::new(status, error.message.as_str())
    }
}

fn error_event(error: &ErrorEvent, dialect: Dialect, number: usize) -> Event {
    let body = error_refusal(error, dialect).body(dialect);
    match dialect {
        Dialect::OpenAiResponses => Event::named(
            "error",
            &json!({
                "type": "error", "code": body["error"]["type"], "message": error.message,
                "param": null, "sequence_number": number,
            }),
        ),
        Dialect::Anthropic => Event::named("error", &body),
        Dialect::OpenAiChat | Dialect::Gemini => Event::data(&body),
    }
}

/// Injects a fault into the bytes; returns how they end.
fn spoil_bytes(parts: &mut Vec<Vec<u8>>, fault: Option<&Fault>, is_body: bool) -> End {
    match fault {
        Some(Fault::AbortAfter(bytes)) => {
            shorten(parts, *bytes);
            End::Abort
        }
        Some(Fault::HangAfter(bytes)) => {
            shorten(parts, *bytes);
            End::Hang
        }
        Some(Fault::Unterminated) if is_body => {
            let half = parts.iter().map(Vec::len).sum::<usize>() / 2;
            shorten(parts, half);
            End::Whole
        }
        Some(Fault::BrokenUtf8) => {
            let middle = parts.len() / 2;
            let at = parts[middle].len() / 2;
            parts[middle].insert(at, 0xff);
            End::Whole
        }
        _ => End::Whole,
    }
}

fn shorten(parts: &mut Vec<Vec<u8>>, mut bytes: usize) {
    for part in parts.iter_mut() {
        part.truncate(bytes);
        bytes -= part.len();
    }
    parts.retain(|part| !part.is_empty());
}

impl Knife<'_> {
    fn pieces(self, parts: &[Vec<u8>]) -> Vec<Bytes> {
        let whole: Bytes = parts.concat().into();
        match self.cut {
            Cut::Whole => vec![whole],
            Cut::Events => parts.iter().map(|part| part.clone().into()).collect(),
            Cut::Bytes => (0..whole.len()).map(|at| whole.slice(at..=at)).collect(),
            Cut::Random => {
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

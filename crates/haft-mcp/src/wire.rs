//! The JSON-RPC envelope: a received message as borrowed text, or a clear refusal.

use std::borrow::Cow;

use haft::error::bounded;
use haft::json::depth;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

pub(crate) mod mended;
pub(crate) mod optional;
pub(crate) mod params;
pub(crate) mod reply;

/// Maximum length of a request id, in bytes of JSON: ids are kept while a request runs.
const MAX_ID: usize = 1024;

/// Maximum nesting depth of a message. Arguments may nest 64 levels, which the executor checks, with a record of the call; far
/// beyond that, nothing is parsed at all. `serde_json` has the same limit.
pub(crate) const MAX_DEPTH: usize = 128;

/// A request id: the raw JSON of a string or an integer, sent back byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(Box<str>);

impl RequestId {
    /// Returns the raw JSON.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number of a request of haft's that this names. Some servers send numbers back as texts, or with a fraction of zero.
    pub(crate) fn number(&self) -> Option<u64> {
        let digits = self.0.trim_matches('"');
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_whole = fraction.bytes().all(|digit| digit == b'0');
        whole.parse().ok().filter(|_| is_whole)
    }

    /// Parses an id from raw JSON; `None` for anything but a string or an integer.
    pub(crate) fn parse(raw: &str) -> Option<Self> {
        let integer = || {
            let digits = raw.strip_prefix('-').unwrap_or(raw);
            digits.bytes().all(|b| b.is_ascii_digit())
        };
        (raw.len() <= MAX_ID && (raw.starts_with('"') || integer())).then(|| Self(raw.into()))
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: Cow<'static, str>,
    /// Raw JSON.
    pub(crate) data: Option<String>,
}

/// Maximum length of the data to keep of another server's error, in bytes.
const MAX_DATA: usize = 64 << 10;

impl RpcError {
    pub(crate) const PARSE: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    pub(crate) const INTERNAL: i32 = -32603;
    /// The server is full (from JSON-RPC's range for implementations).
    pub(crate) const BUSY: i32 = -32000;
    /// A header contradicts the body (2026-07-28).
    pub(crate) const HEADER_MISMATCH: i32 = -32020;
    /// The version is not supported (2026-07-28).
    pub(crate) const VERSION: i32 = -32022;
    /// The client did not declare a capability that the request needs (2026-07-28).
    pub(crate) const MISSING_CAPABILITY: i32 = -32021;
    /// The request was cancelled; the code is the language server protocol's, since MCP has none.
    pub(crate) const CANCELLED: i32 = -32800;

    /// Creates an error. Its message may repeat input, so its length is limited.
    pub(crate) fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        let message = match message.into() {
            Cow::Owned(text) => Cow::Owned(bounded(text)),
            fixed @ Cow::Borrowed(_) => fixed,
        };
        Self {
            code,
            message,
            data: None,
        }
    }

    /// Parses an error from another server; `None` if it has no code. Data over 64 KiB is dropped.
    pub(crate) fn read(error: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct ErrorObject<'a> {
            code: i32,
            #[serde(default)]
            message: String,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let sent: ErrorObject<'_> = serde_json::from_str(error.get()).ok()?;
        let data = sent.data.map(RawValue::get);
        let data = data.filter(|data| data.len() <= MAX_DATA);
        Some(Self {
            data: data.map(str::to_owned),
            ..Self::new(sent.code, sent.message)
        })
    }

    pub(crate) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    pub(crate) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(crate) fn with_data(mut self, raw: String) -> Self {
        self.data = Some(raw);
        self
    }
}

/// A message with a valid envelope.
#[derive(Debug)]
pub(crate) enum RpcMessage<'a> {
    /// Expects an answer.
    Request(RpcRequest<'a>),
    /// Expects no answer.
    Notification(RpcNotification<'a>),
    /// Answers a request of this server.
    Response(RpcResponse<'a>),
}

/// An answer to a request of this server.
#[derive(Debug)]
pub(crate) struct RpcResponse<'a> {
    /// The request's id; an error about something unreadable has none.
    pub(crate) id: Option<RequestId>,
    /// The result; `None` if the answer is an error.
    pub(crate) result: Option<&'a RawValue>,
    /// The error, if the answer is one.
    pub(crate) error: Option<&'a RawValue>,
}

#[derive(Debug)]
pub(crate) struct RpcRequest<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

#[derive(Debug)]
pub(crate) struct RpcNotification<'a> {
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// A message that was not understood, with its id if that could be read.
#[derive(Debug)]
pub(crate) struct InvalidMessage {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: RpcError,
}

impl InvalidMessage {
    fn new(error: RpcError) -> Self {
        Self { id: None, error }
    }

    /// Creates the refusal of a message over the size limit, whose id was not read.
    pub(crate) fn too_long(limit: usize) -> Self {
        Self::new(RpcError::invalid_request(format!(
            "the message is over {limit} bytes"
        )))
    }
}

/// The envelope's members as raw JSON. A null member is not the same as an absent one, so each is kept as received.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

impl<'a> RawMessage<'a> {
    /// Returns whether it can only be an answer.
    fn is_answer(&self) -> bool {
        self.method.is_none()
            && self.id.is_some()
            && (self.result.is_some() || self.error.is_some())
    }

    /// Drops members that are null. A null result without an error stays, since it answers a request.
    fn without_nulls(self) -> Self {
        let some = |raw: Option<&'a RawValue>| raw.filter(|raw| raw.get() != "null");
        let (error, method) = (some(self.error), some(self.method));
        let may_be_null = error.is_none() && method.is_none();
        Self {
            jsonrpc: self.jsonrpc,
            id: some(self.id),
            method,
            params: some(self.params),
            result: self.result.filter(|raw| may_be_null || raw.get() != "null"),
            error,
        }
    }

    /// Returns the id of a message. A server's answer may name its request by a number with a fraction of zero.
    fn request_id(&self, raw: &RawValue, sender: Sender) -> Option<RequestId> {
        let loose = || {
            let is_answer = sender == Sender::Server && self.is_answer();
            let id = RequestId(raw.get().into());
            (is_answer && id.number().is_some()).then_some(id)
        };
        RequestId::parse(raw.get()).or_else(loose)
    }
}

fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

/// Who sent a message: a client must keep to the protocol, since haft judges by what it sends; what a server sends is taken as far as it
/// can be understood, since the call has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

/// Parses one message of a client. Never panics and never recurses, whatever the bytes are.
pub(crate) fn parse(bytes: &[u8]) -> Result<RpcMessage<'_>, InvalidMessage> {
    parse_as(Sender::Client, bytes)
}

/// Parses one message of a server: members that are null count as absent, and a response needs no version.
pub(crate) fn parse_from_server(bytes: &[u8]) -> Result<RpcMessage<'_>, InvalidMessage> {
    parse_as(Sender::Server, bytes)
}

fn parse_as(sender: Sender, bytes: &[u8]) -> Result<RpcMessage<'_>, InvalidMessage> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(InvalidMessage::new(RpcError::new(
            RpcError::PARSE,
            "the message is not UTF-8",
        )));
    };
    // A byte order mark has no meaning, and RFC 8259 §8.1 allows readers to ignore it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_ascii_start().starts_with('[') {
        return Err(InvalidMessage::new(RpcError::invalid_request(
            "batches are not accepted: send one message at a time",
        )));
    }
    let deep = depth::exceeds(text.as_bytes(), MAX_DEPTH);
    let envelope = match serde_json::from_str::<RawMessage<'_>>(text) {
        Ok(envelope) if sender == Sender::Server => envelope.without_nulls(),
        Ok(envelope) => envelope,
        Err(e) => return Err(InvalidMessage::new(parse_error(&e))),
    };
    let id = match envelope.id.map(|raw| envelope.request_id(raw, sender)) {
        Some(None) => {
            return Err(InvalidMessage::new(RpcError::invalid_request(
                "the request's id is neither a string nor an integer",
            )));
        }
        Some(id) => id,
        None => None,
    };
    let refuse = |id, error| Err(InvalidMessage { id, error });
    if deep {
        let message = format!("the message is nested over {MAX_DEPTH} levels deep");
        return refuse(id, RpcError::invalid_request(message));
    }
    match classify(&envelope, id, sender) {
        Ok(message) => Ok(message),
        Err((id, error)) => refuse(id, error),
    }
}

/// Distinguishes requests, notifications and responses by their members.
fn classify<'a>(
    envelope: &RawMessage<'a>,
    id: Option<RequestId>,
    sender: Sender,
) -> Result<RpcMessage<'a>, (Option<RequestId>, RpcError)> {
    let is_server_answer = sender == Sender::Server && envelope.is_answer();
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") && !is_server_answer {
        let error = RpcError::invalid_request("the member jsonrpc is not \"2.0\"");
        return Err((id, error));
    }
    let Some(method) = envelope.method else {
        if envelope.result.is_some() || envelope.error.is_some() {
            let result = envelope.result.filter(|_| envelope.error.is_none());
            let error = envelope.error;
            return Ok(RpcMessage::Response(RpcResponse { id, result, error }));
        }
        return Err((
            id,
            RpcError::invalid_request("the member method is missing"),
        ));
    };
    let Some(method) = params::text(method) else {
        let error = RpcError::invalid_request("the member method is not a string");
        return Err((id, error));
    };
    if envelope.result.is_some() || envelope.error.is_some() {
        let error = RpcError::invalid_request("a message is a request or a response, not both");
        return Err((id, error));
    }
    let params = envelope.params;
    if params.is_some_and(|raw| !raw.get().starts_with('{')) {
        let error = RpcError::invalid_request("the member params is not an object");
        return Err((id, error));
    }
    Ok(match id {
        Some(id) => RpcMessage::Request(RpcRequest { id, method, params }),
        None => RpcMessage::Notification(RpcNotification { method, params }),
    })
}

fn parse_error(error: &serde_json::Error) -> RpcError {
    match error.classify() {
        Category::Eof => RpcError::new(RpcError::PARSE, "the message ends too early"),
        Category::Data => {
            RpcError::invalid_request(format!("the message is not a request: {error}"))
        }
        Category::Syntax | Category::Io => {
            RpcError::new(RpcError::PARSE, format!("the message is not JSON: {error}"))
        }
    }
}

#[cfg(test)]
mod tests;

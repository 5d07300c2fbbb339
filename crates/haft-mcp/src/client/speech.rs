//! The messages that a client sends and receives, as bytes: requests with what their era requires, answers, notifications.

use std::io::Write;

use haft::progress::Progress;
use haft::text::clip;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::ClientRequest;
use crate::client::error::ClientError;
use crate::client::offers::OwnCapabilities;
use crate::client::server_change::ServerChange;
use crate::era::{Era, MODERN};
use crate::wire::mended::MendedMessage;
use crate::wire::optional::without_nulls;
use crate::wire::params::text;
use crate::wire::reply;
use crate::wire::{self, RequestId, RpcMessage};

/// Length of the part of an unreadable message in which to look for a sign that it is a message and not a line of a log.
const EXAMINED_BYTES: usize = 256;
/// Length of the part of an unreadable message that its error quotes: the call has run, and this is all that is left of its result.
const QUOTED: usize = 2000;

/// haft's `clientInfo`.
pub(crate) const CLIENT_INFO: &str = concat!(
    "{\"name\":\"haft\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}"
);
/// Returns the members of `_meta` that make a stateless request self-contained, without braces.
fn request_meta(offers: OwnCapabilities, tasks: bool) -> String {
    format!(
        "\"io.modelcontextprotocol/protocolVersion\":\"{MODERN}\",\
         \"io.modelcontextprotocol/clientInfo\":{CLIENT_INFO},\
         \"io.modelcontextprotocol/clientCapabilities\":{}",
        offers.json(tasks)
    )
}

/// Returns a request. Its progress token is its number.
pub(crate) fn request(id: u64, era: Option<Era>, question: &ClientRequest<'_>) -> Vec<u8> {
    let mut meta = match era {
        Some(Era::Modern) => request_meta(question.offers(), question.tasks),
        _ => String::new(),
    };
    if let (Some(Era::Modern), Some(level)) = (era, question.log) {
        let level = level.as_str();
        meta = format!("{meta},\"io.modelcontextprotocol/logLevel\":\"{level}\"");
    }
    if question.progress.is_some() {
        let comma = if meta.is_empty() { "" } else { "," };
        meta = format!("{meta}{comma}\"progressToken\":{id}");
    }
    let mut out = Vec::with_capacity(question.params.len() + meta.len() + 128);
    let _in_memory = write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":");
    reply::json(&mut out, question.method);
    let members = [
        (!meta.is_empty()).then(|| format!("\"_meta\":{{{meta}}}")),
        (!question.params.is_empty()).then(|| question.params.to_owned()),
    ];
    let members: Vec<String> = members.into_iter().flatten().collect();
    if !members.is_empty() {
        out.extend_from_slice(b",\"params\":{");
        out.extend_from_slice(members.join(",").as_bytes());
        out.push(b'}');
    }
    out.push(b'}');
    out
}

/// Returns the notification that a request was cancelled.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let params = format!("{{\"requestId\":{id},\"reason\":\"the caller ended the call\"}}");
    reply::notification("notifications/cancelled", Some(&params))
}

/// A server's request.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

/// The meaning of a server's message for a client.
#[derive(Debug)]
pub(crate) enum ServerMessage {
    /// The answer to the request with this number.
    Answer(u64),
    /// A request from the server.
    Request(ServerRequest),
    /// A change on the server.
    News(ServerChange),
    /// Progress of the request with this number, as text.
    Progress(u64, String),
    /// Another notification, by its method.
    Notification(String, Option<Box<RawValue>>),
    /// An invalid message, with the number of the request that it answers, and why it is invalid.
    Unread(u64, String),
    /// Nothing that a client has to handle.
    Nothing,
    /// Not a message.
    Garbage,
}

/// Reads a message.
pub(crate) fn hear(bytes: &[u8]) -> ServerMessage {
    let mended = MendedMessage::read(bytes);
    match wire::parse_from_server(&mended.bytes) {
        Ok(RpcMessage::Response(response)) => {
            let id = response.id.and_then(|id| id.number());
            id.map_or(ServerMessage::Nothing, ServerMessage::Answer)
        }
        Ok(RpcMessage::Request(request)) => ServerMessage::Request(ServerRequest {
            id: request.id,
            method: request.method.into_owned(),
            params: request.params.map(RawValue::to_owned),
        }),
        Ok(RpcMessage::Notification(notification)) => match &*notification.method {
            "notifications/progress" => {
                progress(notification.params).unwrap_or(ServerMessage::Nothing)
            }
            method => {
                if let Some(news) = ServerChange::read(method, notification.params) {
                    return ServerMessage::News(news);
                }
                let params = notification.params.map(RawValue::to_owned);
                ServerMessage::Notification(notification.method.into_owned(), params)
            }
        },
        Err(refused) => {
            let begin = &bytes[..bytes.len().min(EXAMINED_BYTES)];
            let is_message = memmem::find(begin, b"\"jsonrpc\"").is_some();
            let id = refused.id.and_then(|id| id.number());
            let id = id.or_else(|| id_in(begin)).filter(|_| is_message);
            let why = refused.error.message;
            id.map_or(ServerMessage::Garbage, |id| {
                let text = String::from_utf8_lossy(bytes);
                ServerMessage::Unread(id, format!("{why}; it sent {}", clip(&text, QUOTED)))
            })
        }
    }
}

/// Returns the number of the request that a message answers, from the beginning of the message, if it precedes the result.
pub(crate) fn id_in(begin: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(begin);
    let head = text.split(['{', '[']).nth(1)?;
    let (_, rest) = head.split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn progress(params: Option<&RawValue>) -> Option<ServerMessage> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ProgressParams<'a> {
        #[serde(borrow)]
        progress_token: &'a RawValue,
        #[serde(borrow)]
        progress: Option<&'a RawValue>,
        #[serde(borrow)]
        total: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let params: ProgressParams<'_> = serde_json::from_str(params?.get()).ok()?;
    let status = params.message.and_then(text);
    let far = [params.progress, params.total].into_iter().flatten();
    let far: Vec<&str> = far.map(RawValue::get).collect();
    let line = match status {
        Some(status) => clip(&status, 1000).into_owned(),
        None => clip(&far.join(" of "), 100).into_owned(),
    };
    let token = RequestId::parse(params.progress_token.get())?;
    Some(ServerMessage::Progress(token.number()?, line))
}

/// Passes on a line of progress.
pub(crate) fn pass_on(progress: Option<&Progress>, line: String) {
    if let Some(progress) = progress {
        progress.info(line);
    }
}

/// What a server answered to a request.
#[derive(Debug)]
pub(crate) struct ServerResult {
    /// The result, without members that are null where the protocol lets them be absent.
    pub(crate) raw: Box<RawValue>,
    /// What was replaced in it so that it could be read.
    pub(crate) notes: Vec<&'static str>,
}

/// Returns the result in a message that answers a request.
pub(crate) fn result(message: &[u8]) -> Result<ServerResult, ClientError> {
    let malformed = |why: String| Err(ClientError::Malformed(why));
    let MendedMessage { bytes, notes } = MendedMessage::read(message);
    match wire::parse_from_server(&bytes) {
        Ok(RpcMessage::Response(response)) => match (response.result, response.error) {
            (Some(result), _) => Ok(ServerResult {
                raw: without_nulls(result).unwrap_or_else(|| result.to_owned()),
                notes,
            }),
            (None, Some(error)) => Err(refusal(error)),
            (None, None) => malformed("neither a result nor an error".into()),
        },
        Ok(_) => malformed("no response".into()),
        Err(refused) => malformed(refused.error.message.into_owned()),
    }
}

/// Converts a protocol error.
pub(crate) fn refusal(error: &RawValue) -> ClientError {
    #[derive(Deserialize)]
    struct ErrorMembers<'a> {
        code: Option<i64>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    match serde_json::from_str::<ErrorMembers<'_>>(error.get()) {
        Ok(error) => {
            let message = error.message.and_then(text).unwrap_or_default();
            ClientError::refused(
                error.code.unwrap_or_default(),
                &message,
                error.data.map(RawValue::get),
            )
        }
        Err(e) => ClientError::Malformed(format!("its error: {e}")),
    }
}

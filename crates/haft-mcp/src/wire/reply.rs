//! Outgoing messages: responses, errors and notifications, written directly into bytes.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{RequestId, RpcError};

/// Begins a response; the result's JSON follows, then [`end`].
pub(crate) fn begin(id: &RequestId, room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(room + id.as_str().len() + 40);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_str().as_bytes());
    out.extend_from_slice(b",\"result\":");
    out
}

/// Ends a response.
pub(crate) fn end(out: &mut Vec<u8>) {
    out.push(b'}');
}

/// Returns a response without content.
pub(crate) fn empty(id: &RequestId) -> Vec<u8> {
    let mut out = begin(id, 2);
    out.extend_from_slice(b"{}");
    end(&mut out);
    out
}

/// Returns an error, without an id if none could be read.
pub(crate) fn error(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.map_or("null", RequestId::as_str).as_bytes());
    out.extend_from_slice(b",\"error\":{\"code\":");
    json(&mut out, &error.code);
    out.extend_from_slice(b",\"message\":");
    json(&mut out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data.as_bytes());
    }
    out.extend_from_slice(b"}}");
    out
}

/// Returns a notification with these `params` (raw JSON).
pub(crate) fn notification(method: &str, params: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    json(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
    out
}

/// Returns a request from this server to its client.
pub(crate) fn request(id: &RequestId, method: &str, params: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_str().as_bytes());
    out.extend_from_slice(b",\"method\":");
    json(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    json(&mut out, params);
    out.push(b'}');
    out
}

/// Returns such a request with `params` as raw JSON.
pub(crate) fn request_raw(id: &RequestId, method: &str, params: &RawValue) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.get().len() + 128);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_str().as_bytes());
    out.extend_from_slice(b",\"method\":");
    json(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params.get().as_bytes());
    out.push(b'}');
    out
}

/// Returns a progress notification for the request with this token (raw JSON).
pub(crate) fn progress(token: &str, value: u64, message: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + message.len());
    out.extend_from_slice(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":",
    );
    out.extend_from_slice(token.as_bytes());
    out.extend_from_slice(b",\"progress\":");
    json(&mut out, &value);
    out.extend_from_slice(b",\"message\":");
    json(&mut out, message);
    out.extend_from_slice(b"}}");
    out
}

/// Writes a value as JSON.
pub(crate) fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Writing to memory cannot fail, and our values have only string keys; a value that fails must not leave half a document.
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

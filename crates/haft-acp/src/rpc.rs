//! JSON-RPC 2.0 as the protocol uses it: requests, notifications and responses in both directions, one message per line.
//! `haft_mcp::stdio` reads and writes the lines.

use haft_app::problem::{Problem, ProblemKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The text is not JSON.
const PARSE: i32 = -32700;
/// It is not a message, or does not fit the current state.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// The method does not exist.
const METHOD: i32 = -32601;
/// The parameters are invalid.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The request failed.
const INTERNAL: i32 = -32603;
/// The session does not exist (ACP).
const NOT_FOUND: i32 = -32002;

/// The id that links a response to its request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RpcId {
    Number(i64),
    Text(String),
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn no_method(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        Self::new(METHOD, format!("there is no method {method:?} here"))
    }

    pub(crate) fn no_session(id: &str) -> Self {
        let id: String = id.chars().take(100).collect();
        let message = format!(
            "no session {id:?} is open here; open one with session/new, or an earlier one with session/load"
        );
        Self::new(NOT_FOUND, message)
    }

    pub(crate) fn too_long(most: usize) -> Self {
        let message = format!("the line is over {} MiB; send less at once", most >> 20);
        Self::new(INVALID_REQUEST, message)
    }
}

/// As one line, like a command prints it.
impl From<Problem> for RpcError {
    fn from(problem: Problem) -> Self {
        let code = match problem.kind() {
            ProblemKind::Usage => INVALID_PARAMS,
            _ => INTERNAL,
        };
        let advice = problem.advice().map(|advice| format!("; {advice}"));
        Self::new(code, format!("{problem}{}", advice.unwrap_or_default()))
    }
}

/// The parameters of a method; missing ones count as an empty object.
pub(crate) struct MethodParams(Option<Box<RawValue>>);

impl MethodParams {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let text = self.0.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text).map_err(|e| RpcError::new(INVALID_PARAMS, e.to_string()))
    }
}

/// A message from the client.
pub(crate) enum ClientMessage {
    Request {
        id: RpcId,
        method: String,
        params: MethodParams,
    },
    Notification {
        method: String,
        params: MethodParams,
    },
    Response {
        id: RpcId,
        result: Result<Box<RawValue>, RpcError>,
    },
}

/// Why a line is not a valid message, with its id, if any.
#[derive(Debug)]
pub(crate) struct InvalidLine {
    pub(crate) id: Option<RpcId>,
    pub(crate) error: RpcError,
}

#[derive(Deserialize)]
struct MessageMembers {
    jsonrpc: Option<String>,
    #[serde(default)]
    id: Option<Value>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

impl ClientMessage {
    /// Parses a line.
    pub(crate) fn read(line: &[u8]) -> Result<Self, InvalidLine> {
        let parts: MessageMembers = serde_json::from_slice(line).map_err(|e| InvalidLine {
            id: None,
            error: if e.is_data() {
                RpcError::new(INVALID_REQUEST, format!("the line is not a message: {e}"))
            } else {
                RpcError::new(PARSE, format!("the line is not JSON: {e}"))
            },
        })?;
        let has_id = parts.id.is_some();
        let id = parts.id.and_then(|id| serde_json::from_value(id).ok());
        let fault = |what: &str| InvalidLine {
            id: id.clone(),
            error: RpcError::new(INVALID_REQUEST, what),
        };
        if parts.jsonrpc.as_deref() != Some("2.0") {
            return Err(fault("`jsonrpc` is not \"2.0\""));
        }
        if has_id && id.is_none() {
            return Err(fault("`id` is neither a text nor a whole number"));
        }
        match (parts.method, id.clone()) {
            (Some(method), Some(id)) => Ok(Self::Request {
                id,
                method,
                params: MethodParams(parts.params),
            }),
            (Some(method), None) => Ok(Self::Notification {
                method,
                params: MethodParams(parts.params),
            }),
            (None, Some(id)) => match (parts.result, parts.error) {
                (Some(result), None) => Ok(Self::Response {
                    id,
                    result: Ok(result),
                }),
                (None, Some(error)) => Ok(Self::Response {
                    id,
                    result: Err(error),
                }),
                _ => Err(fault("it has neither a method nor a result")),
            },
            (None, None) => Err(fault("it has neither a method nor an id")),
        }
    }
}

/// Returns the response to a request; the id is null if the line had none.
pub(crate) fn response(id: Option<&RpcId>, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

pub(crate) fn request(id: &RpcId, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_or_says_what_is_wrong_with_it() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "request"),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"a","params":{}}"#,
                "request",
            ),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, "notification"),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
                "notification",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "result"),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":2}}"#,
                "error",
            ),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "-32600"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "-32600"),
            (r#"{"id":1,"method":"a"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","method":1}"#, "-32600"),
            ("[]", "-32600"),
            ("1", "-32600"),
            ("{", "-32700"),
            ("hello", "-32700"),
        ];
        for (line, expect) in rows {
            let read = match ClientMessage::read(line.as_bytes()) {
                Ok(ClientMessage::Request { .. }) => "request".to_owned(),
                Ok(ClientMessage::Notification { .. }) => "notification".to_owned(),
                Ok(ClientMessage::Response { result: Ok(_), .. }) => "result".to_owned(),
                Ok(ClientMessage::Response { .. }) => "error".to_owned(),
                Err(fault) => fault.error.code.to_string(),
            };
            assert_eq!(read, expect, "{line}");
        }
    }
}

//! A small client: one request per connection, read to its end.

use std::net::SocketAddr;

use haft_scripted::Dialect;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response, as received.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head, in lowercase.
    pub(crate) head: String,
    /// The body without its chunk headers.
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as HTTP requires.
    pub(crate) is_whole: bool,
    /// The chunks of the body as they were sent.
    pub(crate) pieces: Vec<Vec<u8>>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Returns the data of the events; `[DONE]` as a string.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let data = |line: &str| line.strip_prefix("data: ").map(str::to_owned);
        text.lines()
            .filter_map(data)
            .map(|data| serde_json::from_str(&data).unwrap_or(Value::String(data)))
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns the path of a dialect.
pub(crate) fn path(dialect: Dialect, stream: bool) -> String {
    dialect.path("gemini-3-flash", stream)
}

/// Returns the headers that the provider requires.
pub(crate) fn headers(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => "authorization: Bearer test\r\n",
        Dialect::Anthropic => "x-api-key: test\r\nanthropic-version: 2023-06-01\r\n",
        Dialect::Gemini => "x-goog-api-key: test\r\n",
    }
}

/// Posts a body to the dialect's endpoint.
pub(crate) async fn post(
    address: SocketAddr,
    dialect: Dialect,
    stream: bool,
    body: &Value,
) -> Answer {
    let path = path(dialect, stream);
    send(address, &path, headers(dialect), &body.to_string()).await
}

/// Posts these bytes with these headers.
pub(crate) async fn send(address: SocketAddr, path: &str, headers: &str, body: &str) -> Answer {
    let mut stream = open(address, path, headers, body).await;
    let mut bytes = Vec::new();
    // A broken connection returns what was received before.
    let _ = stream.read_to_end(&mut bytes).await;
    read(&bytes)
}

/// Posts these bytes, and leaves the answer unread.
pub(crate) async fn open(address: SocketAddr, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

pub(crate) fn read(bytes: &[u8]) -> Answer {
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(bytes[..end].to_vec())
        .unwrap()
        .to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let mut rest = &bytes[end + 4..];
    let mut pieces = Vec::new();
    let mut is_whole = false;
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        rest = &rest[line + 2..];
        if size == 0 {
            is_whole = true;
            break;
        }
        let size = size.min(rest.len());
        pieces.push(rest[..size].to_vec());
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    Answer {
        status,
        head,
        body: pieces.concat(),
        is_whole,
        pieces,
    }
}

/// Returns a request with this user text and these tools, in the dialect's format.
pub(crate) fn ask(dialect: Dialect, stream: bool, user: &str, tools: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = |name: &&str| match dialect {
        Dialect::OpenAiChat => {
            json!({"type": "function", "function": {"name": name, "parameters": schema}})
        }
        Dialect::OpenAiResponses => json!({"type": "function", "name": name, "parameters": schema}),
        Dialect::Anthropic => json!({"name": name, "input_schema": schema}),
        Dialect::Gemini => json!({"name": name, "parametersJsonSchema": schema}),
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    let mut body = match dialect {
        Dialect::OpenAiChat => {
            json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": user}]})
        }
        Dialect::OpenAiResponses => {
            json!({"model": "m", "stream": stream, "input": [{"role": "user", "content": user}]})
        }
        Dialect::Anthropic => {
            json!({"model": "m", "stream": stream, "max_tokens": 100, "messages": [{"role": "user", "content": user}]})
        }
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": user}]}]}),
    };
    if !tools.is_empty() {
        body["tools"] = match dialect {
            Dialect::Gemini => json!([{"functionDeclarations": tools}]),
            _ => tools.into(),
        };
    }
    body
}

/// A call as read by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// A reply as read by a client.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) calls: Vec<Made>,
    pub(crate) stop: String,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// What is sent back in the history.
    pub(crate) raw: Value,
}

/// Appends the turn and the results of its calls to a request.
pub(crate) fn go_on(dialect: Dialect, body: &mut Value, reply: &Read, results: &[&str]) {
    let key = match dialect {
        Dialect::OpenAiResponses => "input",
        Dialect::Gemini => "contents",
        _ => "messages",
    };
    let pairs = || reply.calls.iter().zip(results);
    let mut more = match &reply.raw {
        Value::Array(items) if dialect == Dialect::OpenAiResponses => items.clone(),
        raw => vec![raw.clone()],
    };
    match dialect {
        Dialect::OpenAiChat => more.extend(pairs().map(|(call, result)| {
            json!({"role": "tool", "tool_call_id": call.id, "content": result})
        })),
        Dialect::OpenAiResponses => more.extend(pairs().map(|(call, result)| {
            json!({"type": "function_call_output", "call_id": call.id, "output": result})
        })),
        Dialect::Anthropic => {
            let results = pairs().map(|(call, result)| {
                let is_error = result.starts_with("error");
                json!({"type": "tool_result", "tool_use_id": call.id, "content": result, "is_error": is_error})
            });
            more.push(json!({"role": "user", "content": results.collect::<Vec<_>>()}));
        }
        Dialect::Gemini => {
            let results = pairs().map(|(call, result)| {
                let key = if result.starts_with("error") { "error" } else { "output" };
                let mut response = json!({"name": call.name, "response": {key: result}});
                if !call.id.is_empty() {
                    response["id"] = call.id.as_str().into();
                }
                json!({"functionResponse": response})
            });
            more.push(json!({"role": "user", "parts": results.collect::<Vec<_>>()}));
        }
    }
    body[key].as_array_mut().unwrap().extend(more);
}

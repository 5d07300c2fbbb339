//! A server that sends what haft does not know: odd key order, blanks, unknown members and kinds, numbers that no double holds.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Dial, Io, Wire};
use haft_mcp::upstream::Connector;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

/// A tool as the server lists it; `NAME` stands for its name.
pub(crate) const TOOL: &str = r#"{ "zeta":{"b":[1.0,1e2],"a":null} , "name" : "NAME","icons":[{"src":"https://x.example/i.png","sizes":["48x48"]}],"title":"Odd","inputSchema":{"type":"object","anyOf":[{"required":["x"],"properties":{"n":{"type":"string"}}},{"properties":{"n":{"type":"integer"}}}],"x-odd":12345678901234567890123,"properties":{"z":{"description":"\u007a","default":-0.0},"a":{"type":["string","null"]}}},"execution":{"taskSupport":"optional","x":1},"annotations":{"readOnlyHint":true,"x-hint":12345678901234567890123,"title":"T"},"description": "d","_meta":{ "vendor/x":{"z":1,"a":2}} }"#;

/// A tool whose result is not an object, which only the stateless era has.
pub(crate) const LIST: &str = r#"{ "name":"NAME", "inputSchema":{"type":"object"}, "outputSchema":{"type":"array","items":{"type":"integer"}}}"#;

/// The content of a call's result.
pub(crate) const CONTENT: &str = r#"[{"text":"a\u0062c","type":"text","annotations":{"priority":0.10,"audience":["user"]},"_meta":{"z":1,"a":2}},{"type":"hologram","depth":12345678901234567890123,"a":[ ]},{"type":"image","mimeType":"image/png","data":"AAAA","x":true},{"type":"resource","resource":{"uri":"x:y","blob":"AAAA","x":1}},{"type":"audio","mimeType":"audio/wav","data":"AAAA","x":1},{"type":"resource_link","uri":"odd://1","name":"one","size":12345678901234567890123}]"#;

/// Its structured content.
pub(crate) const DATA: &str = r#"{"z":12345678901234567890123,"a":{"y":1.50,"b":[ 1 ,2]}}"#;

/// The contents of its `_meta`, without braces.
pub(crate) const META: &str = r#""vendor/y":{"z":1e2,"a":12345678901234567890123}"#;

/// A member that no revision has.
pub(crate) const UNKNOWN: &str = r#""x-unknown":{"z":[1.0],"a":12345678901234567890123}"#;

/// The server, in one of the eras.
#[derive(Debug, Clone)]
pub(crate) struct Strange {
    pub(crate) modern: bool,
    pub(crate) over_http: bool,
    /// The arguments of the last call, as received.
    pub(crate) arguments: Arc<Mutex<String>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

impl Strange {
    pub(crate) fn new(modern: bool, over_http: bool) -> Self {
        Self {
            modern,
            over_http,
            arguments: Arc::default(),
        }
    }

    /// Returns its answer to a message.
    fn answer(&self, message: &str) -> Option<String> {
        let message: Message<'_> = serde_json::from_str(message).unwrap();
        let id = message.id?.get();
        let result = match (message.method.unwrap_or_default(), self.modern) {
            ("server/discover", true) => r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"strange","version":"1"}},"resultType":"complete","ttlMs":0,"cacheScope":"public"}"#.to_owned(),
            ("initialize", false) => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"strange","version":"1"}}"#.to_owned(),
            ("tools/list", modern) => {
                let more = if modern { r#","resultType":"complete","ttlMs":0,"cacheScope":"public""# } else { "" };
                let (odd, list) = (TOOL.replace("NAME", "odd"), LIST.replace("NAME", "list"));
                format!(r#"{{"tools":[{odd},{list}]{more}}}"#)
            }
            ("tools/call", modern) => {
                let called: Called<'_> = serde_json::from_str(message.params?.get()).unwrap();
                called.arguments.get().clone_into(&mut self.arguments.lock());
                if called.name == "list" && called.arguments.get().contains("long") {
                    let text = "line of many\\n".repeat(100_000);
                    return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{UNKNOWN},"content":[{{"type":"text","text":"{text}"}}],"structuredContent":[1, 2]}}}}"#));
                }
                if called.name == "list" {
                    return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":[1, 2],"resultType":"complete"}}}}"#));
                }
                let more = if modern { r#","resultType":"complete""# } else { "" };
                format!(r#"{{ {UNKNOWN} , "_meta" : {{ {META} }} ,"structuredContent": {DATA}, "content" : {CONTENT}{more} }}"#)
            }
            _ => return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"unknown"}}}}"#)),
        };
        Some(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
    }
}

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Connector for Strange {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let wire: Arc<dyn Wire> = if self.over_http {
            let headers = http::HeaderMap::new();
            let endpoint = Endpoint::new("http://127.0.0.1/mcp", headers, LONGEST).unwrap();
            Arc::new(HttpWire::new(endpoint, Box::new(self.clone())))
        } else {
            let (input, theirs) = tokio::io::duplex(1 << 16);
            let (out, output) = tokio::io::duplex(1 << 16);
            tokio::spawn(lines(self.clone(), theirs, out));
            Arc::new(PipeWire::new(input, output, Box::new(Inside), LONGEST))
        };
        Box::pin(std::future::ready(Ok(wire)))
    }
}

async fn lines(server: Strange, input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(answer) = server.answer(&line)
            && output
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .is_err()
        {
            return;
        }
    }
}

impl Dial for Strange {
    fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        let (client, server) = tokio::io::duplex(1 << 16);
        let strange = self.clone();
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                let strange = strange.clone();
                async move {
                    let mut response = Response::new(Full::new(Bytes::new()));
                    if request.method() != http::Method::POST {
                        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                        return Ok(response);
                    }
                    let body = request.into_body().collect().await?.to_bytes();
                    let answer = strange.answer(&String::from_utf8_lossy(&body));
                    match answer {
                        None => *response.status_mut() = StatusCode::ACCEPTED,
                        Some(answer) => {
                            let json = http::HeaderValue::from_static("application/json");
                            response.headers_mut().insert("content-type", json);
                            *response.body_mut() = Full::new(answer.into());
                        }
                    }
                    Ok::<_, hyper::Error>(response)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            let _hung_up = connection
                .serve_connection(TokioIo::new(server), answer)
                .await;
        });
        Box::pin(std::future::ready(Ok(Box::new(client) as Box<dyn Io>)))
    }
}

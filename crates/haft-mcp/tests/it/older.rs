//! Servers of the handshake era and clients of the stateless one: several requests at once, and what each client supports.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft::{Policy, Profile, Tool};
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Dial, Io, Wire};
use haft_mcp::upstream::{Connector, ServerRequestPolicy, Upstream, UpstreamTerms};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use crate::support::front::Front;
use crate::support::small_tools::SmallOpener;

/// A server over pipes that sends two requests at once, or one behind HTTP whose tool reports what its client supports.
#[derive(Debug, Clone, Default)]
struct Older {
    over_http: bool,
    /// Capabilities of the clients, by session.
    sessions: Arc<Mutex<HashMap<String, Value>>>,
    opened: Arc<Mutex<usize>>,
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

impl Connector for Older {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        *self.opened.lock() += 1;
        let wire: Arc<dyn Wire> = if self.over_http {
            let headers = http::HeaderMap::new();
            let endpoint = Endpoint::new("http://127.0.0.1/mcp", headers, LONGEST).unwrap();
            Arc::new(HttpWire::new(endpoint, Box::new(self.clone())))
        } else {
            let (input, theirs) = tokio::io::duplex(1 << 16);
            let (out, output) = tokio::io::duplex(1 << 16);
            tokio::spawn(asks_twice(theirs, out));
            Arc::new(PipeWire::new(input, output, Box::new(Inside), LONGEST))
        };
        Box::pin(std::future::ready(Ok(wire)))
    }
}

fn greeting(method: &str) -> Option<Value> {
    match method {
        "initialize" => Some(
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "older", "version": "1"}}),
        ),
        "tools/list" => {
            Some(json!({"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}))
        }
        _ => None,
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

async fn asks_twice(input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    let (mut called, mut answers) = (Value::Null, Vec::new());
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, method) = (
            &message["id"],
            message["method"].as_str().unwrap_or_default(),
        );
        let mut said = Vec::new();
        if let Some(result) = greeting(method) {
            said.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
        } else if method == "tools/call" {
            called = id.clone();
            answers.clear();
            let form =
                json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
            let prompt = json!({"messages": [], "maxTokens": 9});
            for (id, method, params) in [
                ("one", "elicitation/create", form),
                ("two", "sampling/createMessage", prompt),
            ] {
                said.push(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
            }
        } else if method.is_empty() {
            answers.push(message["result"]["x"].to_string());
            if answers.len() == 2 {
                answers.sort();
                said.push(
                    json!({"jsonrpc": "2.0", "id": called, "result": text(&answers.concat())}),
                );
            }
        } else if !id.is_null() {
            let error = json!({"code": -32601, "message": "unknown"});
            said.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        for message in said {
            let line = format!("{message}\n");
            if output.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

impl Older {
    /// Returns its answer over HTTP, and the session that this starts.
    fn answer(&self, message: &Value, session: &str) -> Option<(Value, Option<String>)> {
        let id = message.get("id")?;
        let method = message["method"].as_str().unwrap_or_default();
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        if method == "tools/call" {
            let can = self.sessions.lock()[session].to_string();
            return Some((result(text(&can)), None));
        }
        let Some(greeting) = greeting(method) else {
            let error = json!({"code": -32601, "message": "unknown"});
            return Some((json!({"jsonrpc": "2.0", "id": id, "error": error}), None));
        };
        let begun = (method == "initialize").then(|| {
            let mut sessions = self.sessions.lock();
            let name = format!("s-{}", sessions.len());
            sessions.insert(name.clone(), message["params"]["capabilities"].clone());
            name
        });
        Some((result(greeting), begun))
    }
}

impl Dial for Older {
    fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        let (client, server) = tokio::io::duplex(1 << 16);
        let older = self.clone();
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                let older = older.clone();
                async move {
                    let mut response = Response::new(Full::new(Bytes::new()));
                    if request.method() != http::Method::POST {
                        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                        return Ok(response);
                    }
                    let session = request.headers().get("mcp-session-id");
                    let session = session.map(|id| id.to_str().unwrap().to_owned());
                    let body = request.into_body().collect().await?.to_bytes();
                    let message = serde_json::from_slice(&body).unwrap();
                    match older.answer(&message, &session.unwrap_or_default()) {
                        None => *response.status_mut() = StatusCode::ACCEPTED,
                        Some((answer, begun)) => {
                            let headers = response.headers_mut();
                            let json = HeaderValue::from_static("application/json");
                            headers.insert("content-type", json);
                            if let Some(begun) = begun {
                                headers.insert("mcp-session-id", begun.parse().unwrap());
                            }
                            *response.body_mut() = Full::new(answer.to_string().into());
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

/// Returns haft in front of the server, which may ask the user and a model.
async fn haft(older: &Older) -> Arc<SmallOpener> {
    let terms = UpstreamTerms {
        passing: ServerRequestPolicy {
            sampling: true,
            ..ServerRequestPolicy::default()
        },
        ..UpstreamTerms::default()
    };
    let manifest = Upstream::look("older".into(), older, terms.limits).await;
    older.sessions.lock().clear();
    *older.opened.lock() = 0;
    let upstream = Upstream::new("far", manifest.unwrap(), Arc::new(older.clone()), terms);
    let (tools, _) = Arc::new(upstream).tools();
    let policy = Policy::builder(Profile::Workspace).allow("far.*").build();
    let opener = SmallOpener::new(policy.unwrap(), true);
    let tools = tools.into_iter();
    opener.add_tools(tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
    Arc::new(opener)
}

/// Returns the call of a client with these capabilities.
fn call(capabilities: &Value, more: &Value) -> String {
    let mut params = more.clone();
    params["name"] = "far.who".into();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn what_a_server_asks_at_once_its_caller_is_asked_together() {
    let older = Older::default();
    let opener = haft(&older).await;
    let mut front = Front::to(&opener);
    let can = json!({"elicitation": {}, "sampling": {}});
    let asked = front.ask(&call(&can, &json!({}))).await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let mut methods: Vec<_> = requests
        .values()
        .map(|one| one["method"].as_str().unwrap())
        .collect();
    methods.sort_unstable();
    assert_eq!(
        methods,
        ["elicitation/create", "sampling/createMessage"],
        "{asked}"
    );
    let responses: Value = requests
        .iter()
        .map(|(name, one)| {
            let is_form = one["method"] == "elicitation/create";
            (name.clone(), json!({"x": if is_form { 1 } else { 2 }}))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let state = &asked["result"]["requestState"];
    let again = json!({"inputResponses": responses, "requestState": state});
    let done = front.ask(&call(&can, &again)).await;
    assert_eq!(done["result"]["content"][0]["text"], "12", "{done}");
}

#[tokio::test]
async fn a_server_behind_an_address_hears_what_each_caller_can_be_asked_and_a_process_what_all_can()
{
    let rows = [
        json!({}),
        json!({"sampling": {}}),
        json!({"elicitation": {}, "sampling": {}}),
        json!({"sampling": {}}),
        json!({"roots": {}}),
    ];
    let older = Older {
        over_http: true,
        ..Older::default()
    };
    let opener = haft(&older).await;
    for can in &rows {
        let mut front = Front::to(&opener);
        let said = front.ask(&call(can, &json!({}))).await;
        let said = said["result"]["content"][0]["text"].as_str().unwrap();
        let mut told = can.clone();
        // The settings do not let it ask for folders.
        told.as_object_mut().unwrap().remove("roots");
        assert_eq!(serde_json::from_str::<Value>(said).unwrap(), told);
    }
    assert_eq!(older.sessions.lock().len(), 3, "one for each set");
    let older = Older::default();
    let opener = haft(&older).await;
    for can in [&rows[0], &rows[4]] {
        let mut front = Front::to(&opener);
        let said = front.ask(&call(can, &json!({}))).await;
        assert_eq!(said["result"]["content"][0]["text"], "nullnull", "{said}");
    }
    assert_eq!(*older.opened.lock(), 1);
}

//! Streams of Streamable HTTP as haft's client reads them: resumed after they broke off, and the server's own.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use haft::future::BoxFuture;
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::{Client, ClientLimits, Dial, Io};
use haft_mcp::era::{Era, Revision};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::until_async;

/// A server of the handshake era whose streams break off.
#[derive(Clone, Default)]
struct Breaking(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// One line for each request.
    seen: Vec<String>,
    /// The call that waits for its answer.
    call: Option<Value>,
    announced: bool,
}

impl Breaking {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (method, headers) = (request.method().clone(), request.headers().clone());
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut state = self.0.lock();
        let header = |name: &str| headers.get(name).map_or("", |v| v.to_str().unwrap());
        state.seen.push(format!(
            "{method} {} {} {}",
            message["method"].as_str().unwrap_or("-"),
            header("mcp-session-id"),
            header("last-event-id")
        ));
        let result = match (method, message["method"].as_str().unwrap_or_default()) {
            (Method::GET, _) => return Ok(stream(&state.more(&headers))),
            (Method::POST, "initialize") => json!({"protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}}),
            (Method::POST, "tools/call") => {
                state.call = Some(message["id"].clone());
                // It names an event to resume from, and ends before the answer.
                return Ok(stream("id: call-1\nretry: 1\ndata: \n\n"));
            }
            _ => {
                return Ok(Response::builder()
                    .status(202)
                    .body(Full::default())
                    .unwrap());
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let reply = Response::builder()
            .header("content-type", "application/json")
            .header("mcp-session-id", "s-1");
        Ok(reply.body(Full::from(answer.to_string())).unwrap())
    }
}

impl State {
    /// Returns the body of a GET: the answer after the call's event, otherwise the server's own message, once.
    fn more(&mut self, headers: &HeaderMap) -> String {
        if headers
            .get("last-event-id")
            .is_some_and(|id| id == "call-1")
        {
            let result = json!({"content": [{"type": "text", "text": "after all"}]});
            let answer = json!({"jsonrpc": "2.0", "id": self.call, "result": result});
            return format!("id: call-2\ndata: {answer}\n\n");
        }
        if std::mem::replace(&mut self.announced, true) {
            return String::new();
        }
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        format!("id: own-1\nretry: 1\ndata: {change}\n\n")
    }
}

fn stream(events: &str) -> Response<Full<Bytes>> {
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Full::from(events.to_owned()))
        .unwrap()
}

impl Dial for Breaking {
    fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let this = self.clone();
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request| this.clone().answer(request));
            let connection = hyper::server::conn::http1::Builder::new();
            let _hung_up = connection
                .serve_connection(TokioIo::new(server), answer)
                .await;
        });
        Box::pin(std::future::ready(Ok(Box::new(client) as Box<dyn Io>)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_gone_on_with_and_the_servers_own_is_heard() {
    let server = Breaking::default();
    let endpoint = Endpoint::new("http://127.0.0.1:1/mcp", HeaderMap::new(), 100_000).unwrap();
    let wire = Arc::new(HttpWire::new(endpoint, Box::new(server.clone())));
    let known = Some(Era::Legacy(Revision::V2025_11_25));
    let client = Client::connect(wire, known, ClientLimits::default())
        .await
        .unwrap();
    let mut changes = client.list_changes();
    let reply = client.call_tool("t", "{}", None).await.unwrap();
    assert!(reply.content[0].get().contains("after all"), "{reply:?}");
    if *changes.borrow_and_update() == 0 {
        changes.changed().await.unwrap();
    }
    let seen = || server.0.lock().seen.clone();
    // The server's own stream ended, and is requested again from where it ended.
    let again = "GET - s-1 own-1";
    until_async(|| seen().iter().any(|line| line == again)).await;
    for line in [
        "POST notifications/initialized s-1 ",
        "GET - s-1 ",
        "GET - s-1 call-1",
    ] {
        assert!(
            seen().iter().any(|seen| seen == line),
            "{line}: {:?}",
            seen()
        );
    }
    client.close().await;
    assert_eq!(seen().last().unwrap(), "DELETE - s-1 ");
}

//! haft's client against servers with the HTTP+SSE of 2024-11-05, and servers that turn out not to have it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft_mcp::client::http::{Endpoint, HttpWire, TransportHint};
use haft_mcp::client::{Client, ClientError, ClientLimits, Dial, Io};
use haft_mcp::era::{Era, Revision};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The behaviour of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has the stream, and accepts no messages at its URL.
    Sse,
    /// It names a URL of another host.
    Elsewhere,
    /// It sends more on its stream than the limit allows, without a message.
    Flood,
    /// It has no stream, either.
    Nothing,
    /// Its stream ends during a call.
    Dies,
    /// It no longer knows the URL for messages.
    Forgets,
}

type Events = mpsc::UnboundedSender<String>;

/// A server in this process.
#[derive(Clone)]
struct Server {
    kind: Kind,
    /// The stream, if one is open.
    stream: Arc<Mutex<Option<Events>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            stream: Arc::default(),
            seen: Arc::default(),
        }
    }

    fn say(&self, event: &str, data: &str) {
        if let Some(stream) = &*self.stream.lock() {
            let _gone = stream.send(format!("event: {event}\r\ndata: {data}\r\n\r\n"));
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Reply, Infallible> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let shown = message["method"].as_str().unwrap_or("").to_owned();
        self.seen
            .lock()
            .push(format!("{method} {path} {shown}").trim_end().to_owned());
        Ok(match (method, path.as_str()) {
            (Method::GET, "/sse") if self.kind != Kind::Nothing => self.open(),
            (Method::POST, "/messages") => self.take(&message),
            (_, "/sse") => plain(StatusCode::METHOD_NOT_ALLOWED, "no"),
            _ => plain(StatusCode::NOT_FOUND, "nothing here"),
        })
    }

    fn open(&self) -> Reply {
        let (events, mut waiting) = mpsc::unbounded_channel::<String>();
        *self.stream.lock() = Some(events);
        match self.kind {
            Kind::Elsewhere => self.say("endpoint", "http://other.example/messages"),
            Kind::Flood => self.say("ping", &"x".repeat(100_000)),
            _ => self.say("endpoint", "/messages?session=1"),
        }
        let frames = futures_util::stream::poll_fn(move |cx| {
            waiting
                .poll_recv(cx)
                .map(|event| event.map(|event| Ok(Frame::data(Bytes::from(event)))))
        });
        Response::builder()
            .header("content-type", "text/event-stream; charset=utf-8")
            .body(StreamBody::new(frames).boxed())
            .unwrap()
    }

    fn take(&self, message: &Value) -> Reply {
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "old", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
            "tools/call" if self.kind == Kind::Dies => {
                self.stream.lock().take();
                return plain(StatusCode::ACCEPTED, "");
            }
            "tools/call" if self.kind == Kind::Forgets => {
                return plain(StatusCode::NOT_FOUND, "no such session");
            }
            "tools/call" => {
                let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
                self.say("message", &ping.to_string());
                let text = message["params"]["arguments"].to_string();
                json!({"content": [{"type": "text", "text": text}]})
            }
            _ => return plain(StatusCode::ACCEPTED, "Accepted"),
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        self.say("message", &answer.to_string());
        plain(StatusCode::ACCEPTED, "Accepted")
    }
}

type Reply = Response<BoxBody<Bytes, Infallible>>;

fn plain(status: StatusCode, text: &'static str) -> Reply {
    Response::builder()
        .status(status)
        .body(Full::from(text).boxed())
        .unwrap()
}

impl Dial for Server {
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

/// Returns a client of this server that uses what is remembered about it.
async fn connect(server: &Server, remembered: &Arc<TransportHint>) -> Result<Client, ClientError> {
    let headers = http::HeaderMap::new();
    let endpoint = Endpoint::new("http://127.0.0.1:1/sse", headers, 50_000).unwrap();
    let wire = HttpWire::known(
        endpoint,
        Box::new(server.clone()),
        Arc::clone(remembered),
        None,
    );
    let known = remembered
        .is_sse()
        .then_some(Era::Legacy(Revision::V2024_11_05));
    Client::connect(Arc::new(wire), known, ClientLimits::default()).await
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_found_out_and_used() {
    let server = Server::new(Kind::Sse);
    let remembered = Arc::default();
    let client = connect(&server, &remembered).await.unwrap();
    assert_eq!(client.transport(), "sse");
    assert_eq!(client.era(), Era::Legacy(Revision::V2024_11_05));
    assert_eq!(client.tools().await.unwrap()[0].name, "echo");
    let arguments = r#"{"big":12345678901234567890123,"z":1,"a":"grün"}"#;
    let reply = client
        .call_tool("echo", r#"{"a":"grün"}"#, None)
        .await
        .unwrap();
    assert!(reply.content[0].get().contains("grün"), "{reply:?}");
    assert!(client.call_tool("echo", arguments, None).await.is_ok());
    assert_eq!(
        server.seen.lock()[..4],
        [
            "POST /sse server/discover",
            "POST /sse initialize",
            "GET /sse",
            "POST /messages initialize"
        ]
    );
    client.close().await;
    assert!(!client.is_open());
    // What was detected also holds for the next wire.
    server.seen.lock().clear();
    let client = connect(&server, &remembered).await.unwrap();
    assert_eq!(
        server.seen.lock()[..2],
        ["GET /sse", "POST /messages initialize"]
    );
    client.close().await;
}

#[tokio::test]
async fn what_is_no_such_server_is_refused_and_gets_no_message() {
    for (kind, part) in [
        (Kind::Nothing, "HTTP 405"),
        (Kind::Elsewhere, "another origin"),
        (Kind::Flood, "over 50000 bytes"),
    ] {
        let server = Server::new(kind);
        let remembered = Arc::default();
        let error = connect(&server, &remembered).await.unwrap_err();
        assert!(error.to_string().contains(part), "{kind:?}: {error}");
        let messages = server
            .seen
            .lock()
            .iter()
            .any(|line| line.contains("/messages"));
        assert!(!messages && !remembered.is_sse(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_closes_the_wire_and_fails_what_is_under_way() {
    let server = Server::new(Kind::Dies);
    let client = connect(&server, &Arc::default()).await.unwrap();
    let error = client.call_tool("echo", "{}", None).await.unwrap_err();
    assert!(matches!(error, ClientError::Closed { .. }), "{error}");
    assert!(!client.is_open());

    let server = Server::new(Kind::Forgets);
    let client = connect(&server, &Arc::default()).await.unwrap();
    let error = client.call_tool("echo", "{}", None).await.unwrap_err();
    assert!(matches!(error, ClientError::SessionOver), "{error}");
    assert!(error.is_before_effect());
}

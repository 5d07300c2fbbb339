//! Requests to the service: directly, or with a hyper client over a connection.

use bytes::Bytes;
use haft::call::Principal;
use haft_mcp::http::{McpBody, McpService};
use http::{HeaderMap, Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tower_service::Service;

pub(crate) const MODERN: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Returns the status and the error code, which is 0 if there is none.
    pub(crate) fn verdict(&self) -> (u16, i64) {
        let code = serde_json::from_str::<Value>(&self.text).ok();
        let code = code.and_then(|value| value["error"]["code"].as_i64());
        (self.status, code.unwrap_or(0))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

pub(crate) fn request(
    method: Method,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = method.clone();
    *request.uri_mut() = "/mcp".parse().unwrap();
    let usual = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let set = |name| headers.iter().any(|(n, _)| *n == name);
    let usual = usual.into_iter().filter(|(name, _)| !set(*name));
    for (name, value) in usual.chain(headers.iter().copied()) {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    request
}

pub(crate) async fn send(service: &McpService, request: Request<Full<Bytes>>) -> Response<McpBody> {
    service.clone().call(request).await.unwrap()
}

pub(crate) async fn reply(response: Response<McpBody>) -> Reply {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

pub(crate) async fn post(service: &McpService, headers: &[(&str, &str)], body: &str) -> Reply {
    let request = request(Method::POST, headers, body.to_owned());
    reply(send(service, request).await).await
}

/// The same as this caller.
pub(crate) async fn post_as(
    service: &McpService,
    subject: &'static str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut request = request(Method::POST, headers, body.to_owned());
    request.extensions_mut().insert(Principal::local(subject));
    reply(send(service, request).await).await
}

/// Sends a stateless request with the required headers.
pub(crate) async fn post_modern(
    service: &McpService,
    method: &str,
    name: Option<&str>,
    body: &str,
) -> Reply {
    let mut headers = vec![MODERN, ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    post(service, &headers, body).await
}

/// Opens a session and returns its id.
pub(crate) async fn open(service: &McpService) -> String {
    let reply = post(service, &[], &super::initialize("2025-11-25")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.header("mcp-session-id").to_owned()
}

/// Returns the next event's data and skips comments. `None` at the end.
pub(crate) async fn event<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Option<Value>
where
    B::Error: std::fmt::Debug,
{
    loop {
        let frame = body.frame().await?.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        assert!(text.ends_with("\n\n"), "a frame is one event: {text:?}");
        // An id may precede it.
        if let Some((_, data)) = text.split_once("event: message\ndata: ") {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

/// Opens a connection to the service, with real HTTP/1 on both ends.
pub(crate) async fn connect(service: &McpService) -> SendRequest<Full<Bytes>> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let service = service.clone();
    tokio::spawn(async move {
        let answer = hyper::service::service_fn(move |request| service.clone().call(request));
        let connection = hyper::server::conn::http1::Builder::new();
        let _hung_up = connection
            .serve_connection(TokioIo::new(server), answer)
            .await;
    });
    let (sender, connection) = http1::handshake(TokioIo::new(client)).await.unwrap();
    tokio::spawn(connection);
    sender
}

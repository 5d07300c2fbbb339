//! Forwards a plain request to its host and returns the response, without hop-by-hop headers.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, MAX_FORWARDS, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use crate::proxy::refusal::Refusal;
use crate::proxy::{Body, MAX_HEAD};
use crate::web::http::{HttpError, ProxyFault, Reached};
use crate::web::target::Target;
use crate::web::upstream::UpstreamProxy;

/// Hop-by-hop headers, in addition to those that `Connection` names (RFC 9110 §7.6.1).
const HOP_BY_HOP: [HeaderName; 11] = [
    CONNECTION,
    // The command must not choose which proxy on the way responds.
    MAX_FORWARDS,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

/// The task of a connection, which ends with the response's body.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends the request on, with a `Host` derived from the URL.
pub(super) async fn forward(
    request: Request<Incoming>,
    upstream: Reached,
    target: &Target,
) -> Result<Response<Body>, Refusal> {
    let failed = |error: hyper::Error| Refusal::Unreachable(format!("{}: {error}", target.host()));
    if request.method() == Method::TRACE {
        // The response would show all headers, including an upstream proxy's login (RFC 9110 §9.3.8).
        return Err(Refusal::Malformed("TRACE is not sent on"));
    }
    let (mut head, body) = request.into_parts();
    // The path as written, because only the host's interpretation matters.
    let path = head.uri.path_and_query().cloned();
    let path = path.unwrap_or(PathAndQuery::from_static("/"));
    remove_hop_headers(&mut head.headers);
    head.uri = match &upstream.relay {
        None => Uri::from(path),
        Some(_) => whole(target, path)?,
    };
    let relay = upstream.relay.as_ref();
    if let Some(value) = relay.and_then(UpstreamProxy::authorization) {
        head.headers.insert(PROXY_AUTHORIZATION, value.clone());
    }
    let host = match target.url().port() {
        Some(port) => format!("{}:{port}", target.host()),
        None => target.host().to_owned(),
    };
    let host = HeaderValue::try_from(host);
    let host = host.map_err(|_| Refusal::Malformed("the host is not valid in a header"))?;
    head.headers.insert(HOST, host);
    let close = HeaderValue::from_static("close");
    head.headers.insert(CONNECTION, close);
    let shaken = http1::Builder::new()
        .max_buf_size(MAX_HEAD * 4)
        .handshake(TokioIo::new(upstream.stream))
        .await;
    let (mut sender, connection) = shaken.map_err(failed)?;
    let driver = Driver(tokio::spawn(async move {
        // The sender gets errors of the connection too.
        let _ = connection.await;
    }));
    let answer = sender.send_request(Request::from_parts(head, body)).await;
    let answer = answer.map_err(failed)?;
    if let Some(proxy) = &upstream.relay
        && let Some(fault) = ProxyFault::from_relay_status(answer.status())
    {
        let error = HttpError::from_proxy_fault(proxy, target, fault);
        return Err(Refusal::from_upstream_error(&error));
    }
    let (mut head, body) = answer.into_parts();
    remove_hop_headers(&mut head.headers);
    let body = body.map_frame(move |frame| {
        let _held = &driver;
        frame
    });
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Returns the URL for an upstream proxy: the host that was checked and the path as written.
fn whole(target: &Target, path: PathAndQuery) -> Result<Uri, Refusal> {
    let host = match target.url().port() {
        Some(port) => format!("{}:{port}", target.host()),
        None => target.host().to_owned(),
    };
    let uri = Uri::builder()
        .scheme("http")
        .authority(host)
        .path_and_query(path);
    uri.build()
        .map_err(|_| Refusal::Malformed("the host is not valid in a URL"))
}

fn remove_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // A hop cannot remove the header that frames the message.
        .filter(|name: &HeaderName| name != hyper::header::CONTENT_LENGTH)
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

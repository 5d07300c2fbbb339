//! One plain request to its host and the answer back; what belongs to one hop is not passed on.

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

/// What a hop alone means, beside what `Connection` names (RFC 9110 §7.6.1).
const OF_A_HOP: [HeaderName; 11] = [
    CONNECTION,
    // Which proxy on the way is to answer is not the command's to say.
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

/// A connection's task, ended with the answer's body.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends the request on; its `Host` is made from the URL.
pub(super) async fn forward(
    request: Request<Incoming>,
    upstream: Reached,
    target: &Target,
) -> Result<Response<Body>, Refusal> {
    let failed = |error: hyper::Error| Refusal::Unreachable(format!("{}: {error}", target.host()));
    if request.method() == Method::TRACE {
        // What answers it shows all headers, a further proxy's login among them (RFC 9110 §9.3.8).
        return Err(Refusal::Malformed("TRACE is not sent on"));
    }
    let (mut head, body) = request.into_parts();
    // The path as it was written: the host's own reading of it counts.
    let path = head.uri.path_and_query().cloned();
    let path = path.unwrap_or(PathAndQuery::from_static("/"));
    clean(&mut head.headers);
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
        // What goes wrong here is told to the sender, too.
        let _ = connection.await;
    }));
    let answer = sender.send_request(Request::from_parts(head, body)).await;
    let answer = answer.map_err(failed)?;
    if let Some(proxy) = &upstream.relay
        && let Some(fault) = ProxyFault::of_relay(answer.status())
    {
        let error = HttpError::of_proxy(proxy, target, fault);
        return Err(Refusal::of_upstream(&error));
    }
    let (mut head, body) = answer.into_parts();
    clean(&mut head.headers);
    let body = body.map_frame(move |frame| {
        let _held = &driver;
        frame
    });
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// The URL as a further proxy takes it: the host that was checked, the path as it was written.
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

fn clean(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // What frames the message is not a hop's to take away.
        .filter(|name: &HeaderName| name != hyper::header::CONTENT_LENGTH)
        .collect();
    for name in named.iter().chain(&OF_A_HOP) {
        headers.remove(name);
    }
}

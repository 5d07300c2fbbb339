//! Forwards a plain request to its host and returns the response, without hop-by-hop headers.

use haft_http::connection::{self, Driver};
use haft_http::tunnel::ProxyFault;
use haft_http::upstream::UpstreamProxy;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::Builder;
use hyper::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, MAX_FORWARDS, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::PathAndQuery;
use hyper::upgrade::{self, OnUpgrade};
use hyper::{Method, Request, Response, StatusCode, Uri};

use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::upgrade::{UpgradeSlot, UpgradedWay};
use crate::proxy::{MAX_HEAD, ProxyBody, empty};
use crate::web::http::{HostConnection, HttpError};
use crate::web::target::WebUrl;

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

/// Sends the request on, with a `Host` derived from the URL. If the host agrees to another protocol, the connection is put in `upgrades`.
pub(super) async fn forward(
    mut request: Request<Incoming>,
    upstream: HostConnection,
    target: &WebUrl,
    upgrades: &UpgradeSlot,
) -> Result<Response<ProxyBody>, ConnectionRefusal> {
    let failed =
        |error: hyper::Error| ConnectionRefusal::Unreachable(format!("{}: {error}", target.host()));
    if request.method() == Method::TRACE {
        // The response would show all headers, including an upstream proxy's login (RFC 9110 §9.3.8).
        return Err(ConnectionRefusal::Malformed("TRACE is not sent on"));
    }
    let upgrade = upgrades.wanted(&request);
    if upgrade.is_some() && upstream.relay.is_some() {
        return Err(ConnectionRefusal::Malformed(
            "no websocket or other upgrade passes network.proxy without TLS",
        ));
    }
    let client = upgrade.is_some().then(|| upgrade::on(&mut request));
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
    let host = HeaderValue::try_from(target.authority());
    let host =
        host.map_err(|_| ConnectionRefusal::Malformed("the host is not valid in a header"))?;
    head.headers.insert(HOST, host);
    let connection = upgrade.as_ref().map_or("close", |_| "upgrade");
    let connection = HeaderValue::from_static(connection);
    head.headers.insert(CONNECTION, connection);
    if let Some(protocols) = upgrade {
        head.headers.insert(UPGRADE, protocols);
    }
    announce_chunks(&mut head.headers, &body);
    let mut limited = Builder::new();
    limited.max_buf_size(MAX_HEAD * 4);
    let started = connection::start(&limited, upstream.stream).await;
    let (mut sender, driver) = started.map_err(failed)?;
    let answer = sender.send_request(Request::from_parts(head, body)).await;
    let answer = answer.map_err(failed)?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return switched(answer, client, driver, upgrades);
    }
    if let Some(proxy) = &upstream.relay
        && let Some(fault) = ProxyFault::from_relay_status(answer.status())
    {
        let error = HttpError::from_proxy_fault(proxy, target, fault);
        return Err(ConnectionRefusal::from_upstream_error(&error));
    }
    let (mut head, body) = answer.into_parts();
    remove_hop_headers(&mut head.headers);
    let body = body.map_frame(move |frame| {
        let _held = &driver;
        frame
    });
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Returns the answer of a host that agrees to another protocol, and keeps the connection.
fn switched(
    mut answer: Response<Incoming>,
    client: Option<OnUpgrade>,
    driver: Driver,
    upgrades: &UpgradeSlot,
) -> Result<Response<ProxyBody>, ConnectionRefusal> {
    let Some(client) = client else {
        let why = "the host changed the protocol unasked";
        return Err(ConnectionRefusal::Unreachable(why.to_owned()));
    };
    let host = upgrade::on(&mut answer);
    let (mut head, _) = answer.into_parts();
    let protocol = head.headers.get(UPGRADE).cloned();
    remove_hop_headers(&mut head.headers);
    let connection = HeaderValue::from_static("upgrade");
    head.headers.insert(CONNECTION, connection);
    if let Some(protocol) = protocol {
        head.headers.insert(UPGRADE, protocol);
    }
    upgrades.put(UpgradedWay {
        client,
        host,
        driver,
    });
    Ok(Response::from_parts(head, empty()))
}

/// Returns the URL for an upstream proxy: the host that was checked and the path as written.
fn whole(target: &WebUrl, path: PathAndQuery) -> Result<Uri, ConnectionRefusal> {
    let uri = Uri::builder()
        .scheme("http")
        .authority(target.authority())
        .path_and_query(path);
    uri.build()
        .map_err(|_| ConnectionRefusal::Malformed("the host is not valid in a URL"))
}

/// Has a body go on in chunks if its length is not known: with a GET or HEAD, hyper leaves it out unless the header is there.
pub(super) fn announce_chunks(headers: &mut HeaderMap, body: &impl Body) {
    if body.size_hint().exact().is_none() && !body.is_end_stream() {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Removes what belongs to one hop alone.
pub(super) fn remove_hop_headers(headers: &mut HeaderMap) {
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

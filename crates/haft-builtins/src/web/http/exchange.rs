//! One hop: resolve, check, connect to a checked address, send the request and read the response within the limits.

use std::net::IpAddr;

use bytes::Bytes;
use haft::policy::address::check_address;
use haft_http::connection::{self, Driver};
use haft_http::network::{ConnectError, connect_first};
use haft_http::stream::Stream;
use haft_http::tunnel::ProxyFault;
use haft_http::upstream::UpstreamProxy;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION,
};
use hyper::{Method, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use crate::web::http::{HostConnection, HostReach, Http, HttpError, HttpReply, body};
use crate::web::target::WebUrl;

/// Maximum size of a response's head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of header lines in a response.
const MAX_HEADERS: usize = 128;

/// The request of a hop.
pub(super) struct HopRequest<'a> {
    pub(super) method: Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
}

impl<'a> HopRequest<'a> {
    pub(super) fn get(headers: &'a HeaderMap) -> Self {
        Self {
            method: Method::GET,
            headers,
            body: Bytes::new(),
        }
    }
}

impl Http {
    /// Sends one request and reads its response, without following redirects.
    pub(super) async fn hop(
        &self,
        target: &WebUrl,
        request: HopRequest<'_>,
        deadline: Instant,
    ) -> Result<HttpReply, HttpError> {
        let late = |what, limit| HttpError::too_slow(target, what, limit);
        let (connect, whole) = (self.limits.connect, self.limits.whole);
        let reached = async {
            let HostConnection { stream, relay } = self.connect(target).await?;
            let started = if target.is_secure() {
                let stream = self.tls.wrap(stream, target.host()).await?;
                start(stream, target).await?
            } else {
                start(stream, target).await?
            };
            Ok::<_, HttpError>((started, relay))
        };
        let first = deadline.min(Instant::now() + connect);
        let reached = timeout_at(first, reached).await;
        let ((mut sender, driver), relay) =
            reached.map_err(|_| late("accept a connection", connect))??;
        let mut outgoing_request = outgoing(target, request)?;
        if let Some(proxy) = &relay {
            address_to_proxy(&mut outgoing_request, target, proxy)?;
        }
        let answer = timeout_at(deadline, sender.send_request(outgoing_request)).await;
        let answer = answer.map_err(|_| late("answer", whole))?;
        let answer = answer.map_err(|e| protocol(target, &e))?;
        if let Some(proxy) = &relay
            && let Some(fault) = ProxyFault::from_relay_status(answer.status())
        {
            return Err(HttpError::from_proxy_fault(proxy, target, fault));
        }
        let reply = self.read(target, answer, deadline).await;
        drop(driver);
        reply
    }

    async fn read(
        &self,
        target: &WebUrl,
        answer: Response<Incoming>,
        deadline: Instant,
    ) -> Result<HttpReply, HttpError> {
        let (head, incoming) = answer.into_parts();
        let read = body::BodyReadLimits {
            host: target.host(),
            max_bytes: self.limits.max_bytes,
            deadline,
        };
        let (body, cut) = read.all(&head.headers, incoming).await?;
        Ok(HttpReply {
            status: head.status.as_u16(),
            url: target.url().to_string(),
            headers: head.headers,
            body,
            cut,
        })
    }

    /// Connects to one of the host's addresses, after checking all of them, or goes through the proxy named in settings.
    pub(crate) async fn connect(&self, target: &WebUrl) -> Result<HostConnection, HttpError> {
        if let Some(proxy) = self.upstream_for(target) {
            return self.through(proxy, target).await;
        }
        let addresses = self.addresses(target).await?;
        let connected = connect_first(
            self.network.as_ref(),
            &addresses,
            target.port(),
            self.limits.connect,
        );
        match connected.await {
            Ok(stream) => Ok(HostConnection {
                stream: Stream::Plain(stream),
                relay: None,
            }),
            Err(error) => Err(not_connected(target, error)),
        }
    }

    /// Returns the host's addresses. If one of them is refused, so is the name (URL rule 6).
    async fn addresses(&self, target: &WebUrl) -> Result<Vec<IpAddr>, HttpError> {
        let addresses = self.look_up(target).await?;
        self.check_addresses(target, &addresses)?;
        Ok(addresses)
    }

    pub(super) async fn look_up(&self, target: &WebUrl) -> Result<Vec<IpAddr>, HttpError> {
        if let Some(address) = target.address() {
            return Ok(vec![address]);
        }
        let found = self.network.resolve(target.host()).await;
        found.map_err(|e| no_such_name(target, &e.to_string()))
    }

    /// Refuses a name if one of its addresses is refused.
    pub(super) fn check_addresses(
        &self,
        target: &WebUrl,
        addresses: &[IpAddr],
    ) -> Result<(), HttpError> {
        if self.reach == HostReach::Named {
            return Ok(());
        }
        self.check_own(target, addresses)?;
        for address in addresses {
            match check_address(*address) {
                Ok(()) => {}
                Err(_)
                    if self
                        .place_of(target)
                        .is_some_and(|place| place.opens(*address)) => {}
                Err(why) => {
                    return Err(HttpError::ResolvesTo {
                        host: target.host().to_owned(),
                        address: *address,
                        why,
                    });
                }
            }
        }
        Ok(())
    }
}

pub(super) fn no_such_name(target: &WebUrl, why: &str) -> HttpError {
    HttpError::NoSuchName {
        host: target.host().to_owned(),
        why: why.to_owned(),
    }
}

fn not_connected(target: &WebUrl, error: ConnectError) -> HttpError {
    let (address, source) = match error {
        ConnectError::NoAddress => return no_such_name(target, "no address"),
        ConnectError::Refused { address, source } => (address, source),
        ConnectError::Late { address } => (address, std::io::ErrorKind::TimedOut.into()),
    };
    HttpError::Connect {
        host: target.host().to_owned(),
        address,
        source,
    }
}

fn protocol(target: &WebUrl, error: &hyper::Error) -> HttpError {
    use std::error::Error;
    let why = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    HttpError::Protocol {
        host: target.host().to_owned(),
        why,
    }
}

type HopSender = SendRequest<Full<Bytes>>;

async fn start<S>(stream: S, target: &WebUrl) -> Result<(HopSender, Driver), HttpError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut limited = Builder::new();
    limited.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let started = connection::start(&limited, stream).await;
    started.map_err(|e| protocol(target, &e))
}

/// Puts the whole URL and the proxy's credentials into the request, because it goes to a proxy (RFC 9112 §3.2.2).
fn address_to_proxy(
    request: &mut hyper::Request<Full<Bytes>>,
    target: &WebUrl,
    proxy: &UpstreamProxy,
) -> Result<(), HttpError> {
    let uri = target.url().as_str().parse();
    *request.uri_mut() = uri.map_err(|_| HttpError::Header("request line".to_owned()))?;
    if let Some(value) = proxy.authorization() {
        request
            .headers_mut()
            .insert(PROXY_AUTHORIZATION, value.clone());
    }
    Ok(())
}

fn outgoing(
    target: &WebUrl,
    request: HopRequest<'_>,
) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
    let url = target.url();
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let wrong = |what: &str| HttpError::Header(what.to_owned());
    let length = request.body.len();
    let sends = request.method == Method::POST;
    let mut builder = hyper::Request::builder()
        .method(request.method)
        .uri(path)
        .body(Full::new(request.body))
        .map_err(|_| wrong("request line"))?;
    let headers = builder.headers_mut();
    headers.clone_from(request.headers);
    headers.insert(
        HOST,
        HeaderValue::try_from(target.authority()).map_err(|_| wrong("Host"))?,
    );
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if sends {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(builder)
}

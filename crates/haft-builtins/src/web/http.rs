//! `Http`: an HTTP/1.1 client that connects only to checked addresses and enforces its limits.

mod body;
mod dial;
mod error;
mod exchange;
mod private;
mod through;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::policy::address::can_be_opened;
use haft_http::tls::Tls;
use haft_http::upstream::UpstreamProxy;
use hyper::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Method, StatusCode};
use rustls::pki_types::CertificateDer;
use tokio::time::Instant;

pub use body::IncompleteReason;
pub use error::HttpError;
pub use haft_http::tunnel::ProxyFault;
#[cfg(feature = "commands")]
pub(crate) use private::OpenAddresses;
pub(crate) use through::HostConnection;

use crate::web::http::exchange::HopRequest;
use crate::web::http::private::PrivatePlace;
use crate::web::network::{BoxFuture, Network, OwnListeners, System};
use crate::web::target::{UrlRefusal, WebUrl};

/// The limits of one request.
#[derive(Debug, Clone)]
pub struct FetchLimits {
    /// Maximum time for the lookup, connection and TLS handshake of one hop together.
    pub connect: Duration,
    /// Maximum time for the whole request, including redirects and the body.
    pub whole: Duration,
    /// Maximum size of the decompressed body, in bytes.
    pub max_bytes: usize,
    /// Maximum number of redirects to follow.
    pub redirects: usize,
}

impl Default for FetchLimits {
    /// Returns 10 seconds, 30 seconds, 10 MiB, 10 redirects.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            whole: Duration::from_secs(30),
            max_bytes: 10 * 1024 * 1024,
            redirects: 10,
        }
    }
}

/// A server's response.
#[derive(Debug, Clone)]
pub struct HttpReply {
    /// The status code, which may be 400 or above.
    pub status: u16,
    /// The URL of the response, after redirects.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The decompressed body.
    pub body: Bytes,
    /// Why the body is incomplete, or `None` if it is complete.
    pub cut: Option<IncompleteReason>,
}

impl HttpReply {
    /// Returns true for a success status.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the media type in lowercase without its parameters, or an empty string if the server names none.
    pub fn media_type(&self) -> String {
        let value = self.headers.get(CONTENT_TYPE);
        let value = value.and_then(|v| v.to_str().ok()).unwrap_or_default();
        let bare = value.split(';').next().unwrap_or_default();
        bare.trim().to_ascii_lowercase()
    }
}

/// The hosts that a client connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostReach {
    /// The public network. Redirects are followed and checked.
    Public,
    /// Any host that the URL names. Redirects are not followed.
    Named,
}

/// An HTTP client. Clones share its certificates. Dropping a request's future cancels the request.
#[derive(Debug, Clone)]
pub struct Http {
    reach: HostReach,
    /// The host and port that may be private.
    place: Option<PrivatePlace>,
    /// The ports that haft itself listens on, which this client does not connect to.
    own: Option<Arc<dyn OwnListeners>>,
    network: Arc<dyn Network>,
    /// The proxy for requests.
    upstream: Option<UpstreamProxy>,
    limits: FetchLimits,
    agent: HeaderValue,
    tls: Arc<Tls>,
}

/// A check before each hop, including the first.
pub(crate) trait HopGate: Send + Sync {
    /// Checks whether the hop is allowed.
    fn pass<'a>(
        &'a self,
        target: &'a WebUrl,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<(), HttpError>>;
}

/// Allows everything.
struct OpenHopGate;

impl HopGate for OpenHopGate {
    fn pass<'a>(&'a self, _: &'a WebUrl, _: Instant) -> BoxFuture<'a, Result<(), HttpError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Http {
    /// Creates a client for URLs named by a model or a page. It connects only to public addresses, at every redirect, and exactly to
    /// those that it checked.
    pub fn guarded() -> Self {
        Self::new(HostReach::Public)
    }

    /// Creates a client for a service whose URL the operator put into settings, on this machine or elsewhere. It does not follow
    /// redirects, so that what it sends, perhaps a key, goes only to that service.
    pub fn trusted() -> Self {
        Self::new(HostReach::Named)
    }

    fn new(reach: HostReach) -> Self {
        Self {
            reach,
            place: None,
            own: None,
            network: Arc::new(System),
            upstream: None,
            limits: FetchLimits::default(),
            agent: HeaderValue::from_static(concat!("haft/", env!("CARGO_PKG_VERSION"))),
            tls: Arc::default(),
        }
    }

    /// Sets other limits.
    pub fn with_limits(mut self, limits: FetchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets another network.
    pub fn with_network(mut self, network: Arc<dyn Network>) -> Self {
        self.network = network;
        self
    }

    /// Sends requests through a proxy, if there is one.
    pub fn with_upstream(mut self, upstream: Option<UpstreamProxy>) -> Self {
        self.upstream = upstream;
        self
    }

    /// Trusts these certificates instead of the system's.
    pub fn with_roots(mut self, roots: Vec<CertificateDer<'static>>) -> Self {
        self.tls = Arc::new(Tls::with_roots(roots));
        self
    }

    /// Sets another `User-Agent`.
    ///
    /// # Errors
    /// [`HttpError::Header`] if the text is not valid in a header.
    pub fn with_user_agent(mut self, agent: &str) -> Result<Self, HttpError> {
        self.agent =
            HeaderValue::from_str(agent).map_err(|_| HttpError::Header("User-Agent".to_owned()))?;
        Ok(self)
    }

    /// Returns the limits of a request.
    pub fn limits(&self) -> &FetchLimits {
        &self.limits
    }

    /// Returns the client's `User-Agent`.
    #[cfg(feature = "web")]
    pub(crate) fn user_agent(&self) -> &str {
        self.agent.to_str().unwrap_or_default()
    }

    /// Fetches a URL; any status is a response. Headers other than `Accept` go only to the first host.
    ///
    /// # Errors
    /// [`HttpError`] says what failed: the URL or an address is refused, the name is not found, the connection, its encryption or the
    /// response is not valid, or it took too long.
    pub async fn get(&self, url: &str, headers: &[(&str, &str)]) -> Result<HttpReply, HttpError> {
        self.follow(url, headers, &OpenHopGate).await
    }

    /// Sends JSON and reads the response; any status is a response. Does not follow redirects.
    ///
    /// # Errors
    /// As for [`get`](Self::get), and [`HttpError::Redirected`] if the service redirects.
    pub async fn post_json(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<HttpReply, HttpError> {
        let target = self.target(url)?;
        let mut headers = self.headers(headers)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = body.into();
        let deadline = Instant::now() + self.limits.whole;
        let request = HopRequest {
            method: Method::POST,
            headers: &headers,
            body,
        };
        self.hop(&target, request, deadline).await
    }

    /// Sends a request unchanged except for haft's `User-Agent`; any status is a response. Does not follow redirects.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub async fn send(&self, request: hyper::Request<Bytes>) -> Result<HttpReply, HttpError> {
        let (head, body) = request.into_parts();
        let target = self.target(&head.uri.to_string())?;
        let mut headers = self.headers(&[])?;
        headers.extend(head.headers);
        let deadline = Instant::now() + self.limits.whole;
        let request = HopRequest {
            method: head.method,
            headers: &headers,
            body,
        };
        self.hop(&target, request, deadline).await
    }

    /// Fetches a URL through a gate, following redirects if this client does.
    pub(crate) async fn follow(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        gate: &dyn HopGate,
    ) -> Result<HttpReply, HttpError> {
        let deadline = Instant::now() + self.limits.whole;
        let mut target = self.target(url)?;
        let mut headers = self.headers(headers)?;
        for _ in 0..=self.limits.redirects {
            gate.pass(&target, deadline).await?;
            let reply = self
                .hop(&target, HopRequest::get(&headers), deadline)
                .await?;
            let Some(location) = redirect(&reply) else {
                return Ok(reply);
            };
            if self.reach == HostReach::Named {
                return Err(HttpError::Redirected {
                    url: target.url().to_string(),
                    location,
                });
            }
            target = self.next(&target, &location, &mut headers)?;
        }
        Err(HttpError::Redirects {
            url: url.to_owned(),
            limit: self.limits.redirects,
        })
    }

    fn next(
        &self,
        from: &WebUrl,
        location: &str,
        headers: &mut HeaderMap,
    ) -> Result<WebUrl, HttpError> {
        let refuse = |why: UrlRefusal| HttpError::refused(location, why);
        let next = from.join(location).map_err(refuse)?;
        self.check(&next).map_err(refuse)?;
        if next.host() != from.host() {
            let safe = [ACCEPT, USER_AGENT];
            let others: Vec<HeaderName> = headers.keys().cloned().collect();
            for name in others.iter().filter(|name| !safe.contains(name)) {
                headers.remove(name);
            }
        }
        Ok(next)
    }

    fn target(&self, url: &str) -> Result<WebUrl, HttpError> {
        let target = WebUrl::parse(url).map_err(|why| HttpError::refused(url, why))?;
        self.check(&target)
            .map_err(|why| HttpError::refused(url, why))?;
        Ok(target)
    }

    /// Fails for hosts that this client does not connect to.
    pub(crate) fn check(&self, target: &WebUrl) -> Result<(), UrlRefusal> {
        match (self.reach, target.check_public()) {
            (HostReach::Named, _) => Ok(()),
            (HostReach::Public, Err(UrlRefusal::Host(host, _)))
                if self.place_of(target).is_some() && can_be_opened(&host) =>
            {
                Ok(())
            }
            (HostReach::Public, checked) => checked,
        }
    }

    fn headers(&self, given: &[(&str, &str)]) -> Result<HeaderMap, HttpError> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, self.agent.clone());
        for (name, value) in given {
            let wrong = || HttpError::Header((*name).to_owned());
            let key = HeaderName::try_from(*name).map_err(|_| wrong())?;
            headers.insert(key, HeaderValue::try_from(*value).map_err(|_| wrong())?);
        }
        Ok(headers)
    }

    /// Returns the number of root certificates that this client trusts.
    ///
    /// # Errors
    /// [`HttpError::NoRoots`] if there are none.
    pub async fn roots(&self) -> Result<usize, HttpError> {
        Ok(self.tls.roots().await?)
    }
}

/// Returns the target of a redirect, if the response is one.
fn redirect(reply: &HttpReply) -> Option<String> {
    let moved = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    if !moved.iter().any(|status| status.as_u16() == reply.status) {
        return None;
    }
    let location = reply.headers.get(LOCATION)?;
    // A location that is not text cannot be followed, and is refused as such.
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

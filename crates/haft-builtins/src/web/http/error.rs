//! `HttpError`: why there is no response, and whether haft refused the request.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haft::error::ToolError;
use haft::policy::address::NonPublicHost;
use haft_http::tls::TlsError;
use haft_http::tunnel::ProxyFault;
use haft_http::upstream::UpstreamProxy;
use thiserror::Error;

use crate::web::target::{UrlRefusal, WebUrl};

/// The reason why a request got no response.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL is not fetched at all.
    #[error("{url} is refused: {why}; no connection to it was made")]
    Refused {
        /// The URL as given.
        url: String,
        /// The reason.
        why: UrlRefusal,
    },
    /// At least one address of the name must not be connected to.
    #[error("{host} is refused: it resolves to {address}, and {why}; no connection to it was made")]
    ResolvesTo {
        /// The name.
        host: String,
        /// The first refused address.
        address: IpAddr,
        /// The reason.
        why: NonPublicHost,
    },
    /// haft itself listens there.
    #[error("{host} is refused: haft itself listens at {place}; no connection to it was made")]
    OwnListener {
        /// The host.
        host: String,
        /// The address and port.
        place: SocketAddr,
    },
    /// `robots.txt` excludes robots.
    #[error("{url} is not fetched: robots.txt of {host} says `{rule}`")]
    Robots {
        /// The URL.
        url: String,
        /// The host.
        host: String,
        /// The rule as written there.
        rule: String,
    },
    /// A redirect leads to a host that no rule allows.
    #[error(
        "{url} redirects to {location}, which the policy does not allow by itself ({why}); no connection to it was made"
    )]
    NotFollowed {
        /// The requested URL.
        url: String,
        /// The target of the redirect.
        location: String,
        /// Why not.
        why: String,
    },
    /// There is no such name, or no resolver.
    #[error("look up {host}: {why}")]
    NoSuchName {
        /// The name.
        host: String,
        /// The resolver's message.
        why: String,
    },
    /// No address of the host accepts connections.
    #[error("connect to {host} ({address}): {source}")]
    Connect {
        /// The host.
        host: String,
        /// The last address tried.
        address: IpAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The proxy named in settings did not connect to the host.
    #[error("the proxy {proxy} did not connect to {place}: {fault}")]
    Proxy {
        /// The proxy's address, without user name and password.
        proxy: String,
        /// The host and port to reach.
        place: String,
        /// What went wrong.
        fault: ProxyFault,
    },
    /// The server's certificate is not valid.
    #[error("the certificate of {host} is not valid: {why}")]
    Certificate {
        /// The host.
        host: String,
        /// What is wrong with the certificate.
        why: String,
    },
    /// The TLS handshake failed for another reason.
    #[error("speak TLS with {host}: {why}")]
    Tls {
        /// The host.
        host: String,
        /// What went wrong.
        why: String,
    },
    /// This machine has no root certificates.
    #[error("no root certificates to check servers by: {0}")]
    NoRoots(String),
    /// The time ran out before a response arrived.
    #[error("{host} did not {what} within {seconds} s")]
    TooSlow {
        /// The host.
        host: String,
        /// What the host did not do.
        what: &'static str,
        /// The limit.
        seconds: f64,
    },
    /// The response is not HTTP, has too large a head, or ends before its body.
    #[error("{host} gave no valid HTTP answer: {why}")]
    Protocol {
        /// The host.
        host: String,
        /// What is wrong with the response.
        why: String,
    },
    /// The body is compressed in an unknown way, or is corrupt.
    #[error("{host} sent a body that cannot be unpacked: {why}")]
    Encoding {
        /// The host.
        host: String,
        /// What is wrong with the body.
        why: String,
    },
    /// There are too many redirects.
    #[error("{url} redirects more than {limit} times: the chain is refused")]
    Redirects {
        /// The first URL of the chain.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// A configured service redirects.
    #[error("{url} redirects to {location}, and a configured service is not followed elsewhere")]
    Redirected {
        /// The URL.
        url: String,
        /// The target of the redirect.
        location: String,
    },
    /// The name or value of a header is not valid.
    #[error("the header {0} cannot be sent: its name or value is not valid")]
    Header(String),
}

/// Returns what the operator can do about a proxy's fault.
fn proxy_advice(fault: &ProxyFault) -> &'static str {
    match fault {
        ProxyFault::Login => {
            "`network.proxy` takes them as http://USER:${env:PROXY_PASSWORD}@HOST:PORT"
        }
        ProxyFault::Answered(_) => {
            "the proxy decides about that host; `network.no_proxy` names hosts that are reached without it"
        }
        _ => {
            "correct `network.proxy`; `haft doctor` tries it; `network.no_proxy` names hosts that are reached without it"
        }
    }
}

impl From<TlsError> for HttpError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::NoRoots(why) => Self::NoRoots(why),
            TlsError::Certificate { host, why, .. } => Self::Certificate { host, why },
            TlsError::Handshake { host, error } => Self::Tls {
                host,
                why: error.to_string(),
            },
        }
    }
}

impl HttpError {
    pub(crate) fn from_proxy_fault(
        proxy: &UpstreamProxy,
        target: &WebUrl,
        fault: ProxyFault,
    ) -> Self {
        Self::Proxy {
            proxy: proxy.address(),
            place: format!("{}:{}", target.host(), target.port()),
            fault,
        }
    }

    pub(crate) fn too_slow(target: &WebUrl, what: &'static str, limit: Duration) -> Self {
        Self::TooSlow {
            host: target.host().to_owned(),
            what,
            seconds: limit.as_secs_f64(),
        }
    }

    pub(crate) fn refused(url: &str, why: UrlRefusal) -> Self {
        Self::Refused {
            url: clipped(url),
            why,
        }
    }

    /// Returns true if this client refused, rather than failed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::ResolvesTo { .. }
                | Self::OwnListener { .. }
                | Self::NotFollowed { .. }
        )
    }

    /// Returns what to do next, or an empty string.
    fn advice(&self) -> &'static str {
        match self {
            Self::Refused { .. } | Self::ResolvesTo { .. } | Self::OwnListener { .. } => {
                "name an http or https URL of the public network, without user name or password"
            }
            Self::NotFollowed { .. } => "fetch that URL in a separate call",
            Self::Robots { .. } | Self::Redirected { .. } => "use another source",
            Self::NoSuchName { .. } => "check the name's spelling",
            Self::Certificate { .. } => "the page cannot be trusted: use another source",
            Self::TooSlow { .. } | Self::Connect { .. } | Self::Proxy { .. } => {
                "try again later, or another source"
            }
            _ => "",
        }
    }
}

impl HttpError {
    /// Returns what the operator can do about the error, or an empty string.
    pub(crate) fn operator_advice(&self) -> &'static str {
        match self {
            Self::Proxy { fault, .. } => proxy_advice(fault),
            Self::Robots { .. } => "`web.robots = false` in settings ignores robots.txt",
            Self::NoRoots(_) => "install the ca-certificates package, or set SSL_CERT_FILE",
            Self::Redirected { .. } => "name the new address in settings",
            _ => "",
        }
    }
}

impl From<HttpError> for ToolError {
    fn from(error: HttpError) -> Self {
        let message = error.to_string();
        let tool_error = match &error {
            refusal if refusal.is_refusal() => Self::denied(message),
            HttpError::NoRoots(_) => Self::unavailable(message),
            HttpError::NoSuchName { .. } => Self::not_found(message),
            _ => Self::failed(message),
        };
        let tool_error = match error.advice() {
            "" => tool_error,
            advice => tool_error.with_advice(advice),
        };
        let tool_error = match error.operator_advice() {
            "" => tool_error,
            advice => tool_error.for_operator(advice),
        };
        tool_error.with_source(error)
    }
}

/// Shortens a URL for a message: at most 200 characters, control characters escaped.
fn clipped(url: &str) -> String {
    let shown: String = url.chars().take(200).flat_map(escape_control).collect();
    if url.chars().count() > 200 {
        format!("{shown}…")
    } else {
        shown
    }
}

fn escape_control(c: char) -> Vec<char> {
    if c.is_control() {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}

//! Checks before routing: whether a request is meant for this server, whether a page of another site made it, and which token it
//! carries.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Uri};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The header in which a browser says which site's page made the request (Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Maximum length of an offending value quoted in an error.
const MAX_SHOWN: usize = 200;

/// The names of this server. A page elsewhere that makes a browser call a loopback port has another origin, and a DNS name
/// rebound to its address is not one of these names.
#[derive(Debug, Clone)]
pub struct HostGuard {
    bound: SocketAddr,
    https: bool,
    others: Vec<Authority>,
}

/// Why a request is rejected as foreign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostGuardError {
    /// A header that must be unambiguous is not.
    #[error("the header {0} appears twice or is not plain text")]
    Unclear(HeaderName),
    /// It names no host.
    #[error("the request names no host")]
    NoHost,
    /// It names another host.
    #[error("the host `{0}` is not a name of this server")]
    Host(String),
    /// Its target differs from its Host header.
    #[error("the request's target is on `{target}`, its Host header says `{host}`")]
    Target {
        /// The authority in the target.
        target: String,
        /// The value of the header.
        host: String,
    },
    /// Its origin is not this server's own.
    #[error("the origin `{0}` is not this server's own")]
    Origin(String),
    /// A page of another origin made the browser send it.
    #[error("a page of another origin made this request (Sec-Fetch-Site: {0})")]
    Site(String),
}

/// The error for a text that is not a host name or address, with or without a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host: expected a name or an address, with or without a port")]
pub struct InvalidHost(pub String);

impl HostGuard {
    /// Creates a guard that accepts the loopback names and the bound address, at the bound port.
    pub fn new(bound: SocketAddr) -> Self {
        Self {
            bound,
            https: false,
            others: Vec::new(),
        }
    }

    /// Declares that browsers reach the server over HTTPS: an address without a port means port 443.
    pub fn over_https(mut self) -> Self {
        self.https = true;
        self
    }

    /// Accepts this host as well: `tools.example` at any port, `tools.example:8443` at that one.
    ///
    /// # Errors
    /// [`InvalidHost`] if the text is not a host name or address with an optional port.
    pub fn also(mut self, host: &str) -> Result<Self, InvalidHost> {
        // No client can reach a server by an unspecified address.
        let named = Authority::parse(host).filter(|host| !host.is_unspecified());
        let host = named.ok_or_else(|| InvalidHost(clip(host)))?;
        self.others.push(host);
        Ok(self)
    }

    /// Checks that a request is meant for this server, and that no page of another origin made it.
    ///
    /// # Errors
    /// [`HostGuardError`] says which header shows that the request is meant for another server or was made by a page of another origin.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HostGuardError> {
        let host = self.host(uri, headers)?;
        self.check_origin(headers, &host)?;
        check_site(headers)
    }

    /// Like [`check`](Self::check), for a page that contains no data: other sites may link to it, so a browser may come from one.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn check_page(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HostGuardError> {
        let host = self.host(uri, headers)?;
        self.check_origin(headers, &host)?;
        if is_navigation(headers) {
            return Ok(());
        }
        check_site(headers)
    }

    /// Returns the host in a request's target or Host header: one of this server's, and the same in both.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, HostGuardError> {
        let header = one(headers, &HOST)?;
        let target = uri.authority().map(http::uri::Authority::as_str);
        let text = header.or(target).ok_or(HostGuardError::NoHost)?;
        let host = Authority::parse(text).filter(|host| self.is_accepted_host(host));
        let host = host.ok_or_else(|| HostGuardError::Host(clip(text)))?;
        if target.is_some_and(|target| Authority::parse(target).as_ref() != Some(&host)) {
            return Err(HostGuardError::Target {
                target: clip(target.unwrap_or_default()),
                host: clip(text),
            });
        }
        Ok(host)
    }

    /// Checks that the origin is exactly where the request is sent: another port of this host is another server.
    fn check_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), HostGuardError> {
        let Some(text) = one(headers, &ORIGIN)? else {
            // Browsers always send it with a request that changes something.
            return Ok(());
        };
        let origin = match text.split_once("://") {
            Some(("http", rest)) => Authority::parse(rest).map(|found| found.at(80)),
            Some(("https", rest)) => Authority::parse(rest).map(|found| found.at(443)),
            _ => None,
        };
        let own = host.clone().at(self.default_port());
        if origin == Some(own) {
            Ok(())
        } else {
            Err(HostGuardError::Origin(clip(text)))
        }
    }

    fn is_accepted_host(&self, host: &Authority) -> bool {
        let port = host.port.unwrap_or(self.default_port());
        let named = |other: &Authority| {
            other.name == host.name && other.port.is_none_or(|named| named == port)
        };
        if self.others.iter().any(named) {
            return true;
        }
        if port != self.bound.port() {
            return false;
        }
        match host.address() {
            // An unspecified address names no server, though some systems connect it to this machine.
            Some(_) if host.is_unspecified() => false,
            Some(address) => address.is_loopback() || address == self.bound.ip(),
            None => host.name == "localhost",
        }
    }

    fn default_port(&self) -> u16 {
        if self.https { 443 } else { 80 }
    }
}

/// Refuses a request that a browser sends on behalf of a page of another origin. Other ports of this host are other origins, even
/// though they get its cookies. Old browsers and other programs do not send the header.
fn check_site(headers: &HeaderMap) -> Result<(), HostGuardError> {
    match one(headers, &FETCH_SITE)? {
        None | Some("none" | "same-origin") => Ok(()),
        Some(other) => Err(HostGuardError::Site(clip(other))),
    }
}

/// Returns whether a browser requests a document for a tab of its own: the page that led there cannot read it.
fn is_navigation(headers: &HeaderMap) -> bool {
    let says = |name: &'static str, what: &str| headers.get(name).is_some_and(|v| v == what);
    says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

/// Returns a header's value. A duplicate or non-text header is an error: two readers could interpret it differently.
///
/// # Errors
/// [`HostGuardError::Unclear`] if the header occurs twice or is not plain text.
pub fn one<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, HostGuardError> {
    let unclear = || HostGuardError::Unclear(name.clone());
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(unclear());
    }
    let text = first.map(|value| value.to_str().map_err(|_| unclear()));
    text.transpose()
}

/// A host, with the port if given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    /// In lower case; an IPv6 address is in brackets.
    name: String,
    port: Option<u16>,
}

impl Authority {
    /// Parses a name or address with or without a port; `None` for anything else.
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = if let Some(end) = text.find(']') {
            text.split_at(end + 1)
        } else {
            text.split_at(text.find(':').unwrap_or(text.len()))
        };
        let port = if port.is_empty() {
            None
        } else {
            let digits = port.strip_prefix(':')?;
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            Some(plain.then(|| digits.parse().ok())??)
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        let bracketed = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let valid = match bracketed {
            Some(inside) => inside.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !name.is_empty() && name.bytes().all(plain),
        };
        valid.then(|| Self {
            name: name.to_ascii_lowercase(),
            port,
        })
    }

    /// Returns the address, if the name is one.
    fn address(&self) -> Option<IpAddr> {
        self.name.trim_matches(['[', ']']).parse().ok()
    }

    fn is_unspecified(&self) -> bool {
        self.address()
            .is_some_and(|address| address.is_unspecified())
    }

    /// Adds this port if there is none.
    fn at(mut self, usual: u16) -> Self {
        self.port.get_or_insert(usual);
        self
    }
}

fn clip(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

/// Returns the token of an `Authorization: Bearer …` header.
pub fn bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Compares two tokens in constant time. An empty token equals nothing.
pub fn same_token(given: &str, expected: &str) -> bool {
    // Compare digests, so that not even the length leaks.
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    let same = bool::from(digest(given).ct_eq(&digest(expected)));
    same && !expected.is_empty()
}

#[cfg(test)]
mod tests;

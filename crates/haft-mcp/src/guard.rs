//! Checks that come before routing: is a request meant for this server, does a page of another site make it, and whose
//! token does it carry.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Uri};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Where a browser says which site the page is of that makes the request (Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What of an offending value is repeated in an error.
const SHOWN: usize = 200;

/// The names of this server. A page elsewhere that makes a browser call a loopback port uses another origin, and a name
/// that was rebound to its address is none of them.
#[derive(Debug, Clone)]
pub struct HostGuard {
    bound: SocketAddr,
    https: bool,
    others: Vec<Authority>,
}

/// Why a request is not for this server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// A header that must be clear is not.
    #[error("the header {0} is there twice or is not plain text")]
    Unclear(HeaderName),
    /// It names no server.
    #[error("the request names no host")]
    NoHost,
    /// It names another server.
    #[error("the host `{0}` is not a name of this server")]
    Host(String),
    /// Its target is on another server than its Host header says.
    #[error("the request's target is on `{target}`, its Host header says `{host}`")]
    Target {
        /// The authority in the target.
        target: String,
        /// The header.
        host: String,
    },
    /// A page of another origin made it.
    #[error("the origin `{0}` is not this server's own")]
    Origin(String),
    /// A page of another origin made the browser send it.
    #[error("a page of another origin made this request (Sec-Fetch-Site: {0})")]
    Site(String),
}

/// A text that is no host name or address, with or without a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host: expected a name or an address, with or without a port")]
pub struct NotAHost(pub String);

impl HostGuard {
    /// Takes the loopback names and the bound address, at the bound port.
    pub fn new(bound: SocketAddr) -> Self {
        Self {
            bound,
            https: false,
            others: Vec::new(),
        }
    }

    /// Browsers reach the server over HTTPS: an address without a port means port 443.
    pub fn over_https(mut self) -> Self {
        self.https = true;
        self
    }

    /// Takes this host as well: `tools.example` at any port, `tools.example:8443` at that one.
    ///
    /// # Errors
    /// [`NotAHost`] where the text is not a host name or address with an optional port.
    pub fn also(mut self, host: &str) -> Result<Self, NotAHost> {
        // Nobody is reached at an unspecified address.
        let named = Authority::parse(host).filter(|host| !host.is_unspecified());
        let host = named.ok_or_else(|| NotAHost(clip(host)))?;
        self.others.push(host);
        Ok(self)
    }

    /// Checks that a request is meant for this server, and that no page of another origin made it.
    ///
    /// # Errors
    /// [`Foreign`] says which header tells that the request is meant for another server, or was made by a page of another origin.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let host = self.host(uri, headers)?;
        self.check_origin(headers, &host)?;
        check_site(headers)
    }

    /// The same for a page that holds no data: other sites may link to it, so a browser may come from one of them.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn check_page(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let host = self.host(uri, headers)?;
        self.check_origin(headers, &host)?;
        if is_navigation(headers) {
            return Ok(());
        }
        check_site(headers)
    }

    /// The host that a request names, in its target or its Host header: one of ours, and the same in both.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Foreign> {
        let header = one(headers, &HOST)?;
        let target = uri.authority().map(http::uri::Authority::as_str);
        let text = header.or(target).ok_or(Foreign::NoHost)?;
        let host = Authority::parse(text).filter(|host| self.is_ours(host));
        let host = host.ok_or_else(|| Foreign::Host(clip(text)))?;
        if target.is_some_and(|target| Authority::parse(target).as_ref() != Some(&host)) {
            return Err(Foreign::Target {
                target: clip(target.unwrap_or_default()),
                host: clip(text),
            });
        }
        Ok(host)
    }

    /// An origin must be the very one that the request is sent to: another port of this host is another server.
    fn check_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), Foreign> {
        let Some(text) = one(headers, &ORIGIN)? else {
            // No browser sent a request that changes something without it.
            return Ok(());
        };
        let origin = match text.split_once("://") {
            Some(("http", rest)) => Authority::parse(rest).map(|found| found.at(80)),
            Some(("https", rest)) => Authority::parse(rest).map(|found| found.at(443)),
            _ => None,
        };
        let own = host.clone().at(self.usual_port());
        if origin == Some(own) {
            Ok(())
        } else {
            Err(Foreign::Origin(clip(text)))
        }
    }

    fn is_ours(&self, host: &Authority) -> bool {
        let port = host.port.unwrap_or(self.usual_port());
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
            // An unspecified address is no server's name, though some systems connect it to this machine.
            Some(_) if host.is_unspecified() => false,
            Some(address) => address.is_loopback() || address == self.bound.ip(),
            None => host.name == "localhost",
        }
    }

    fn usual_port(&self) -> u16 {
        if self.https { 443 } else { 80 }
    }
}

/// Refuses a request that a browser sends for a page of another origin. Other ports of this host are other origins, though
/// they get its cookies. What is no browser, or an old one, says nothing here.
fn check_site(headers: &HeaderMap) -> Result<(), Foreign> {
    match one(headers, &FETCH_SITE)? {
        None | Some("none" | "same-origin") => Ok(()),
        Some(other) => Err(Foreign::Site(clip(other))),
    }
}

/// Whether a browser asks for a document of its own tab: the page that sent it there sees nothing of it.
fn is_navigation(headers: &HeaderMap) -> bool {
    let says = |name: &'static str, what: &str| headers.get(name).is_some_and(|v| v == what);
    says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

/// A header's value; an error where it is there twice or is not plain text: two readers could read it in two ways.
///
/// # Errors
/// [`Foreign::Unclear`] where the header is there twice or is not plain text.
pub fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Foreign> {
    let unclear = || Foreign::Unclear(name.clone());
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(unclear());
    }
    let text = first.map(|value| value.to_str().map_err(|_| unclear()));
    text.transpose()
}

/// A host, with the port where one is named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    /// In lower case; an IPv6 address in brackets.
    name: String,
    port: Option<u16>,
}

impl Authority {
    /// Reads a name or address with or without a port; `None` for anything that is more than these.
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

    /// The address, where the name is one.
    fn address(&self) -> Option<IpAddr> {
        self.name.trim_matches(['[', ']']).parse().ok()
    }

    fn is_unspecified(&self) -> bool {
        self.address()
            .is_some_and(|address| address.is_unspecified())
    }

    /// The same, at this port where none is named.
    fn at(mut self, usual: u16) -> Self {
        self.port.get_or_insert(usual);
        self
    }
}

fn clip(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// The token of an `Authorization: Bearer …` header.
pub fn bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether two tokens are the same, in a time that says nothing of where they differ. An empty one equals nothing.
pub fn same_token(given: &str, expected: &str) -> bool {
    // Of digests, so that not even the length shows.
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    let same = bool::from(digest(given).ct_eq(&digest(expected)));
    same && !expected.is_empty()
}

#[cfg(test)]
mod tests;

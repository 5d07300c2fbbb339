//! `WebUrl`: a URL to fetch, parsed by the WHATWG standard and refused where parsers disagree (URL rule 2).

use std::net::IpAddr;

use haft::policy::address::{NonPublicHost, check_host};
use thiserror::Error;
use url::{Host, Url};

/// The bad ports of the Fetch standard (fetch.spec.whatwg.org, "port blocking"): URL rule 7.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 8 * 1024;

/// The reason why a URL is not fetched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlRefusal {
    /// The URL is not absolute, or parsers disagree about it.
    #[error("it is not a URL that all parsers read the same way ({0})")]
    Malformed(String),
    /// The scheme is neither `http` nor `https`.
    #[error("only http and https are fetched, not {0}")]
    Scheme(String),
    /// The URL has a user name, a password, or an `@` in their place.
    #[error("it holds a user name or a password")]
    Credentials,
    /// The port belongs to another protocol.
    #[error("port {0} belongs to another protocol")]
    Port(u16),
    /// The host is not on the public network.
    #[error("{0}: {1}")]
    Host(String, NonPublicHost),
}

/// An absolute `http` or `https` URL without credentials, with its host and port (URL rule 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl {
    url: Url,
    host: String,
    port: u16,
}

impl WebUrl {
    /// Parses a URL. `check_public` checks whether its host is public.
    ///
    /// # Errors
    /// [`UrlRefusal`] says which rule the URL breaks.
    pub fn parse(text: &str) -> Result<Self, UrlRefusal> {
        check_unambiguous(text)?;
        let url = Url::parse(text).map_err(|e| UrlRefusal::Malformed(e.to_string()))?;
        Self::of(url)
    }

    /// Resolves a `Location`, absolute or relative to this URL (URL rule 8).
    ///
    /// # Errors
    /// [`UrlRefusal`] says which rule the URL breaks.
    pub fn join(&self, location: &str) -> Result<Self, UrlRefusal> {
        if scheme(location).is_some() {
            return Self::parse(location);
        }
        clear_text(location)?;
        let joined = self.url.join(location);
        Self::of(joined.map_err(|e| UrlRefusal::Malformed(e.to_string()))?)
    }

    /// Returns the target of a program's own connection, at any port. No URL decides what the program sends there, so the ports
    /// of other protocols (URL rule 7) are allowed.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    #[cfg(feature = "commands")]
    pub(crate) fn of_connection(scheme: &str, host: &str, port: u16) -> Result<Self, UrlRefusal> {
        let mut target = Self::parse(&format!("{scheme}://{host}/"))?;
        let wrong = |()| UrlRefusal::Malformed(format!("port {port}"));
        target.url.set_port(Some(port)).map_err(wrong)?;
        target.port = port;
        Ok(target)
    }

    fn of(mut url: Url) -> Result<Self, UrlRefusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlRefusal::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefusal::Credentials);
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(UrlRefusal::Malformed("no host".to_owned()));
        };
        if BAD_PORTS.contains(&port) {
            return Err(UrlRefusal::Port(port));
        }
        let host = host.to_owned();
        // Clients do not send fragments.
        url.set_fragment(None);
        Ok(Self { url, host, port })
    }

    /// Checks that the host is on the public network.
    ///
    /// # Errors
    /// [`UrlRefusal`] if the host is not on the public network.
    pub fn check_public(&self) -> Result<(), UrlRefusal> {
        check_host(&self.host).map_err(|why| UrlRefusal::Host(self.host.clone(), why))
    }

    /// Returns the URL without its fragment.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the host in lowercase; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns host and port as in the URL: without the scheme's default port.
    pub fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Returns the port, or the scheme's default if the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns true if the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the host as an address, if it is one.
    pub fn address(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(v4) => Some(v4.into()),
            Host::Ipv6(v6) => Some(v6.into()),
            Host::Domain(_) => None,
        }
    }
}

/// Returns the scheme that a text begins with, if there is one.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let word = scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    (word && scheme.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(scheme)
}

/// Refuses what lenient parsers drop, convert or guess: blanks and control characters, backslashes (URL rule 2).
fn clear_text(text: &str) -> Result<(), UrlRefusal> {
    let malformed = |why: &str| Err(UrlRefusal::Malformed(why.to_owned()));
    if text.len() > MAX_URL {
        return malformed("over 8 KiB");
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return malformed("a blank at its edge or a control character");
    }
    let path = text.split(['?', '#']).next().unwrap_or(text);
    if path.contains('\\') {
        return malformed("a backslash");
    }
    Ok(())
}

/// Performs the same check for an absolute URL, which must spell out its authority.
fn check_unambiguous(text: &str) -> Result<(), UrlRefusal> {
    clear_text(text)?;
    let malformed = |why: &str| Err(UrlRefusal::Malformed(why.to_owned()));
    let Some(scheme) = scheme(text) else {
        return malformed("no scheme");
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(UrlRefusal::Scheme(scheme.to_ascii_lowercase()));
    }
    let Some(rest) = text[scheme.len()..].strip_prefix("://") else {
        return malformed("no // after the scheme");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.is_empty() {
        return malformed("no host");
    }
    if authority.contains('@') {
        return Err(UrlRefusal::Credentials);
    }
    if authority.contains(char::is_whitespace) {
        return malformed("a blank in the host");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{UrlRefusal, WebUrl};

    fn check(text: &str) -> Result<(String, u16), UrlRefusal> {
        let target = WebUrl::parse(text)?;
        target.check_public()?;
        Ok((target.host().to_owned(), target.port()))
    }

    #[test]
    fn hosts_are_read_as_the_standard_does() {
        let rows = [
            ("HTTPS://EXAMPLE.COM/", "example.com", 443),
            ("http://example.com./x?a\\b", "example.com.", 80),
            (
                "https://bücher.example.com:8443/",
                "xn--bcher-kva.example.com",
                8443,
            ),
            (
                "http://[2001:4860:4860::8888]/",
                "[2001:4860:4860::8888]",
                80,
            ),
            ("https://example.com/@127.0.0.1", "example.com", 443),
        ];
        for (text, host, port) in rows {
            assert_eq!(check(text), Ok((host.to_owned(), port)), "{text}");
        }
    }

    #[test]
    fn what_parsers_read_in_different_ways_is_refused() {
        let rows = [
            ("http://0x7f.1/", "127.0.0.1: it is not an address"),
            ("http://①②⑦.0.0.1/", "127.0.0.1: it is not an address"),
            (
                "http://local\u{ad}host/",
                "localhost: it is a name of this machine",
            ),
            ("http:\\\\127.0.0.1\\", "a backslash"),
            (" http://example.com/", "a blank at its edge"),
            ("http://example.com\t/", "control character"),
            ("http:///example.com/", "no host"),
            ("http:example.com", "no // after"),
            ("example.com", "no scheme"),
            (
                "file:///etc/passwd",
                "only http and https are fetched, not file",
            ),
            ("http://@example.com/", "a user name"),
            ("http://example.com:22/", "port 22"),
            ("http://example.com:65536/", "not a URL that all parsers"),
        ];
        for (text, say) in rows {
            let refused = check(text).unwrap_err().to_string();
            assert!(refused.contains(say), "{text}: {refused}");
        }
    }

    #[test]
    fn redirects_are_read_like_urls() {
        let from = WebUrl::parse("https://example.com/a/b").unwrap();
        let to = |location: &str| from.join(location).map(|t| t.url().to_string());
        assert_eq!(to("../c?x=1#f").unwrap(), "https://example.com/c?x=1");
        assert_eq!(to("//example.org/").unwrap(), "https://example.org/");
        assert_eq!(to("HTTP://example.org").unwrap(), "http://example.org/");
        for bad in [
            "/\\127.0.0.1/",
            "file:///etc/passwd",
            "http://u:p@example.org/",
            "//u@example.org/",
            "https:/x",
            "https:example.org",
        ] {
            assert!(to(bad).is_err(), "{bad}");
        }
    }
}

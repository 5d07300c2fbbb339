//! `UpstreamProxy`: the HTTP proxy for haft's own requests, and the hosts that are reached without it.

mod direct;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use thiserror::Error;
use url::{Host, Url};

use crate::upstream::direct::DirectHost;

/// The reason why the settings of a proxy are not usable. Messages do not repeat the value, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The URL of the proxy is not valid.
    #[error("it is not the URL of a proxy ({0})")]
    Url(String),
    /// An entry of the hosts that are reached directly is not valid.
    #[error("`{entry}` names no host: {why}")]
    Direct {
        /// The entry as written.
        entry: String,
        /// What is wrong with the entry.
        why: &'static str,
    },
}

/// A proxy that accepts `CONNECT`, over plain HTTP or TLS, with the user name and password from its URL. Clones share it.
#[derive(Clone)]
pub struct UpstreamProxy(Arc<Inner>);

struct Inner {
    /// True if the connection to the proxy uses TLS.
    secure: bool,
    host: Host,
    port: u16,
    authorization: Option<HeaderValue>,
    direct: Vec<DirectHost>,
}

impl UpstreamProxy {
    /// Creates a proxy from its URL, `http://HOST:PORT` or `https://HOST:PORT`, with `USER:PASSWORD@` if it requires them.
    ///
    /// `direct` names hosts that are reached without it: `example.com` including all names below it, `.example.com` only the names
    /// below, `10.0.0.0/8`, `example.com:8443`, `*` for every host. An entry may hold several, separated by commas. This
    /// machine itself is always reached directly.
    ///
    /// # Errors
    /// [`UpstreamError`] says what is not valid, without the password.
    pub fn new<I>(url: &str, direct: I) -> Result<Self, UpstreamError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let wrong = |why: &str| UpstreamError::Url(why.to_owned());
        let url = Url::parse(url.trim()).map_err(|error| wrong(&error.to_string()))?;
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("it begins with neither http:// nor https://")),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has more than host and port"));
        }
        let host = url
            .host()
            .ok_or_else(|| wrong("it has no host"))?
            .to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let mut hosts = Vec::new();
        for entry in direct {
            for part in entry.as_ref().split(',').map(str::trim) {
                if !part.is_empty() {
                    hosts.push(DirectHost::parse(part)?);
                }
            }
        }
        Ok(Self(Arc::new(Inner {
            secure,
            host,
            port,
            authorization: authorization(&url)?,
            direct: hosts,
        })))
    }

    /// Returns the proxy's address for display, without user name and password: `http://proxy.example:3128`.
    pub fn address(&self) -> String {
        let scheme = if self.0.secure { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.0.host, self.0.port)
    }

    /// Returns true if requests to this host go through the proxy.
    pub fn serves(&self, host: &str, port: u16) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let direct = || self.0.direct.iter().any(|entry| entry.names(host, port));
        !names_this_machine(host) && !direct()
    }

    /// Returns true if the connection to the proxy uses TLS.
    pub fn is_secure(&self) -> bool {
        self.0.secure
    }

    /// Returns the proxy's host.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// Returns the proxy's port.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Returns the proxy's IP address, if its URL has one instead of a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.0.host {
            Host::Ipv4(v4) => Some((*v4).into()),
            Host::Ipv6(v6) => Some((*v6).into()),
            Host::Domain(_) => None,
        }
    }

    /// Returns the credentials sent to the proxy (RFC 7617).
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.0.authorization.as_ref()
    }
}

impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UpstreamProxy")
            .field(&self.address())
            .finish()
    }
}

/// Returns true if a host is the loopback of this machine.
fn names_this_machine(host: &str) -> bool {
    let name = host.to_ascii_lowercase();
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    match address {
        Some(address) => address.to_canonical().is_loopback(),
        None => name == "localhost" || name.ends_with(".localhost"),
    }
}

fn authorization(url: &Url) -> Result<Option<HeaderValue>, UpstreamError> {
    let (user, password) = (url.username(), url.password());
    if user.is_empty() && password.is_none() {
        return Ok(None);
    }
    let mut shown: Vec<u8> = percent_encoding::percent_decode_str(user).collect();
    if shown.contains(&b':') {
        let why = "a user name with a colon cannot be sent";
        return Err(UpstreamError::Url(why.to_owned()));
    }
    shown.push(b':');
    shown.extend(percent_encoding::percent_decode_str(
        password.unwrap_or_default(),
    ));
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(shown)));
    let mut value = value.map_err(|error| UpstreamError::Url(error.to_string()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::UpstreamProxy;

    const NONE: [&str; 0] = [];

    #[test]
    fn urls_are_read_and_shown_without_their_password() {
        for (url, address, basic) in [
            (
                "http://proxy.example:3128",
                "http://proxy.example:3128",
                None,
            ),
            ("http://proxy.example/", "http://proxy.example:80", None),
            ("https://10.0.0.8", "https://10.0.0.8:443", None),
            ("http://[::1]:8080", "http://[::1]:8080", None),
            // Aladdin:open sesame, the example of RFC 7617.
            (
                "http://Aladdin:open%20sesame@proxy.example:3128",
                "http://proxy.example:3128",
                Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ),
        ] {
            let proxy = UpstreamProxy::new(url, NONE).unwrap();
            assert_eq!(proxy.address(), address, "{url}");
            let sent = proxy.authorization().map(|value| value.to_str().unwrap());
            assert_eq!(sent, basic, "{url}");
            let shown = format!("{proxy:?} {:?}", proxy.authorization());
            assert!(
                !shown.contains("sesame") && !shown.contains("QWxh"),
                "{shown}"
            );
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_repeating_it() {
        for url in [
            "",
            "proxy.example:3128",
            "socks5://u:hush@proxy.example:1080",
            "http://u:hush@proxy.example:3128/path",
            "http://u:hush@proxy.example:3128/?q",
            "http://u:hush@",
            "http://u%3A:hush@proxy.example",
        ] {
            let refused = UpstreamProxy::new(url, NONE).unwrap_err().to_string();
            assert!(!refused.contains("hush"), "{url}: {refused}");
        }
    }

    #[test]
    fn hosts_of_the_list_and_this_machine_are_reached_directly() {
        let list = [
            "example.com, .below.example",
            "10.0.0.0/8",
            "only.example:8443",
            "[2001:db8::1]:8443",
            "[2001:db8::2]",
        ];
        let proxy = UpstreamProxy::new("http://proxy.example:3128", list).unwrap();
        for (host, port, through) in [
            ("example.com", 443, false),
            ("EXAMPLE.com.", 443, false),
            ("www.example.com", 443, false),
            ("notexample.com", 443, true),
            ("below.example", 443, true),
            ("a.below.example", 443, false),
            ("10.1.2.3", 80, false),
            ("11.1.2.3", 80, true),
            ("only.example", 8443, false),
            ("only.example", 443, true),
            ("[2001:db8::1]", 8443, false),
            ("[2001:db8::1]", 443, true),
            ("[2001:db8::2]", 443, false),
            ("localhost", 80, false),
            ("app.localhost", 80, false),
            ("127.0.0.1", 80, false),
            ("[::1]", 80, false),
            ("other.example.org", 443, true),
        ] {
            assert_eq!(proxy.serves(host, port), through, "{host}:{port}");
        }
        let none = UpstreamProxy::new("http://proxy.example:3128", ["*"]).unwrap();
        assert!(!none.serves("example.com", 443));
        for wrong in [
            "a b",
            "10.0.0.0/33",
            "a*.example",
            "http://x.example",
            "x:99999",
        ] {
            let refused = UpstreamProxy::new("http://proxy.example:3128", [wrong]);
            assert!(refused.unwrap_err().to_string().contains(wrong));
        }
    }
}

//! Who may knock at an HTTP door: checks of Host, Origin and token, for every route, before routing.

use std::net::{IpAddr, SocketAddr};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Whose requests are taken: names under which this server is meant. A page elsewhere that makes a browser call a
/// loopback port, or a name that was rebound to it, is none of them.
#[derive(Debug, Clone)]
pub struct HostGuard {
    bound: SocketAddr,
    others: Vec<String>,
}

impl HostGuard {
    /// Takes the loopback names and the bound address, at the bound port.
    pub fn new(bound: SocketAddr) -> Self {
        Self {
            bound,
            others: Vec::new(),
        }
    }

    /// Takes this host as well, at any port: what a proxy in front calls the server.
    pub fn also(mut self, host: &str) -> Self {
        self.others.push(host.to_ascii_lowercase());
        self
    }

    /// Whether a request with this Host header is meant for this server. None, or more than a name and port, is not.
    pub fn allows_host(&self, host: Option<&str>) -> bool {
        host.and_then(split)
            .is_some_and(|(name, port)| self.is_ours(&name, port.unwrap_or(80)))
    }

    /// Whether a request with this Origin header may be answered. No browser sent one without it.
    pub fn allows_origin(&self, origin: Option<&str>) -> bool {
        let Some(origin) = origin else { return true };
        let (authority, usual) = match origin.split_once("://") {
            Some(("http", authority)) => (authority, 80),
            Some(("https", authority)) => (authority, 443),
            _ => return false,
        };
        split(authority).is_some_and(|(name, port)| self.is_ours(&name, port.unwrap_or(usual)))
    }

    fn is_ours(&self, name: &str, port: u16) -> bool {
        if self.others.iter().any(|other| other == name) {
            return true;
        }
        if port != self.bound.port() {
            return false;
        }
        let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
        match address {
            Ok(address) => address.is_loopback() || address == self.bound.ip(),
            Err(_) => name == "localhost",
        }
    }
}

/// Name (lower case) and port of an authority; `None` for anything that is not just these.
fn split(authority: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = if let Some(end) = authority.find(']') {
        authority.split_at(end + 1)
    } else {
        authority.split_at(authority.find(':').unwrap_or(authority.len()))
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
    valid.then(|| (name.to_ascii_lowercase(), port))
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
mod tests {
    use super::*;

    fn guard() -> HostGuard {
        HostGuard::new("127.0.0.1:7420".parse().unwrap()).also("Tools.Example")
    }

    #[test]
    fn a_host_is_ours_by_loopback_name_bound_address_or_leave() {
        for (host, expect) in [
            (Some("127.0.0.1:7420"), true),
            (Some("localhost:7420"), true),
            (Some("LOCALHOST:7420"), true),
            (Some("[::1]:7420"), true),
            (Some("127.0.0.2:7420"), true),
            (Some("tools.example"), true),
            (Some("tools.example:8443"), true),
            (Some("127.0.0.1"), false),
            (Some("localhost:7421"), false),
            (Some("evil.example:7420"), false),
            (Some("localhost.evil.example:7420"), false),
            (Some("127.0.0.1.evil.example:7420"), false),
            (Some("evil@localhost:7420"), false),
            (Some("localhost:7420@evil"), false),
            (Some("localhost:7420, evil"), false),
            (Some("localhost:+7420"), false),
            (Some("localhost:"), false),
            (Some("localhost:99999"), false),
            (Some("[::1:7420"), false),
            (Some("10.0.0.1:7420"), false),
            (Some("0.0.0.0:7420"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(guard().allows_host(host), expect, "{host:?}");
        }
    }

    #[test]
    fn an_origin_is_ours_or_absent() {
        for (origin, expect) in [
            (None, true),
            (Some("http://localhost:7420"), true),
            (Some("http://127.0.0.1:7420"), true),
            (Some("http://[::1]:7420"), true),
            (Some("https://tools.example"), true),
            (Some("null"), false),
            (Some(""), false),
            (Some("http://localhost"), false),
            (Some("http://localhost:3000"), false),
            (Some("http://evil.example"), false),
            (Some("file://localhost:7420"), false),
            (Some("http://localhost:7420/path"), false),
            (Some("chrome-extension://abc"), false),
        ] {
            assert_eq!(guard().allows_origin(origin), expect, "{origin:?}");
        }
    }

    #[test]
    fn a_bound_address_of_the_network_is_its_own_name() {
        let guard = HostGuard::new("10.1.2.3:80".parse().unwrap());
        assert!(guard.allows_host(Some("10.1.2.3")));
        assert!(guard.allows_origin(Some("http://10.1.2.3")));
        assert!(!guard.allows_host(Some("10.1.2.4")));
    }

    #[test]
    fn a_bearer_is_read_and_compared_whole() {
        for (header, expect) in [
            (Some("Bearer abc"), Some("abc")),
            (Some("bearer  abc "), Some("abc")),
            (Some("Basic abc"), None),
            (Some("Bearer "), None),
            (Some("Bearer"), None),
            (None, None),
        ] {
            assert_eq!(bearer(header), expect, "{header:?}");
        }
        assert!(same_token("secret", "secret"));
        assert!(!same_token("secret", "secreT"));
        assert!(!same_token("secret", "secret2"));
        assert!(!same_token("", ""));
    }
}

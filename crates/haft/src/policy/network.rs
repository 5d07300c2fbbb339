//! `NetworkPattern`: hosts that commands connect to, as `Network(…)` rules name them.

use super::pattern::DomainPattern;

/// The ports of a host that an allow rule names without one.
const PORTS: [u16; 2] = [80, 443];

/// Names that stand for the hosts of a package registry or a service. None is a public host: none has a dot.
const BUNDLES: &[(&str, &[&str])] = &[
    ("npm", &["registry.npmjs.org", "registry.yarnpkg.com"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    (
        "crates",
        &["crates.io", "index.crates.io", "static.crates.io"],
    ),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
    ("debian", &["deb.debian.org", "security.debian.org"]),
    (
        "github",
        &[
            "github.com",
            "api.github.com",
            "codeload.github.com",
            "raw.githubusercontent.com",
            "objects.githubusercontent.com",
            "release-assets.githubusercontent.com",
        ],
    ),
];

/// A host with its port: `example.com`, `*.example.com`, `example.com:8443`, or a bundle such as `npm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkPattern {
    hosts: Box<[DomainPattern]>,
    port: Option<u16>,
}

impl NetworkPattern {
    /// `None` where the text names no host.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((_, hosts)) = BUNDLES.iter().find(|(name, _)| *name == text) {
            let hosts = hosts.iter().map(|host| DomainPattern::parse(host));
            return Some(Self {
                hosts: hosts.collect::<Option<_>>()?,
                port: None,
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let host = DomainPattern::parse(host)?;
        Some(Self {
            hosts: [host].into(),
            port,
        })
    }

    /// Whether an allow rule covers a connection.
    pub(crate) fn allows(&self, host: &str, port: Option<u16>) -> bool {
        let fits = match self.port {
            Some(own) => port == Some(own),
            None => port.is_some_and(|port| PORTS.contains(&port)),
        };
        fits && self.names(host)
    }

    /// Whether a deny or ask rule covers a connection: without a port of its own, at every port.
    pub(crate) fn forbids(&self, host: &str, port: Option<u16>) -> bool {
        let fits = self.port.is_none() || port.is_none() || self.port == port;
        fits && self.names(host)
    }

    /// Whether it names one host and one port.
    pub(crate) fn is_exact(&self) -> bool {
        self.port.is_some() && matches!(&*self.hosts, [host] if host.is_exact())
    }

    fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|pattern| pattern.matches(host))
    }
}

/// The port of `host:port`, or of a URL.
pub(crate) fn port_of(address: &str) -> Option<u16> {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("", address),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let after = authority
        .rsplit_once(']')
        .map_or(authority, |(_, after)| after);
    match (after.rsplit_once(':'), scheme) {
        (Some((_, port)), _) => port.parse().ok(),
        (None, "https") => Some(443),
        (None, "http") => Some(80),
        (None, _) => None,
    }
}

/// The rule that allows a connection to this host and port.
pub(crate) fn rule_for(host: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if !PORTS.contains(&port) => format!("Network({host}:{port})"),
        _ => format!("Network({host})"),
    }
}

#[cfg(test)]
mod tests {
    use super::{BUNDLES, NetworkPattern, port_of, rule_for};

    #[test]
    fn hosts_ports_and_bundles_are_read() {
        for (text, host, port, allows, forbids) in [
            ("example.com", "example.com", 443, true, true),
            ("example.com", "EXAMPLE.com.", 80, true, true),
            ("example.com", "example.com", 22, false, true),
            ("example.com", "www.example.com", 443, false, false),
            ("*.example.com", "a.b.example.com", 443, true, true),
            ("*.example.com", "example.com", 443, false, false),
            ("example.com:8443", "example.com", 8443, true, true),
            ("example.com:8443", "example.com", 443, false, false),
            ("npm", "registry.npmjs.org", 443, true, true),
            ("npm", "npm", 443, false, false),
            ("[2001:db8::1]:8443", "[2001:db8::1]", 8443, true, true),
            ("*", "example.com", 443, true, true),
            // An address is one, however it is spelt.
            ("1.1.1.1", "[::ffff:1.1.1.1]", 443, true, true),
            ("1.1.1.1", "[::ffff:101:101]", 443, true, true),
            ("[::ffff:1.1.1.1]", "1.1.1.1", 443, true, true),
            ("[2001:0db8:0::1]", "[2001:db8::1]", 443, true, true),
            (
                "xn--bcher-kva.example",
                "XN--bcher-kva.example",
                443,
                true,
                true,
            ),
        ] {
            let pattern = NetworkPattern::parse(text).unwrap();
            assert_eq!(
                pattern.allows(host, Some(port)),
                allows,
                "{text} {host}:{port}"
            );
            assert_eq!(
                pattern.forbids(host, Some(port)),
                forbids,
                "{text} {host}:{port}"
            );
        }
        for text in [
            "",
            "https://example.com/",
            "example.com:x",
            "a b",
            "example.com:99999",
        ] {
            assert_eq!(NetworkPattern::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_suggested_rule_covers_the_connection_and_every_bundle_can_be_read() {
        for (host, port) in [
            ("example.com", 443),
            ("example.com", 8443),
            ("pypi.org", 443),
        ] {
            let rule = rule_for(host, Some(port));
            let inner = rule
                .strip_prefix("Network(")
                .unwrap()
                .strip_suffix(')')
                .unwrap();
            assert!(
                NetworkPattern::parse(inner)
                    .unwrap()
                    .allows(host, Some(port)),
                "{rule}"
            );
        }
        for (address, port) in [
            ("example.com:8443", Some(8443)),
            ("https://example.com/a:1", Some(443)),
            ("http://localhost:3000/x?y=z:4", Some(3000)),
            ("http://[::1]/", Some(80)),
            ("[::1]:5", Some(5)),
            ("example.com", None),
        ] {
            assert_eq!(port_of(address), port, "{address}");
        }
        for (text, exact) in [
            ("localhost:3000", true),
            ("localhost", false),
            ("*.a.example:1", false),
            ("npm", false),
        ] {
            assert_eq!(
                NetworkPattern::parse(text).unwrap().is_exact(),
                exact,
                "{text}"
            );
        }
        for (name, _) in BUNDLES {
            assert!(NetworkPattern::parse(name).is_some(), "{name}");
        }
    }
}

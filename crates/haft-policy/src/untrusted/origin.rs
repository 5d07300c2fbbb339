//! The origin of untrusted content and the recipient of a call, in the one form in which they are compared.

use crate::network_bundle::NetworkBundle;

/// Returns the origin `host NAME` for what a host serves at the usual port for TLS, `host NAME:PORT` for any other port: another port
/// may be another party's.
pub(super) fn of_host(host: &str, port: Option<u16>) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match port {
        None | Some(443) => format!("host {host}"),
        Some(port) => format!("host {host}:{port}"),
    }
}

/// Whether the party behind an origin and a recipient is the same. A site is the same with and without `www.`, with TLS and where it is read
/// without it, and the hosts of a package registry are one party.
pub(super) fn is_same_party(origin: &str, recipient: &str) -> bool {
    if origin == recipient {
        return true;
    }
    let (Some(from), Some(to)) = (
        origin.strip_prefix("host "),
        recipient.strip_prefix("host "),
    ) else {
        return false;
    };
    let (from, to) = (WebHost::of(from), WebHost::of(to));
    // Not from TLS to none: without it, anyone on the way reads what is sent.
    (from.is_plain || !to.is_plain) && party(from.host) == party(to.host)
}

/// A host at one of the two ports of the web, or any other `NAME:PORT`.
struct WebHost<'a> {
    host: &'a str,
    /// Port 80: no TLS.
    is_plain: bool,
}

impl<'a> WebHost<'a> {
    fn of(name: &'a str) -> Self {
        let plain = name.strip_suffix(":80");
        Self {
            host: plain.unwrap_or(name),
            is_plain: plain.is_some(),
        }
    }
}

/// Returns the registry whose hosts nobody else can read: what is sent there reaches no stranger. Anyone may publish on GitHub's hosts, and
/// the proxy of Go asks hosts that modules name.
pub(crate) fn registry_of(recipient: &str) -> Option<&'static NetworkBundle> {
    let host = recipient.strip_prefix("host ")?;
    NetworkBundle::of_host(host).filter(|bundle| !matches!(bundle.name, "github" | "go"))
}

fn party(host: &str) -> &str {
    match NetworkBundle::of_host(host) {
        // Anyone may publish on GitHub's hosts.
        Some(bundle) if bundle.name != "github" => bundle.hosts.first().copied().unwrap_or(host),
        _ => host.strip_prefix("www.").unwrap_or(host),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_same_party, of_host};
    use crate::address::port_of;

    #[test]
    fn parties_are_told_apart_by_host_and_port() {
        for (from, to, expect) in [
            ("https://a.example/x", "https://a.example/y", true),
            ("https://a.example/x", "https://www.a.example/", true),
            ("https://a.example/x", "https://a.example:444/", false),
            ("https://a.example/x", "http://a.example/", false),
            ("http://a.example/x", "https://a.example/", true),
            ("http://a.example:8080/x", "https://a.example/", false),
            ("http://a.example:8080/x", "http://a.example:8081/", false),
            ("a.example:443", "https://a.example/", true),
            ("a.example:22", "a.example:443", false),
            (
                "https://pypi.org/x",
                "https://files.pythonhosted.org/",
                true,
            ),
            ("http://sum.golang.org/x", "http://proxy.golang.org/", true),
            (
                "https://sum.golang.org/x",
                "http://proxy.golang.org/",
                false,
            ),
            ("http://a.example/x", "http://www.a.example/", true),
            (
                "https://sum.golang.org:444/x",
                "https://proxy.golang.org:444/",
                false,
            ),
            ("https://github.com/x", "https://api.github.com/", false),
            ("https://a.example/x", "https://b.example/", false),
        ] {
            let origin = |address: &str| {
                let bare = address.rsplit("//").next().unwrap_or_default();
                let host = bare.split(['/', ':']).next().unwrap_or_default();
                of_host(host, port_of(address))
            };
            assert_eq!(
                is_same_party(&origin(from), &origin(to)),
                expect,
                "{from} {to}"
            );
        }
    }
}

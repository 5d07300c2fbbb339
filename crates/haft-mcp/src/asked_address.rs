//! Addresses to which servers send users: whose they are.

use serde::Deserialize;
use serde_json::value::RawValue;
use url::{Host, Url};

/// Returns the address of a question that sends a user to a page.
pub(crate) fn address(params: &RawValue) -> Option<Url> {
    #[derive(Deserialize)]
    struct AskedAddress {
        url: String,
    }
    let asked: AskedAddress = serde_json::from_str(params.get()).ok()?;
    Url::parse(&asked.url).ok()
}

/// Returns whether two addresses are of one server: names of this machine are one host.
pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    let host = |url: &Url| {
        (!is_here(url))
            .then(|| url.host_str().map(str::to_owned))
            .flatten()
    };
    one.port_or_known_default() == other.port_or_known_default() && host(one) == host(other)
}

/// Returns whether an address is of this machine.
pub(crate) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            let mapped = address.to_ipv4_mapped();
            let is_mapped = mapped.is_some_and(|v4| v4.is_loopback() || v4.is_unspecified());
            address.is_loopback() || address.is_unspecified() || is_mapped
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Url, is_same_origin};

    #[test]
    fn n7_names_of_this_machine_are_one_host() {
        let own = Url::parse("http://127.0.0.1:7421/").unwrap();
        for (address, expect) in [
            ("http://127.0.0.1:7421/runs", true),
            ("http://localhost:7421/", true),
            ("http://[::1]:7421/", true),
            ("http://[::ffff:127.0.0.1]:7421/", true),
            ("https://127.0.0.1:7421/", true),
            ("http://127.0.0.1:7422/", false),
            ("http://docs.example:7421/", false),
        ] {
            let address = Url::parse(address).unwrap();
            assert_eq!(is_same_origin(&own, &address), expect, "{address}");
        }
    }
}

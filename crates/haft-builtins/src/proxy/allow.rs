//! `AllowList`: the hosts that commands may connect to, as named in settings.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

use crate::proxy::strip_trailing_dot;
use crate::web::target::WebUrl;

/// The ports of an entry without a port.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// An entry that names no host, or one that is never connected to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{entry}` names no host that can be allowed: {why}")]
pub struct AllowError {
    /// The entry as written.
    pub entry: String,
    /// What is wrong with the entry.
    pub why: String,
}

/// Hosts: `example.com`, `*.example.com` (all names below it, not itself), `example.com:8443`, `93.184.216.34`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(Vec<AllowEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowEntry {
    host: HostPattern,
    /// The only port; `None` for the default ports of HTTP and HTTPS.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Name(String),
    Below(String),
    Address(IpAddr),
}

impl AllowList {
    /// Parses entries as written in settings.
    ///
    /// # Errors
    /// [`AllowError`] quotes the entry that is neither a host nor a pattern of hosts.
    pub fn read<I>(entries: I) -> Result<Self, AllowError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let entries = entries
            .into_iter()
            .map(|entry| AllowEntry::read(entry.as_ref()));
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the list allows nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ports that entries name.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.iter().filter_map(|entry| entry.port)
    }

    /// Returns true if an entry names this host and port.
    pub(crate) fn allows(&self, target: &WebUrl) -> bool {
        self.0.iter().any(|entry| entry.allows(target))
    }
}

impl fmt::Display for AllowList {
    /// Writes the entries as in settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, entry) in self.0.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Below(end) => write!(f, "*{end}")?,
            HostPattern::Address(address @ IpAddr::V4(_)) => write!(f, "{address}")?,
            HostPattern::Address(address @ IpAddr::V6(_)) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl AllowEntry {
    fn read(text: &str) -> Result<Self, AllowError> {
        let wrong = |why: &str| AllowError {
            entry: text.chars().take(100).collect(),
            why: why.to_owned(),
        };
        let rest = text.strip_prefix("*.");
        let host = rest.unwrap_or(text);
        if host.contains('*') {
            return Err(wrong(
                "a `*` stands only for the names below one, as in `*.example.com`",
            ));
        }
        if host.contains(['/', '?', '#', '@']) || host.is_empty() {
            return Err(wrong("write the host alone, or host:port"));
        }
        let target =
            WebUrl::parse(&format!("https://{host}/")).map_err(|why| wrong(&why.to_string()))?;
        target
            .check_public()
            .map_err(|why| wrong(&why.to_string()))?;
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        let port = after.contains(':').then_some(target.port());
        let host = match (target.address(), rest) {
            (Some(_), Some(_)) => return Err(wrong("no name lies below an address")),
            (Some(address), None) => HostPattern::Address(address.to_canonical()),
            (None, Some(_)) => {
                HostPattern::Below(format!(".{}", strip_trailing_dot(target.host())))
            }
            (None, None) => HostPattern::Name(strip_trailing_dot(target.host()).to_owned()),
        };
        Ok(Self { host, port })
    }

    fn allows(&self, target: &WebUrl) -> bool {
        let port = target.port();
        let address = target.address().map(|address| address.to_canonical());
        let host = strip_trailing_dot(target.host());
        let named = match &self.host {
            HostPattern::Name(name) => address.is_none() && host == name,
            HostPattern::Below(end) => {
                address.is_none() && host.len() > end.len() && host.ends_with(end.as_str())
            }
            HostPattern::Address(own) => address == Some(*own),
        };
        named
            && self
                .port
                .map_or_else(|| DEFAULT_PORTS.contains(&port), |own| own == port)
    }
}

#[cfg(test)]
mod tests {
    use super::AllowList;
    use crate::web::target::WebUrl;

    #[test]
    fn hosts_are_allowed_by_name_below_a_name_and_by_port() {
        let list = [
            "example.com",
            "*.Example.ORG.",
            "bücher.example.net",
            "ports.example.com:8443",
            "93.184.216.34",
            "[2606:4700::1111]:8443",
        ];
        let list = AllowList::read(list).unwrap();
        for (url, allowed) in [
            ("https://example.com/", true),
            ("http://EXAMPLE.com./", true),
            ("https://example.com:8443/", false),
            ("https://www.example.com/", false),
            ("https://notexample.com/", false),
            ("https://example.com.evil.net/", false),
            ("https://a.b.example.org/", true),
            ("https://example.org/", false),
            ("https://aexample.org/", false),
            ("https://.example.org/", false),
            ("https://xn--bcher-kva.example.net/", true),
            ("https://ports.example.com:8443/", true),
            ("https://ports.example.com/", false),
            ("https://93.184.216.34/", true),
            ("https://[::ffff:93.184.216.34]/", true),
            ("https://93.184.216.35/", false),
            ("https://[2606:4700::1111]:8443/", true),
            ("https://[2606:4700::1111]/", false),
        ] {
            let target = WebUrl::parse(url).unwrap();
            assert_eq!(list.allows(&target), allowed, "{url}");
        }
        assert!(!AllowList::default().allows(&WebUrl::parse("https://example.com/").unwrap()));
    }

    #[test]
    fn an_entry_that_can_never_hold_is_an_error() {
        for entry in [
            "",
            "*",
            "*.",
            "*.*",
            "a.*.com",
            "*.com*",
            "https://example.com",
            "example.com/path",
            "user@example.com",
            "example.com:0",
            "example.com:99999",
            "example.com:22",
            "localhost",
            "127.0.0.1",
            "*.127.0.0.1",
            "*.93.184.216.34",
            "169.254.169.254",
            "[::1]",
            "10.0.0.1:8080",
            "metadata.google.internal",
            "a b",
            "intranet",
        ] {
            let error = AllowList::read([entry]).unwrap_err();
            assert_eq!(error.entry, entry);
        }
    }
}

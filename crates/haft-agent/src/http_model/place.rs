//! `ProviderLocation`: where a provider is: scheme, host, port, and the prefix of the dialect's path.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::model::ModelError;

/// The location of a provider.
#[derive(Debug, Clone)]
pub(super) struct ProviderLocation {
    secure: bool,
    host: Host,
    port: u16,
    /// The prefix of the dialect's path, without a trailing slash.
    prefix: String,
}

impl ProviderLocation {
    /// Parses a base URL. A trailing version (`/v1`), which other programs require, is dropped.
    pub(super) fn parse(base: &str) -> Result<Self, ModelError> {
        let shown = haft::text::clip(base, 200);
        let wrong = |why: &str| ModelError::Setting(format!("the base URL {shown:?} {why}"));
        let url =
            Url::parse(base.trim()).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("begins with neither https:// nor http://")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ModelError::Setting(
                "the base URL holds a user name or password; keys are taken from the environment"
                    .to_owned(),
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has more than a path"));
        }
        let host = url.host().ok_or_else(|| wrong("has no host"))?.to_owned();
        let path = url.path().trim_end_matches('/');
        let path = ["/v1", "/v1beta"]
            .iter()
            .find_map(|version| path.strip_suffix(version))
            .unwrap_or(path);
        Ok(Self {
            secure,
            port: url.port_or_known_default().unwrap_or(443),
            host,
            prefix: path.trim_end_matches('/').to_owned(),
        })
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns whether it is the loopback of this machine.
    pub(super) fn is_this_machine(&self) -> bool {
        match &self.host {
            Host::Ipv4(v4) => v4.is_loopback(),
            Host::Ipv6(v6) => IpAddr::V6(*v6).to_canonical().is_loopback(),
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    /// Returns the host, as written in a URL.
    pub(super) fn host(&self) -> String {
        self.host.to_string()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the value of the `Host` header.
    pub(super) fn authority(&self) -> String {
        let standard = if self.secure { 443 } else { 80 };
        if self.port == standard {
            return self.host();
        }
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the path of a request.
    pub(super) fn path(&self, below: &str) -> String {
        format!("{}{below}", self.prefix)
    }
}

impl fmt::Display for ProviderLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_read_with_and_without_their_version() {
        for (base, authority, path) in [
            ("https://api.openai.com", "api.openai.com", "/v1/x"),
            ("https://api.openai.com/v1/", "api.openai.com", "/v1/x"),
            ("https://openrouter.ai/api", "openrouter.ai", "/api/v1/x"),
            ("https://openrouter.ai/api/v1", "openrouter.ai", "/api/v1/x"),
            ("http://127.0.0.1:11434", "127.0.0.1:11434", "/v1/x"),
            ("http://[::1]:8080/", "[::1]:8080", "/v1/x"),
        ] {
            let place = ProviderLocation::parse(base).unwrap();
            assert_eq!(place.authority(), authority, "{base}");
            assert_eq!(place.path("/v1/x"), path, "{base}");
        }
        for (base, says) in [
            ("api.openai.com", "is not a URL"),
            ("ftp://x.example", "begins with neither"),
            ("https://u:hush@x.example", "holds a user name"),
            ("https://x.example/?key=hush", "has more than a path"),
        ] {
            let error = ProviderLocation::parse(base).unwrap_err().to_string();
            assert!(error.contains(says), "{base}: {error}");
            assert!(!says.starts_with("holds") || !error.contains("hush"));
        }
    }
}

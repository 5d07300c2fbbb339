//! `ListenPlan`: where haft listens, the names by which clients reach it, and what encrypts the traffic: haft, a proxy, or nothing on
//! loopback.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use haft_mcp::guard::HostGuard;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use haft_app::config::Settings;
use haft_app::config::typed::{BEHIND_PROXY, HTTP};
use haft_app::problem::{Problem, SourceLocation};

/// The settings with the files of `serve.tls`.
const TLS_KEYS: [&str; 2] = ["serve.tls.cert", "serve.tls.key"];

/// The port of the background server: next to that of `haft serve`.
const BACKGROUND_PORT: u16 = 7421;

/// Where haft is to listen, and how clients will reach it.
pub(crate) struct ListenPlan {
    /// The address to listen on; port 0 picks a free one.
    pub(crate) address: SocketAddr,
    /// The address to use if another program occupies the first one.
    pub(crate) instead: Option<SocketAddr>,
    /// Encrypts connections, if haft does that itself.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether a proxy in front of it encrypts.
    behind_proxy: bool,
    /// Its names besides those of loopback, as written in the settings.
    hosts: Vec<String>,
}

/// How clients reach a listening server.
pub(crate) struct ListenAddress {
    /// The address it listens on.
    pub(crate) address: SocketAddr,
    /// The URL for clients and browsers.
    pub(crate) url: String,
    /// Whether browsers reach it over HTTPS.
    pub(crate) https: bool,
    /// Checks that requests are meant for this server.
    pub(crate) hosts: HostGuard,
}

impl ListenPlan {
    /// Reads the settings and `--http`. An address that other machines can reach needs encryption and names.
    pub(crate) fn of(
        http: Option<&str>,
        no_auth: bool,
        settings: &Settings,
    ) -> Result<Self, Problem> {
        let hosts = settings.items("serve.hosts").into_iter();
        let hosts = hosts.filter_map(|(host, _)| host.as_str().map(str::to_owned));
        let reach = Self {
            address: address(http, settings)?,
            instead: None,
            tls: tls(settings)?,
            behind_proxy: settings.get(BEHIND_PROXY),
            hosts: hosts.collect(),
        };
        reach.guard(reach.address)?;
        reach.check(no_auth)?;
        Ok(reach)
    }

    /// Returns the reach of the background server: always the same loopback port if it is free, otherwise any.
    pub(crate) fn background() -> Self {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            address: at(BACKGROUND_PORT),
            instead: Some(at(0)),
            tls: None,
            behind_proxy: false,
            hosts: Vec::new(),
        }
    }

    /// Checks that a reachable address is encrypted and named.
    fn check(&self, no_auth: bool) -> Result<(), Problem> {
        let local = self.address.ip().is_loopback();
        let address = || SourceLocation::named(self.address.to_string());
        if no_auth && (!local || self.behind_proxy || !self.hosts.is_empty()) {
            let what = "--no-auth works only on loopback addresses, without a proxy and without serve.hosts";
            return Err(Problem::usage(what)
                .at(address())
                .advise("leave --no-auth out, or listen on 127.0.0.1 under no other name"));
        }
        if !local && !self.is_https() {
            let what = "other machines can reach this address, but nothing encrypts what they send";
            return Err(Problem::settings(what).at(address()).advise(
                "set serve.tls.cert and serve.tls.key, or serve.behind_proxy = true where a proxy encrypts; or listen on 127.0.0.1",
            ));
        }
        if (!local || self.behind_proxy) && self.hosts.is_empty() {
            let what = "other machines can reach this server, but no host name of it is set";
            return Err(Problem::settings(what).at(address()).advise(
                "name the hosts that clients write in their URLs: serve.hosts = [\"haft.example\"]",
            ));
        }
        Ok(())
    }

    /// Returns how clients reach it at the bound address.
    pub(crate) fn at(&self, bound: SocketAddr) -> Result<ListenAddress, Problem> {
        Ok(ListenAddress {
            address: bound,
            url: self.url(bound),
            https: self.is_https(),
            hosts: self.guard(bound)?,
        })
    }

    /// Returns whether browsers reach it over HTTPS.
    fn is_https(&self) -> bool {
        self.tls.is_some() || self.behind_proxy
    }

    fn guard(&self, bound: SocketAddr) -> Result<HostGuard, Problem> {
        let guard = HostGuard::new(bound);
        let guard = if self.is_https() {
            guard.over_https()
        } else {
            guard
        };
        self.hosts.iter().try_fold(guard, |guard, host| {
            guard.also(host).map_err(|error| {
                Problem::settings(error.to_string())
                    .at(SourceLocation::named("serve.hosts"))
                    .advise("write a name as clients do: `haft.example` or `haft.example:8443`")
            })
        })
    }

    /// Returns the URL: with the first name if encrypted, otherwise with the address.
    fn url(&self, bound: SocketAddr) -> String {
        if !self.is_https() {
            return format!("http://{bound}");
        }
        match self.hosts.first() {
            Some(host) if self.behind_proxy || has_port(host) => format!("https://{host}"),
            Some(host) => format!("https://{host}:{}", bound.port()),
            None => format!("https://{bound}"),
        }
    }
}

/// Returns whether a host is written with a port.
fn has_port(host: &str) -> bool {
    let after_address = host.rsplit(']').next().unwrap_or(host);
    after_address.contains(':')
}

/// Returns the address to listen on: `--http`, or else `serve.http`.
fn address(http: Option<&str>, settings: &Settings) -> Result<SocketAddr, Problem> {
    let (text, named) = match http {
        Some(text) => (text.to_owned(), true),
        None => (settings.get(HTTP), false),
    };
    let wrong = |what: &str| {
        let problem = if named {
            Problem::usage(what)
        } else {
            Problem::settings(what)
        };
        problem
            .at(SourceLocation::named(&text))
            .advise("write it as 127.0.0.1:7420; port 0 picks a free one")
    };
    // `:0` is any free port on loopback.
    let full = if text.starts_with(':') {
        format!("127.0.0.1{text}")
    } else {
        text.clone()
    };
    let mut found = full
        .to_socket_addrs()
        .map_err(|_| wrong("this is not an address to listen on"))?;
    found
        .next()
        .ok_or_else(|| wrong("this name has no address"))
}

/// Returns the TLS acceptor for the certificate and key in the settings, if any.
fn tls(settings: &Settings) -> Result<Option<TlsAcceptor>, Problem> {
    let (cert, key) = match TLS_KEYS.map(|key| settings.text(key)) {
        [None, None] => return Ok(None),
        [Some(cert), Some(key)] => (Path::new(cert), Path::new(key)),
        [None, Some(_)] | [Some(_), None] => {
            return Err(Problem::settings("serve.tls has only one of cert and key")
                .advise("set both serve.tls.cert and serve.tls.key, each the path of a PEM file"));
        }
    };
    let unread = |path: &Path, why: String| {
        Problem::settings(format!("cannot read the PEM file: {why}"))
            .at(SourceLocation::file(path))
            .advise("serve.tls.cert is the certificate with those that sign it, serve.tls.key its private key")
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| unread(cert, e.to_string()))?;
    if chain.is_empty() {
        return Err(unread(cert, "there is no certificate in it".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| unread(key, e.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, private)
        });
    let mut config = config.map_err(|e| unread(cert, e.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

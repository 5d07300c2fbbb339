//! `Tls`: encrypts connections; the host proves its name by root certificates, which are loaded once, on first use.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Why a connection was not encrypted.
#[derive(Debug, Error)]
pub enum TlsError {
    /// This machine has no root certificates.
    #[error("no root certificates to check servers by: {0}")]
    NoRoots(String),
    /// The host's certificate is not valid.
    #[error("the certificate of {host} is not valid: {why}")]
    Certificate {
        /// The host, as written in a URL.
        host: String,
        /// What is wrong with the certificate.
        why: String,
        /// The failure of the handshake.
        error: io::Error,
    },
    /// The handshake failed for another reason.
    #[error("speak TLS with {host}: {error}")]
    Handshake {
        /// The host, as written in a URL.
        host: String,
        /// The failure of the handshake.
        error: io::Error,
    },
}

impl From<TlsError> for io::Error {
    /// Returns the failure of the handshake itself, for a caller that names the host.
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::NoRoots(why) => Self::other(why),
            TlsError::Certificate { error, .. } | TlsError::Handshake { error, .. } => error,
        }
    }
}

/// Verifies the certificates of servers.
#[derive(Debug, Default)]
pub struct Tls {
    /// Certificates that are trusted instead of the system's.
    given: Option<Vec<CertificateDer<'static>>>,
    made: OnceCell<BuiltConfig>,
}

#[derive(Debug)]
struct BuiltConfig {
    config: Arc<ClientConfig>,
    roots: usize,
}

impl Tls {
    /// Trusts these certificates instead of the system's.
    pub fn with_roots(roots: Vec<CertificateDer<'static>>) -> Self {
        Self {
            given: Some(roots),
            made: OnceCell::new(),
        }
    }

    /// Returns the number of root certificates.
    ///
    /// # Errors
    /// [`TlsError::NoRoots`] if there are none.
    pub async fn roots(&self) -> Result<usize, TlsError> {
        Ok(self.made().await?.roots)
    }

    /// Encrypts a stream to a host, given as in a URL.
    ///
    /// # Errors
    /// There are no root certificates, the host's certificate is not valid for it, or the handshake failed.
    pub async fn wrap<S>(&self, stream: S, host: &str) -> Result<TlsStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.made().await?.config);
        let failed = |error| TlsError::Handshake {
            host: host.to_owned(),
            error,
        };
        let name = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(host.trim_end_matches('.').to_owned())
                .map_err(|error| failed(io::Error::other(error)))?,
        };
        let stream = TlsConnector::from(config).connect(name, stream).await;
        stream.map_err(|error| match certificate(&error) {
            Some(why) => TlsError::Certificate {
                host: host.to_owned(),
                why,
                error,
            },
            None => failed(error),
        })
    }

    async fn made(&self) -> Result<&BuiltConfig, TlsError> {
        self.made
            .get_or_try_init(|| async {
                let given = self.given.clone();
                // The system's store may be a folder of many files.
                let made = tokio::task::spawn_blocking(move || make(given)).await;
                made.map_err(|error| TlsError::NoRoots(error.to_string()))?
            })
            .await
    }
}

fn make(given: Option<Vec<CertificateDer<'static>>>) -> Result<BuiltConfig, TlsError> {
    let mut problems = Vec::new();
    let certificates = given.unwrap_or_else(|| {
        let found = rustls_native_certs::load_native_certs();
        problems = found.errors;
        found.certs
    });
    let mut store = RootCertStore::empty();
    // Real stores contain a few that do not parse.
    let (roots, _) = store.add_parsable_certificates(certificates);
    if roots == 0 {
        let why = problems.first().map_or_else(
            || "the system's certificate store is empty or missing".to_owned(),
            ToString::to_string,
        );
        return Err(TlsError::NoRoots(why));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::NoRoots(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(BuiltConfig {
        config: Arc::new(config),
        roots,
    })
}

/// Returns what is wrong with a certificate.
fn invalid(why: &rustls::CertificateError) -> String {
    let rustls::CertificateError::Other(other) = why else {
        return why.to_string();
    };
    match other.to_string() {
        text if text.contains("CaUsedAsEndEntity") => {
            "it is that of an authority, which signs certificates and must not be a server's own; \
            have this authority issue one for the server (basicConstraints CA:FALSE), and trust the authority"
                .to_owned()
        }
        text => text,
    }
}

/// Returns what is wrong with the server's certificate, if that is what failed.
fn certificate(error: &io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match inner {
        rustls::Error::InvalidCertificate(why) => Some(invalid(why)),
        rustls::Error::NoCertificatesPresented => Some("the server presented none".to_owned()),
        _ => None,
    }
}

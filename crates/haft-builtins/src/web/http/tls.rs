//! `Tls`: encrypted streams, verified with root certificates that are loaded once, on first use.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::web::http::HttpError;
use crate::web::stream::Stream;
use crate::web::target::Target;

/// Verifies the certificates of servers.
#[derive(Debug, Default)]
pub(super) struct Tls {
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
    pub(super) fn with_roots(roots: Vec<CertificateDer<'static>>) -> Self {
        Self {
            given: Some(roots),
            made: OnceCell::new(),
        }
    }

    /// Returns the number of root certificates.
    pub(super) async fn roots(&self) -> Result<usize, HttpError> {
        Ok(self.made().await?.roots)
    }

    /// Encrypts a stream to the host of this URL.
    pub(super) async fn wrap(
        &self,
        stream: Stream,
        target: &Target,
    ) -> Result<TlsStream<Stream>, HttpError> {
        self.wrap_for(stream, target.host()).await
    }

    /// Encrypts a stream to a host, given as in a URL.
    pub(super) async fn wrap_for<S>(&self, stream: S, host: &str) -> Result<TlsStream<S>, HttpError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.made().await?.config);
        let to_error = |why: String| HttpError::Tls {
            host: host.to_owned(),
            why,
        };
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let name = match address {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(host.trim_end_matches('.').to_owned())
                .map_err(|e| to_error(e.to_string()))?,
        };
        let stream = TlsConnector::from(config).connect(name, stream).await;
        stream.map_err(|error| match certificate(&error) {
            Some(why) => HttpError::Certificate {
                host: host.to_owned(),
                why,
            },
            None => to_error(error.to_string()),
        })
    }

    async fn made(&self) -> Result<&BuiltConfig, HttpError> {
        self.made
            .get_or_try_init(|| async {
                let given = self.given.clone();
                // The system's store may be a folder of many files.
                let made = tokio::task::spawn_blocking(move || make(given)).await;
                made.map_err(|e| HttpError::NoRoots(e.to_string()))?
            })
            .await
    }
}

fn make(given: Option<Vec<CertificateDer<'static>>>) -> Result<BuiltConfig, HttpError> {
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
        return Err(HttpError::NoRoots(why));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| HttpError::NoRoots(e.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(BuiltConfig {
        config: Arc::new(config),
        roots,
    })
}

/// Returns what is wrong with the server's certificate, if that is what failed.
fn certificate(error: &io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match inner {
        rustls::Error::InvalidCertificate(why) => Some(why.to_string()),
        rustls::Error::NoCertificatesPresented => Some("the server presented none".to_owned()),
        _ => None,
    }
}

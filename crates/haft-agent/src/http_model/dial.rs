//! `Dial`: how a connection to a provider is made; a host can use its own proxy.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use haft::future::{BoxFuture, run_blocking};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

/// A connection, encrypted if its place requires it.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Connects to a host.
pub trait Dial: Send + Sync {
    /// Opens a connection to a host, as written in a URL, and a port; encrypted if `secure`.
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>>;
}

impl std::fmt::Debug for dyn Dial + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dial")
    }
}

/// Connects directly, and trusts the system's root certificates.
#[derive(Debug, Default)]
pub struct Direct {
    config: OnceCell<Arc<ClientConfig>>,
}

impl Direct {
    async fn connect(&self, host: &str, port: u16, secure: bool) -> io::Result<Box<dyn Io>> {
        let bare = host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, port)).await?;
        // Requests are small, and the loop waits for the answers.
        let _ = stream.set_nodelay(true);
        if !secure {
            return Ok(Box::new(stream));
        }
        let config = self.config.get_or_try_init(|| async {
            // The system's store may be a folder with many files.
            run_blocking(client_config).await?
        });
        let connector = TlsConnector::from(Arc::clone(config.await?));
        let name = match bare.parse::<IpAddr>() {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?,
        };
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}

impl Dial for Direct {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(self.connect(host, port, secure))
    }
}

fn client_config() -> io::Result<Arc<ClientConfig>> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // Real stores contain a few certificates that no longer parse.
    let (roots, _) = store.add_parsable_certificates(found.certs);
    if roots == 0 {
        return Err(io::Error::other(
            "the system's certificate store is empty or missing",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

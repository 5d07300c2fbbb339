//! `Http` as a `Dial`: connections for other clients, and for other protocols. Where the settings name a proxy,
//! buckets are reached through it by this.

use std::io;

use haft_http::dial::{BoxFuture, Dial, Io};
use haft_http::stream::Stream;

#[cfg(feature = "commands")]
use crate::web::http::HostConnection;
use crate::web::http::{Http, HttpError};
#[cfg(feature = "commands")]
use crate::web::target::WebUrl;
#[cfg(feature = "commands")]
use tokio_rustls::client::TlsStream;

impl Http {
    /// Opens a connection for another protocol: through a tunnel of the proxy, or directly.
    ///
    /// # Errors
    /// [`HttpError`] if the host is refused, is not found or accepts no connection.
    pub async fn dial(&self, host: &str, port: u16) -> Result<Stream, HttpError> {
        let target = self.target(&format!("https://{host}:{port}/"))?;
        Ok(self.connect(&target).await?.stream)
    }

    /// Encrypts a connection to a host, which must prove its name.
    #[cfg(feature = "commands")]
    pub(crate) async fn secure(
        &self,
        connection: HostConnection,
        target: &WebUrl,
    ) -> Result<TlsStream<Stream>, HttpError> {
        Ok(self.tls.wrap(connection.stream, target.host()).await?)
    }

    /// Like [`dial`](Self::dial), but encrypted: the host must prove its name.
    async fn dial_tls(&self, host: &str, port: u16) -> Result<Box<dyn Io>, HttpError> {
        let target = self.target(&format!("https://{host}:{port}/"))?;
        let stream = self.connect(&target).await?.stream;
        Ok(Box::new(self.tls.wrap(stream, target.host()).await?))
    }
}

impl Dial for Http {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            if secure {
                let stream = self.dial_tls(host, port).await;
                return stream.map_err(io::Error::other);
            }
            let stream = self.dial(host, port).await;
            Ok(Box::new(stream.map_err(io::Error::other)?) as Box<dyn Io>)
        })
    }
}

//! A server that answers at an address: Streamable HTTP, through the proxy of settings where there is one.

use std::io;
use std::sync::Arc;

use haft::future::BoxFuture;
use haft_builtins::web::http::Http;
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::{ClientError, Dial, Io, Wire};
use haft_mcp::upstream::Open;

/// Where a server is.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) http: Http,
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) endpoint: Endpoint,
}

impl Open for Address {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        Box::pin(async move {
            let wire = HttpWire::new(self.endpoint.clone(), Box::new(self.clone()));
            Ok(Arc::new(wire) as Arc<dyn Wire>)
        })
    }
}

impl Dial for Address {
    fn dial(&self) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            if self.secure {
                let stream = self.http.dial_tls(&self.host, self.port).await;
                return Ok(Box::new(stream.map_err(io::Error::other)?) as Box<dyn Io>);
            }
            let stream = self.http.dial(&self.host, self.port).await;
            Ok(Box::new(stream.map_err(io::Error::other)?) as Box<dyn Io>)
        })
    }
}

//! Connections to models through the configured proxy.

use std::io;

use haft::future::BoxFuture;
use haft_agent::http_model::dial::{Dial, Io};
use haft_builtins::web::http::Http;
use haft_builtins::web::upstream::UpstreamProxy;

/// Connects through the proxy, or directly to the hosts excluded from it.
#[derive(Debug)]
pub(super) struct ByProxy(Http);

impl ByProxy {
    pub(super) fn new(proxy: UpstreamProxy) -> Self {
        Self(Http::trusted().with_upstream(Some(proxy)))
    }
}

impl Dial for ByProxy {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            if secure {
                let stream = self.0.dial_tls(host, port).await;
                return Ok(Box::new(stream.map_err(io::Error::other)?) as Box<dyn Io>);
            }
            let stream = self.0.dial(host, port).await;
            Ok(Box::new(stream.map_err(io::Error::other)?) as Box<dyn Io>)
        })
    }
}

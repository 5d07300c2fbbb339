//! Connects through the proxy named in settings: by a `CONNECT` tunnel for TLS, or to the proxy itself for plain requests.

use std::time::Duration;

use haft_http::stream::Stream;
use haft_http::tunnel::ProxyFault;
use haft_http::upstream::UpstreamProxy;
use tokio::time::timeout;

use crate::web::http::{HostReach, Http, HttpError};
use crate::web::target::WebUrl;

/// Maximum time of the local lookup for a name that the proxy will resolve.
const OWN_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that can carry requests for a host.
#[derive(Debug)]
pub(crate) struct HostConnection {
    pub(crate) stream: Stream,
    /// The proxy that gets requests with the whole URL; `None` if the stream is a tunnel or direct.
    pub(crate) relay: Option<UpstreamProxy>,
}

impl Http {
    /// Returns the proxy for requests to this target.
    pub(super) fn upstream_for(&self, target: &WebUrl) -> Option<&UpstreamProxy> {
        let proxy = self.upstream.as_ref()?;
        proxy.serves(target.host(), target.port()).then_some(proxy)
    }

    /// Connects to a target through the proxy, with a tunnel for TLS.
    pub(super) async fn through(
        &self,
        proxy: &UpstreamProxy,
        target: &WebUrl,
    ) -> Result<HostConnection, HttpError> {
        self.check_as_far_as_known(target).await?;
        let fault = |fault| HttpError::from_proxy_fault(proxy, target, fault);
        let mut stream = self.to_proxy(proxy).await.map_err(fault)?;
        if !target.is_secure() {
            let relay = Some(proxy.clone());
            return Ok(HostConnection { stream, relay });
        }
        let tunnel = proxy.open_tunnel(&mut stream, target.host(), target.port());
        tunnel.await.map_err(fault)?;
        Ok(HostConnection {
            stream,
            relay: None,
        })
    }

    /// Checks whether the proxy named in settings accepts connections: its address, or why it does not. `None` if there is none.
    pub async fn check_upstream(&self) -> Option<Result<String, String>> {
        let proxy = self.upstream.as_ref()?;
        let reached = timeout(self.limits.connect, self.to_proxy(proxy)).await;
        let why = match reached {
            Ok(Ok(_)) => return Some(Ok(proxy.address())),
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        Some(Err(format!("{}: {why}", proxy.address())))
    }

    /// Refuses a name if the local resolver finds a refused address (URL rule 10). The proxy resolves the name again.
    async fn check_as_far_as_known(&self, target: &WebUrl) -> Result<(), HttpError> {
        if self.reach != HostReach::Public || target.address().is_some() {
            return Ok(());
        }
        let found = timeout(OWN_LOOKUP_TIMEOUT, self.network.resolve(target.host())).await;
        match found {
            Ok(Ok(addresses)) => self.check_addresses(target, &addresses),
            // Behind a proxy, this machine may be unable to resolve public names.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    async fn to_proxy(&self, proxy: &UpstreamProxy) -> Result<Stream, ProxyFault> {
        let limit = self.limits.connect;
        proxy.connect(self.network.as_ref(), &self.tls, limit).await
    }
}

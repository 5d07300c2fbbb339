//! A server at an address: Streamable HTTP or the older HTTP+SSE, through the configured proxy if there is one.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft_builtins::web::http::Http;
use haft_mcp::client::http::{Authorize, Endpoint, HttpWire, TransportHint};
use haft_mcp::client::oauth::OAuth;
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::upstream::Connector;

use crate::servers::sign_in::SignIn;

/// The address of a server, and how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct ServerAddress {
    http: Http,
    endpoint: Endpoint,
    remembered: Arc<TransportHint>,
    /// How haft signs in; `None` if the settings have a key.
    sign_in: Option<SignIn>,
    /// Authorizes requests with the stored grants.
    oauth: Option<Arc<OAuth>>,
}

impl ServerAddress {
    /// Returns the address of the server at this endpoint.
    ///
    /// # Errors
    /// Signing in is not possible at its address.
    pub(crate) fn new(
        http: Http,
        endpoint: Endpoint,
        sign_in: Option<SignIn>,
    ) -> Result<Self, String> {
        let oauth = sign_in.as_ref().map(|sign_in| sign_in.oauth(None));
        Ok(Self {
            http,
            endpoint,
            remembered: Arc::default(),
            sign_in,
            oauth: oauth.transpose()?.map(Arc::new),
        })
    }

    /// Returns how haft signs in.
    pub(crate) fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_ref()
    }

    /// Returns a connection to it that is authorized by `oauth`.
    pub(crate) fn wire(&self, oauth: Option<Arc<OAuth>>) -> Arc<dyn Wire> {
        let (endpoint, dial) = (self.endpoint.clone(), Box::new(self.http.clone()));
        let remembered = Arc::clone(&self.remembered);
        let authorize = oauth.map(|oauth| oauth as Arc<dyn Authorize>);
        Arc::new(HttpWire::known(endpoint, dial, remembered, authorize))
    }
}

impl Connector for ServerAddress {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let wire = self.wire(self.oauth.clone());
        Box::pin(std::future::ready(Ok(wire)))
    }
}

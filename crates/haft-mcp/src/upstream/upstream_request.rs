//! `UpstreamRequest`: a request to a server that is not a tool call, in as many rounds as the server needs.

use serde_json::value::RawValue;

use crate::client::{Client, ClientError, ClientRequest, Respond as _};
use crate::upstream::bridge::Bridge;

/// A request without a number so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpstreamRequest<'a> {
    pub(crate) method: &'static str,
    /// The members of its `params`.
    pub(crate) params: &'a str,
    /// The value of the header `Mcp-Name`.
    pub(crate) name: Option<&'a str>,
}

impl UpstreamRequest<'_> {
    /// Sends the request.
    pub(crate) async fn run(
        &self,
        client: &Client,
        bridge: &Bridge,
    ) -> Result<Box<RawValue>, ClientError> {
        let question = ClientRequest {
            name: self.name,
            progress: Some(bridge.progress.clone()),
            responder: Some(bridge.responder()),
            log: bridge.log(),
            ..ClientRequest::new(self.method, self.params, client.limits().call)
        };
        Ok(client.ask_in_rounds(&question).await?.raw)
    }
}

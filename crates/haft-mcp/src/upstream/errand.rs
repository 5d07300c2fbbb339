//! `Errand`: a request to a server that is not a tool call, in as many rounds as the server needs.

use serde_json::value::RawValue;

use crate::client::{Client, ClientError, Question, Respond as _};
use crate::upstream::bridge::Bridge;

/// A request without a number so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Errand<'a> {
    pub(crate) method: &'static str,
    /// The members of its `params`.
    pub(crate) params: &'a str,
    /// The value of the header `Mcp-Name`.
    pub(crate) name: Option<&'a str>,
}

impl Errand<'_> {
    /// Sends the request.
    pub(crate) async fn run(
        &self,
        client: &Client,
        bridge: &Bridge,
    ) -> Result<Box<RawValue>, ClientError> {
        let question = Question {
            name: self.name,
            progress: Some(bridge.progress.clone()),
            responder: Some(bridge.responder()),
            log: bridge.log(),
            ..Question::new(self.method, self.params, client.limits().call)
        };
        client.ask_in_rounds(&question).await
    }
}

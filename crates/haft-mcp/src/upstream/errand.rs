//! `Errand`: a request to a server that is no call of a tool, in as many rounds as the server needs.

use serde_json::value::RawValue;

use crate::client::{Client, ClientError, Question, Respond as _};
use crate::upstream::bridge::Bridge;

/// A request before it has a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Errand<'a> {
    pub(crate) method: &'static str,
    /// The members of its params.
    pub(crate) params: &'a str,
    /// What the header `Mcp-Name` repeats.
    pub(crate) name: Option<&'a str>,
}

impl Errand<'_> {
    /// Asks.
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

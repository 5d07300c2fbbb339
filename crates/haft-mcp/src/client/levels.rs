//! The level of log messages that a handshake-era server sends, as low as its callers want (`logging/setLevel`).

use std::time::Duration;

use haft::caller::LogLevel;

use crate::client::{Client, ClientRequest};

/// How long a call that wants another level waits for the server to apply it.
const LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

impl Client {
    /// Tells a handshake-era server the lowest level of log messages wanted, if that is lower than it was told last. Callers
    /// share the connection: each gets only the messages that it wants, and none can raise the level for the others.
    pub(crate) async fn want_log(&self, wanted: Option<LogLevel>) {
        let Some(wanted) = wanted else { return };
        if self.era.is_modern() || !self.server.has_logging {
            return;
        }
        {
            let mut level = self.log_level.lock();
            if level.is_some_and(|level| level <= wanted) {
                return;
            }
            *level = Some(wanted);
        }
        let params = format!("\"level\":\"{}\"", wanted.as_str());
        let question = ClientRequest::new(
            "logging/setLevel",
            &params,
            self.limits.list.min(LEVEL_TIMEOUT),
        );
        if let Err(error) = self.ask(question).await {
            // The server keeps its own level; a later call shows if the connection is lost.
            tracing::debug!(%error, "a server does not take a log level");
        }
    }
}

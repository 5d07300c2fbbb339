//! The log messages that a server of the handshake era sends: as mild as a caller wants them (`logging/setLevel`).

use std::time::Duration;

use haft::caller::LogLevel;

use crate::client::{Client, Question};

/// How long the call that wants other messages waits for the server to take the level in.
const PATIENCE: Duration = Duration::from_secs(5);

impl Client {
    /// Tells a server of the handshake era the mildest log messages that are wanted, where it is to send milder ones than it was told
    /// last. The connection is shared: what one caller wants others are not sent, and no caller makes it send less.
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
        let question = Question::new("logging/setLevel", &params, self.limits.list.min(PATIENCE));
        if let Err(error) = self.ask(question).await {
            // Its messages come at the level that it chose itself; a later call shows whether the connection is gone.
            tracing::debug!(%error, "a server does not take a log level");
        }
    }
}

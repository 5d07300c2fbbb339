//! haft as a client on pipes sees it, inside the test's own runtime.

use std::sync::Arc;

use haft_mcp::server::ServerLimits;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::serving;
use super::small_tools::SmallOpener;

pub(crate) struct Front {
    output: Sender,
    input: BufReader<Receiver>,
}

impl Front {
    /// Connects to a server with this opener; dropping it closes the connection.
    pub(crate) fn to(opener: &Arc<SmallOpener>) -> Self {
        let server = serving(ServerLimits::default(), opener);
        let (their_input, our_output) = std::io::pipe().unwrap();
        let (our_input, their_output) = std::io::pipe().unwrap();
        tokio::spawn(async move { server.serve_stdio(their_input, their_output).await });
        Self {
            output: Sender::from_owned_fd(our_output.into()).unwrap(),
            input: BufReader::new(Receiver::from_owned_fd(our_input.into()).unwrap()),
        }
    }

    pub(crate) async fn send(&mut self, message: &str) {
        let line = format!("{message}\n");
        self.output.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn receive_text(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        line
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.receive_text().await;
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Sends a message and returns the next one.
    pub(crate) async fn ask(&mut self, message: &str) -> Value {
        self.send(message).await;
        self.receive().await
    }
}

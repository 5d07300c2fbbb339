//! A client over two pipes, like a process on the other end.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::Arc;

use haft_mcp::server::ServerLimits;
use haft_mcp::stdio::StdioError;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::small_tools::SmallOpener;

pub(crate) struct LineClient {
    pub(crate) input: Option<PipeWriter>,
    pub(crate) output: Option<BufReader<PipeReader>>,
    pub(crate) opener: Arc<SmallOpener>,
    server: JoinHandle<Result<(), StdioError>>,
    runtime: Runtime,
}

impl LineClient {
    pub(crate) fn start(limits: ServerLimits) -> Self {
        let opener = SmallOpener::new(haft::Policy::trusted(), true);
        Self::over(limits, opener)
    }

    /// Connects to a server with this opener.
    pub(crate) fn over(limits: ServerLimits, opener: SmallOpener) -> Self {
        let opener = Arc::new(opener);
        let server = super::serving(limits, &opener);
        let (from_client, input) = std::io::pipe().unwrap();
        let (output, to_client) = std::io::pipe().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.spawn(async move { server.serve_stdio(from_client, to_client).await });
        Self {
            input: Some(input),
            output: Some(BufReader::new(output)),
            opener,
            server,
            runtime,
        }
    }

    /// Connects with a handshake of the latest version that has one.
    pub(crate) fn legacy(limits: ServerLimits) -> Self {
        let mut client = Self::start(limits);
        client.send(&super::initialize("2025-11-25"));
        client.receive();
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes());
        self.send_bytes(b"\n");
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Returns the next line unchanged; empty at the end.
    pub(crate) fn receive_text(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text()).unwrap()
    }

    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.receive()
    }

    /// Runs work of the server on its runtime.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Waits for the server's end with its output unread; the output stays open until it is dropped.
    pub(crate) fn unread(mut self) -> (BufReader<PipeReader>, Result<(), StdioError>) {
        let output = self.output.take().unwrap();
        (output, self.runtime.block_on(self.server).unwrap())
    }

    /// Waits for the server's end.
    pub(crate) fn ended(self) -> Result<(), StdioError> {
        self.runtime.block_on(self.server).unwrap()
    }
}

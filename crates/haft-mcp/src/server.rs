//! `McpServer`: one server for any number of transports.

use std::io::{Read, Write};
use std::sync::Arc;

use crate::core::Core;
use crate::http::{Access, McpService};
use crate::opener::RunFactory;
use crate::stdio;

pub use crate::core::ServerInfo;
pub use crate::limits::ServerLimits;

/// An MCP server for any number of transports.
#[derive(Debug, Clone)]
pub struct McpServer(Arc<Core>);

impl McpServer {
    /// Creates a server that opens its runs with this opener.
    pub fn new(info: &ServerInfo, limits: ServerLimits, opener: Arc<dyn RunFactory>) -> Self {
        Self(Arc::new(Core::new(info, limits, opener)))
    }

    /// Serves one client over these streams until it disconnects. The streams may block: each gets a thread.
    ///
    /// # Errors
    /// [`StdioError`](stdio::StdioError) if a thread cannot be started, the input cannot be read, or the client does not read the
    /// output.
    pub async fn serve_stdio(
        &self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> Result<(), stdio::StdioError> {
        stdio::serve(Arc::clone(&self.0), input, output).await
    }

    /// Returns the HTTP service for `/mcp`, for callers that `access` admits. Clones share their sessions.
    pub fn http(&self, access: Access) -> McpService {
        McpService::new(Arc::clone(&self.0), access)
    }
}

//! The suite's tools, resources and prompts behind a real executor, served on a listener.

use std::sync::Arc;

use haft_mcp::guard::HostGuard;
use haft_mcp::http::Access;
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tower_service::Service;

mod asks;
mod contents;
mod runs;
mod schemas;
mod shelf;
mod tasks;
mod works;

/// Errors before or while it serves.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns the server.
pub(crate) fn server() -> Result<McpServer, Failure> {
    let info = ServerInfo {
        name: "haft-conformance".into(),
        title: "haft conformance".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let limits = ServerLimits {
        // The suite's quick tools finish before this, its long ones do not.
        task_after: std::time::Duration::from_millis(300),
        ..ServerLimits::default()
    };
    let runs = Arc::new(runs::Runs::new()?);
    Ok(McpServer::new(&info, limits, runs))
}

/// Serves every client that connects.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Failure> {
    let server = server()?;
    let hosts = HostGuard::new(listener.local_addr()?);
    let service = server.http(Access::without_token(hosts));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| service.clone().call(request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection");
            }
        });
    }
}

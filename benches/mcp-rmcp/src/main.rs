//! An echo server by rmcp: the peer of the MCP measurement. `mcp-rmcp http` listens on a free loopback port; `mcp-rmcp stdio`.

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServiceExt, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What `echo` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct EchoInput {
    text: String,
}

/// The server.
#[derive(Debug, Clone)]
struct Echo;

#[tool_router(server_handler)]
impl Echo {
    #[tool(
        description = "Gives the text back",
        annotations(read_only_hint = true)
    )]
    fn echo(&self, Parameters(EchoInput { text }): Parameters<EchoInput>) -> String {
        text
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).is_some_and(|word| word == "stdio") {
        let service = Echo.serve(rmcp::transport::io::stdio()).await?;
        service.waiting().await?;
        return Ok(());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                eprintln!("connection: {error}");
            }
        });
    }
}

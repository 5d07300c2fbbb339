//! A small MCP server over files in memory: `echo_server stdio|http [--read-only]`; HTTP listens on a free loopback port.
#![expect(clippy::print_stderr, reason = "the address goes where people look")]

use std::sync::Arc;

use haft::Policy;
use haft_mcp::guard::HostGuard;
use haft_mcp::http::Access;
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tower_service::Service;

#[path = "../tests/it/support/small_tools.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "shared with the tests"
)]
mod small_tools;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve());
    // A thread may still be reading standard input.
    runtime.shutdown_background();
    ended
}

async fn serve() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let read_only = words.iter().any(|word| word == "--read-only");
    let info = ServerInfo {
        name: "haft-echo".into(),
        title: "haft echo".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let policy = if read_only {
        Policy::read_only()
    } else {
        Policy::trusted()
    };
    let opener = Arc::new(small_tools::SmallOpener::new(policy, false));
    let server = McpServer::new(&info, ServerLimits::default(), opener);
    if words.first().is_some_and(|word| word == "stdio") {
        return Ok(server
            .serve_stdio(std::io::stdin(), std::io::stdout())
            .await?);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
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

//! The server that the MCP conformance suite expects, as tools that the executor runs: `conformance_server` listens on a free loopback
//! port and prints it.
#![expect(clippy::print_stderr, reason = "the address goes where people look")]

#[path = "suite.rs"]
mod suite;

fn main() -> Result<(), suite::Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}/mcp", listener.local_addr()?);
        suite::serve(listener).await
    })
}

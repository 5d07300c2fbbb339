//! Large numbers: the first answer of a haft with twenty servers, and the memory of a thousand sessions.

use std::path::Path;
use std::time::Instant;

use mcp::http::{self, Client};
use mcp::pipe;
use mcp::request::Target;
use mcp::server::Server;
use measure::{Row, rounds};
use tokio::runtime::Runtime;

use crate::home::Home;

const SERVERS: usize = 20;
const SESSIONS: usize = 1_000;

/// Measures from the start of the process to the list of all tools.
pub(crate) fn servers(haft: &Path, rmcp: &Path) {
    let home = Home::new(haft, false);
    for n in 0..SERVERS {
        home.add_command(&format!("echo{n}"), rmcp);
    }
    let [handshake, _] = Target::handshake();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let mut first = Row::new("haft/gateway/first answer of 20 servers", "ms");
    let mut memory = Row::new("haft/gateway/private idle", "MiB");
    for _ in 0..rounds(5) {
        let begun = Instant::now();
        let mut client = pipe::Client::start(home.stdio());
        client.line(&handshake);
        let listed = client.line(list);
        first.rounds.push(begun.elapsed().as_secs_f64() * 1e3);
        let listed = String::from_utf8_lossy(listed);
        assert!(listed.contains("echo19.echo"), "not listed: {listed}");
        drop(client);
        memory.rounds.push(home.serve().private());
    }
    first.print();
    memory.print();
}

/// Measures the memory of a thousand clients after their handshake and one call each.
pub(crate) fn sessions(runtime: &Runtime, haft: &Path) {
    let mut row = Row::new("haft/gateway/1000 sessions", "MiB");
    for _ in 0..rounds(5).min(3) {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::haft(haft, folder.path());
        let target = Target::todo().by_handshake();
        runtime.block_on(http::load(&server.address, &target, 1, 1));
        let before = server.private();
        runtime.block_on(async {
            let mut client = Client::connect(&server.address, &target).await;
            for _ in 0..SESSIONS {
                client.shake_hands().await;
                client.call().await;
            }
        });
        row.rounds.push(server.private() - before);
    }
    row.print();
}

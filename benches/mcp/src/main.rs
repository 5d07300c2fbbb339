//! Load on MCP servers over HTTP and stdio: one client alone, then 32, against `haft serve` and an echo server by rmcp.
//!
//! `mcp ROUNDS HAFT RMCP`: the two programs to start.

use std::path::PathBuf;

use measure::{Row, fact, rounds};
use tokio::runtime::Runtime;

use mcp::request::Target;
use mcp::server::Server;
use mcp::{http, median, pipe, processor};

/// Number of calls of one client per round.
const ALONE: usize = 2_000;
/// Number of parallel clients, and the calls of each per round.
const CLIENTS: usize = 32;
const EACH: usize = 400;

fn main() {
    let programs: Vec<PathBuf> = std::env::args().skip(2).map(PathBuf::from).collect();
    let [haft, rmcp] = &programs[..] else {
        panic!("usage: mcp ROUNDS HAFT RMCP");
    };
    fact("rmcp", "3.9.0");
    processor::keep_client();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let home = tempfile::tempdir().expect("a folder");
    let peers = [
        Peer::new("haft", Server::haft(haft, home.path()), Target::todo()),
        Peer::new("rmcp", Server::rmcp(rmcp), Target::echo()),
    ];
    for peer in &peers {
        peer.warm(&runtime);
    }
    let mut rows: Vec<Measured> = peers.iter().map(|p| Measured::new(&p.name)).collect();
    for _ in 0..rounds(5) {
        for (peer, row) in peers.iter().zip(&mut rows) {
            peer.round(&runtime, row);
        }
    }
    rows.iter().for_each(Measured::print);
    drop(peers);

    let pipes = [
        ("haft", pipe::haft(haft, home.path()), Target::todo()),
        ("rmcp", pipe::rmcp(rmcp), Target::echo()),
    ];
    for (name, command, target) in pipes {
        let mut row = Row::new(format!("{name}/stdio/p50"), "us");
        let mut client = pipe::Client::start(command);
        client.calls(&target, 200);
        row.rounds = (0..rounds(5))
            .map(|_| median(client.calls(&target, ALONE)))
            .collect();
        row.print();
    }
}

/// A server, and the calls to it.
struct Peer {
    name: String,
    server: Server,
    target: Target,
}

/// The figures of a peer.
struct Measured {
    alone: Row,
    together: Row,
    rate: Row,
    memory: Row,
}

impl Measured {
    fn new(peer: &str) -> Self {
        Self {
            alone: Row::new(format!("{peer}/http/p50 alone"), "us"),
            together: Row::new(format!("{peer}/http/p50 of 32"), "us"),
            rate: Row::new(format!("{peer}/http/rate at 32"), "calls/s"),
            memory: Row::new(format!("{peer}/http/rss"), "MiB"),
        }
    }

    fn print(&self) {
        for row in [&self.alone, &self.together, &self.rate, &self.memory] {
            row.print();
        }
    }
}

impl Peer {
    fn new(name: &str, server: Server, target: Target) -> Self {
        Self {
            name: name.into(),
            server,
            target,
        }
    }

    fn warm(&self, runtime: &Runtime) {
        runtime.block_on(http::load(&self.server.address, &self.target, 4, 200));
    }

    fn round(&self, runtime: &Runtime, row: &mut Measured) {
        let load = |clients, each| {
            runtime.block_on(http::load(
                &self.server.address,
                &self.target,
                clients,
                each,
            ))
        };
        let (times, _) = load(1, ALONE);
        row.alone.rounds.push(median(times));
        let (times, seconds) = load(CLIENTS, EACH);
        row.rate.rounds.push(times.len() as f64 / seconds);
        row.together.rounds.push(median(times));
        row.memory.rounds.push(self.server.memory());
    }
}

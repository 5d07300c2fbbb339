//! The cost of a call through a gateway to an MCP server: haft with policy and audit, compared to a hand-written hop,
//! mcp-proxy, supergateway and a proxy by fastmcp.
//!
//! `gateway ROUNDS HAFT RMCP PEERS`: the two programs to start, and the folder of the others (`scripts/bench` fills it).
//! `gateway hop ADDRESS`: the hand-written hop.

use std::path::Path;

use mcp::request::Target;
use mcp::server::Server;
use mcp::{http, median, pipe, processor};
use measure::{Row, fact, rounds};
use tokio::runtime::Runtime;

mod home;
mod hop;
mod many;
mod peers;

use home::Home;

/// Number of calls of one client per round.
const ALONE: usize = 2_000;
/// Number of parallel clients, and the calls of each per round.
const CLIENTS: usize = 32;
const EACH: usize = 400;
/// Peers that take milliseconds per call make only this fraction of the calls.
const SLOW: usize = 20;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [hop, backend] if hop == "hop" => hop::serve(backend),
        [_, haft, rmcp, peers] => all(Path::new(haft), Path::new(rmcp), Path::new(peers)),
        _ => panic!("usage: gateway ROUNDS HAFT RMCP PEERS, or gateway hop ADDRESS"),
    }
}

fn all(haft: &Path, rmcp: &Path, peers: &Path) {
    fact("peers", peers::VERSIONS);
    processor::keep_client();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    over_http(&runtime, haft, rmcp, peers);
    over_pipes(haft, rmcp);
    many::servers(haft, rmcp);
    many::sessions(&runtime, haft);
}

/// Measures HTTP to HTTP; for peers that do not support that, HTTP to a process.
fn over_http(runtime: &Runtime, haft: &Path, rmcp: &Path, peers: &Path) {
    let backend = Server::rmcp(rmcp);
    let home = |trusted| {
        let home = Home::new(haft, trusted);
        home.add_url("echo", &format!("http://{}/mcp", backend.address));
        home
    };
    let (reads, effects) = (home(true), home(false));
    let mut rows = vec![
        Measured::new("direct", Target::echo(), None),
        Measured::new("hop", Target::echo(), Some(hop::start(&backend.address))),
        Measured::new(
            "haft",
            Target::echo().named("echo.echo"),
            Some(reads.serve()),
        ),
        Measured::new(
            "haft-effects",
            Target::echo().named("echo.echo"),
            Some(effects.serve()),
        ),
    ];
    for (name, server, target) in peers::all(peers, rmcp, &backend.address) {
        rows.push(Measured::new(name, target, Some(server)));
    }
    for row in &rows {
        let address = row.address(&backend);
        runtime.block_on(http::load(address, &row.target, 1, 20));
    }
    for _ in 0..rounds(5) {
        for row in &mut rows {
            row.round(runtime, &backend);
        }
    }
    let direct = rows[0].alone.rounds.clone();
    for row in &mut rows {
        let pairs = row.alone.rounds.iter().zip(&direct);
        row.added.rounds = pairs.map(|(ours, direct)| ours - direct).collect();
        row.print();
    }
}

/// A gateway and its figures.
struct Measured {
    target: Target,
    /// `None` for the server behind them all.
    server: Option<Server>,
    share: usize,
    alone: Row,
    added: Row,
    rate: Row,
    cpu_alone: Row,
    cpu_together: Row,
    memory: Row,
}

impl Measured {
    fn new(name: &str, target: Target, server: Option<Server>) -> Self {
        let is_quick = matches!(name, "direct" | "hop" | "haft" | "haft-effects");
        Self {
            target,
            server,
            share: if is_quick { 1 } else { SLOW },
            alone: Row::new(format!("{name}/gateway/p50 alone"), "us"),
            added: Row::new(format!("{name}/gateway/added p50"), "us"),
            rate: Row::new(format!("{name}/gateway/rate at 32"), "calls/s"),
            cpu_alone: Row::new(format!("{name}/gateway/cpu alone"), "us"),
            cpu_together: Row::new(format!("{name}/gateway/cpu at 32"), "us"),
            memory: Row::new(format!("{name}/gateway/rss"), "MiB"),
        }
    }

    fn address<'a>(&'a self, backend: &'a Server) -> &'a str {
        let server = self.server.as_ref().unwrap_or(backend);
        &server.address
    }

    fn round(&mut self, runtime: &Runtime, backend: &Server) {
        let server = self.server.as_ref().unwrap_or(backend);
        let load = |clients, each: usize| {
            let before = server.cpu();
            let calls = http::load(&server.address, &self.target, clients, each / self.share);
            let (times, seconds) = runtime.block_on(calls);
            let cpu = (server.cpu() - before) * 1e6 / times.len() as f64;
            (times, seconds, cpu)
        };
        let (times, _, cpu) = load(1, ALONE);
        let (all, seconds, together) = load(CLIENTS, EACH);
        self.alone.rounds.push(median(times));
        self.cpu_alone.rounds.push(cpu);
        self.rate.rounds.push(all.len() as f64 / seconds);
        self.cpu_together.rounds.push(together);
        self.memory.rounds.push(server.memory());
    }

    fn print(&self) {
        let rows = [
            &self.alone,
            &self.added,
            &self.rate,
            &self.cpu_alone,
            &self.cpu_together,
            &self.memory,
        ];
        rows.into_iter().for_each(Row::print);
    }
}

/// Measures a pipe to a process behind the gateway.
fn over_pipes(haft: &Path, rmcp: &Path) {
    let home = Home::new(haft, true);
    home.add_command("echo", rmcp);
    let pipes = [
        ("direct", pipe::rmcp(rmcp), Target::echo()),
        ("haft", home.stdio(), Target::echo().named("echo.echo")),
    ];
    let mut clients = pipes.map(|(name, command, target)| {
        let client = pipe::Client::start(command);
        (
            Row::new(format!("{name}/gateway/stdio p50"), "us"),
            client,
            target,
        )
    });
    for (_, client, target) in &mut clients {
        client.calls(target, 200);
    }
    for _ in 0..rounds(5) {
        for (row, client, target) in &mut clients {
            row.rounds.push(median(client.calls(target, ALONE)));
        }
    }
    let [(direct, ..), (haft, ..)] = &clients;
    let mut added = Row::new("haft/gateway/stdio added", "us");
    let pairs = haft.rounds.iter().zip(&direct.rounds);
    added.rounds = pairs.map(|(ours, direct)| ours - direct).collect();
    [direct, haft, &added].into_iter().for_each(Row::print);
}

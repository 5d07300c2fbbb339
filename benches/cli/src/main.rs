//! The release binary: size, time to print its version, time until `serve` is ready, memory when idle and with the token table.
//!
//! `cli ROUNDS HAFT`: the program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use measure::{Row, rounds, wall_ms};

/// Number of version calls per round.
const VERSIONS: usize = 20;
/// More bytes than the inline limit, so that the tokens must be counted.
const LONG: usize = 60_000;

fn main() {
    let program: PathBuf = std::env::args()
        .nth(2)
        .expect("usage: cli ROUNDS HAFT")
        .into();
    let bytes = fs::metadata(&program)
        .expect("MISSING: the release binary")
        .len();
    let mut size = Row::new("haft/binary", "MB");
    size.rounds.push(bytes as f64 / 1e6);

    let mut version = Row::new("haft/--version", "ms");
    let mut ready = Row::new("haft/serve/ready", "ms");
    let mut idle = Row::new("haft/serve/rss idle", "MiB");
    let mut private = Row::new("haft/serve/private idle", "MiB");
    let mut loaded = Row::new("haft/serve/rss with token table", "MiB");
    let folder = tempfile::tempdir().expect("a folder");
    let text = "a line of a file that is read whole\n".repeat(LONG / 36);
    fs::write(folder.path().join("long.txt"), text).expect("a file");
    say_version(&program);
    for _ in 0..rounds(9) {
        let (ms, ()) = wall_ms(|| (0..VERSIONS).for_each(|_| say_version(&program)));
        version.rounds.push(ms / VERSIONS as f64);
        let served = Served::start(&program, folder.path());
        ready.rounds.push(served.ready.as_secs_f64() * 1e3);
        // All work at the start has ended, and its memory is released.
        std::thread::sleep(Duration::from_secs(5));
        idle.rounds.push(served.memory());
        private.rounds.push(served.private());
        served.read_long();
        loaded.rounds.push(served.memory());
    }
    for row in [size, version, ready, idle, private, loaded] {
        row.print();
    }
}

fn say_version(program: &Path) {
    let said = Command::new(program).arg("--version").output();
    assert!(said.expect("it starts").status.success());
}

/// A server that is ready.
struct Served {
    child: Child,
    address: String,
    ready: Duration,
}

impl Served {
    fn start(program: &Path, folder: &Path) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(["serve", "--no-auth", "--http", "127.0.0.1:0", "--home"])
            .arg(folder.join("home"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let address = lines
            .find_map(|line| {
                line.ok()?
                    .strip_prefix("listening on http://")
                    .map(str::to_owned)
            })
            .expect("it says where it listens");
        let ready = begun.elapsed();
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address,
            ready,
        }
    }

    /// Reads a file that is too long to fit by its bytes alone.
    fn read_long(&self) {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"read_file","arguments":{"path":"long.txt","max_lines":100000}}}"#;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: read_file\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream
            .write_all((head + body).as_bytes())
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let right = answer.starts_with("HTTP/1.1 200") && answer.contains("a line of a file");
        assert!(right, "{}", answer.chars().take(2_000).collect::<String>());
    }

    /// Returns the resident memory in MiB.
    fn memory(&self) -> f64 {
        self.mebibytes("status", "VmRSS:")
    }

    /// Returns the private dirty memory in MiB.
    fn private(&self) -> f64 {
        self.mebibytes("smaps_rollup", "Private_Dirty:")
    }

    /// Returns the kilobytes in a line of the kernel's file on the process, in MiB.
    fn mebibytes(&self, file: &str, name: &str) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/{file}", self.child.id()));
        let text = text.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.unwrap_or_default() / 1024.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

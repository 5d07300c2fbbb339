//! A server process: started, queried for its address and memory, ended with the measurement.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::processor;

/// Raises the budget of a run, which is meant for one agent, not for a load test.
pub const CALLS: &str = "limits.max_calls=1000000000";

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Server {
    child: Child,
    /// Host and port.
    pub address: String,
}

impl Server {
    /// Starts `haft serve` on an empty home and folder, as shipped but without tokens, since rmcp's server has none either.
    pub fn haft(program: &Path, folder: &Path) -> Self {
        let mut command = processor::server(program);
        command.args(["serve", "--no-auth", "--http", "127.0.0.1:0", "-c", CALLS]);
        command.arg("--home").arg(folder.join("home"));
        command.current_dir(folder);
        Self::start(command)
    }

    /// Starts the echo server by rmcp.
    pub fn rmcp(program: &Path) -> Self {
        let mut command = processor::server(program);
        command.arg("http");
        Self::start(command)
    }

    /// Starts a server that prints `listening on http://HOST:PORT`.
    pub fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("MISSING PEER: {command:?}: {e}"));
        let stderr = child.stderr.take().expect("piped");
        let mut lines = BufReader::new(stderr).lines();
        let address = lines
            .find_map(|line| {
                line.ok()?
                    .strip_prefix("listening on http://")
                    .map(str::to_owned)
            })
            .expect("the server says where it listens");
        // Its further output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Starts a server that listens at this address and does not print it.
    pub fn start_at(mut command: Command, address: String) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("MISSING PEER: {command:?}: {e}"));
        let server = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            let waited = begun.elapsed();
            assert!(waited < PATIENCE, "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Returns the resident memory in MiB.
    pub fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        kilobytes(&status.unwrap_or_default(), "VmRSS:") / 1024.0
    }

    /// Returns the private dirty memory in MiB.
    pub fn private(&self) -> f64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()));
        kilobytes(&rollup.unwrap_or_default(), "Private_Dirty:") / 1024.0
    }

    /// Returns the processor seconds of the server and of all its descendants.
    pub fn cpu(&self) -> f64 {
        let ticks = processor::ticks_below(self.child.id());
        ticks as f64 / TICKS
    }
}

/// Processor ticks per second: Linux has always reported 100 to programs.
const TICKS: f64 = 100.0;

fn kilobytes(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

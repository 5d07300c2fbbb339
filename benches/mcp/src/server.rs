//! A server process: started, asked for its address and memory, ended with the measurement.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::processor;

/// The budget of a run is for one agent, not for a load.
pub(crate) const CALLS: &str = "limits.max_calls=1000000000";

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
}

impl Server {
    /// `haft serve` on an empty home and folder, as shipped but without tokens, which rmcp's has none of either.
    pub(crate) fn haft(program: &Path, folder: &Path) -> Self {
        let mut command = processor::server(program);
        command.args(["serve", "--no-auth", "--http", "127.0.0.1:0", "-c", CALLS]);
        command.arg("--home").arg(folder.join("home"));
        command.current_dir(folder);
        Self::start(command)
    }

    /// The echo server by rmcp.
    pub(crate) fn rmcp(program: &Path) -> Self {
        let mut command = processor::server(program);
        command.arg("http");
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
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
        // What it says from now on must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Resident memory in MiB.
    pub(crate) fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.unwrap_or_default() / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

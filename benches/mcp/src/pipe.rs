//! A client over stdio: one line out, one line back.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::processor;
use crate::request::Target;
use crate::server::CALLS;

/// Returns `haft serve --stdio` on an empty home and folder.
pub fn haft(program: &Path, folder: &Path) -> Command {
    let mut command = processor::server(program);
    command.args(["serve", "--stdio", "-c", CALLS, "--home"]);
    command.arg(folder.join("home-stdio"));
    command.current_dir(folder);
    command
}

/// Returns the echo server by rmcp.
pub fn rmcp(program: &Path) -> Command {
    let mut command = processor::server(program);
    command.arg("stdio");
    command
}

/// A server and both ends of its pipes.
pub struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Client {
    /// Starts a server and takes both ends.
    pub fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let (to, from) = (child.stdin.take(), child.stdout.take());
        Self {
            child,
            to: to.expect("piped"),
            from: BufReader::new(from.expect("piped")),
            line: Vec::new(),
        }
    }

    /// Returns the times of `count` calls, in nanoseconds.
    pub fn calls(&mut self, target: &Target, count: usize) -> Vec<u64> {
        (0..count as u64).map(|id| self.call(target, id)).collect()
    }

    /// Sends a line, and waits for the next one.
    pub fn line(&mut self, message: &str) -> &[u8] {
        self.line.clear();
        let sent = self.to.write_all(format!("{message}\n").as_bytes());
        sent.expect("it reads");
        let read = self.from.read_until(b'\n', &mut self.line);
        read.expect("it answers");
        &self.line
    }

    fn call(&mut self, target: &Target, id: u64) -> u64 {
        let body = format!("{}\n", target.body(id));
        self.line.clear();
        let begun = Instant::now();
        self.to.write_all(body.as_bytes()).expect("it reads");
        self.from
            .read_until(b'\n', &mut self.line)
            .expect("it answers");
        let took = begun.elapsed().as_nanos();
        target.check(&self.line);
        u64::try_from(took).unwrap_or(u64::MAX)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

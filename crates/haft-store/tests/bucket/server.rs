//! `Server`: a real S3 server for the tests (`moto`, in Python), on a free loopback port, ended with its tests.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests start real servers, and say when they cannot"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// The server, which reads its jobs as JSON lines.
const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../haft-store/tests/bucket/server.py"
);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    talk: Mutex<(Option<ChildStdin>, BufReader<ChildStdout>)>,
    port: u64,
}

impl Server {
    /// Starts a server that accepts any credentials; prints a notice and returns `None` if Python's `moto` is not installed.
    pub(crate) fn start() -> Option<Self> {
        let python = std::env::var_os("HAFT_NEEDS")
            .map(|needs| Path::new(&needs).join("moto/bin/python"))
            .filter(|python| python.is_file());
        let Some(python) = python else {
            eprintln!("SKIPPED: moto is not below HAFT_NEEDS; `make needs` installs it");
            return None;
        };
        let mut child = Command::new(python)
            .arg(SCRIPT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut server = Self {
            child,
            talk: Mutex::new((input, BufReader::new(output))),
            port: 0,
        };
        server.port = server.tell(&json!({"do": "start"}))["port"]
            .as_u64()
            .unwrap();
        Some(server)
    }

    /// Sends it a job and returns the reply.
    pub(crate) fn tell(&self, job: &Value) -> Value {
        let mut talk = self.talk.lock();
        let (input, output) = &mut *talk;
        writeln!(input.as_mut().unwrap(), "{job}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert!(!answer.is_empty(), "the S3 server failed at {job}");
        serde_json::from_str(&answer).unwrap()
    }

    /// Returns the variables that lead to it.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "not-to-be-seen".to_owned()),
            (
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            ),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.talk.lock().0.take());
        let _ = self.child.wait();
    }
}

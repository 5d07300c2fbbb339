//! The clients of `haft run --acp` in the tests: lines of JSON, and a client on the protocol's official crate (`tests/acp-client`).

use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Lab, Ran, ended};

/// How long a message may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A program that reads and writes lines of JSON.
pub(crate) struct Peer {
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// All lines received.
    pub(crate) seen: Vec<Value>,
}

impl Peer {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap();
                let value = serde_json::from_str(&line);
                let value =
                    value.unwrap_or_else(|e| json!({"not JSON": line, "why": e.to_string()}));
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child: Some(child),
            lines,
            seen: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    /// Returns the next line for which `is` is true; earlier ones are only recorded.
    pub(crate) fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|e| panic!("{e}; what came: {:#?}", self.seen));
            assert!(line.get("not JSON").is_none(), "{line}");
            self.seen.push(line.clone());
            if is(&line) {
                return line;
            }
        }
    }

    /// Closes stdin and waits for the exit.
    pub(crate) fn end(mut self) -> Ran {
        drop(self.stdin.take());
        let ran = ended(self.child.take().unwrap());
        self.seen.extend(self.lines.iter());
        ran
    }

    pub(crate) fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have exited.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A client on the official crate, with haft behind it.
pub(crate) struct Editor {
    pub(crate) peer: Peer,
    tag: u64,
}

/// Returns the client's program; prints a message if it was not built.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn client() -> Option<PathBuf> {
    let needs = std::env::var_os("HAFT_NEEDS").map(PathBuf::from);
    let client = needs.map(|needs| needs.join("acp-client/debug/acp-client"));
    let client = client.filter(|client| client.exists());
    if client.is_none() {
        eprintln!("SKIPPED: acp-client is not below HAFT_NEEDS; `make needs` builds it");
    }
    client
}

impl Editor {
    /// Starts haft behind the client, which has initialized the connection.
    pub(crate) fn start(lab: &Lab, args: &[&str]) -> Option<Self> {
        let client = client()?;
        let haft = env!("CARGO_BIN_EXE_haft");
        let args = [&[haft, "run", "--acp"], args].concat();
        let peer = Peer::start(&mut lab.program(client.to_str().unwrap(), &args));
        let mut editor = Self { peer, tag: 0 };
        let said = editor.ask(json!({"do": "initialize"}));
        assert_eq!(said["result"]["protocolVersion"], 1, "{said}");
        Some(editor)
    }

    pub(crate) fn order(&mut self, order: &Value) {
        self.peer.send(&order.to_string());
    }

    /// Sends a command without waiting for the result; returns its tag.
    pub(crate) fn begin(&mut self, mut order: Value) -> u64 {
        self.tag += 1;
        order["tag"] = self.tag.into();
        self.order(&order);
        self.tag
    }

    pub(crate) fn ended(&mut self, tag: u64) -> Value {
        self.peer.until(|line| line["tag"] == tag)
    }

    pub(crate) fn ask(&mut self, order: Value) -> Value {
        let tag = self.begin(order);
        self.ended(tag)
    }

    /// Opens a session in the lab's folder.
    pub(crate) fn open(&mut self, lab: &Lab) -> String {
        let opened = self.ask(json!({"do": "new", "cwd": lab.work()}));
        let id = opened["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    pub(crate) fn prompt(&mut self, session: &str, words: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": words}]);
        self.begin(json!({"do": "prompt", "session": session, "prompt": prompt}))
    }

    /// Returns the next request for permission.
    pub(crate) fn permission(&mut self) -> Value {
        self.peer.until(|line| line.get("permission").is_some())
    }

    pub(crate) fn permit(&mut self, asked: &Value, option: &str) {
        self.order(&json!({"do": "permit", "permission": asked["permission"], "option": option}));
    }

    /// Returns the updates of this kind so far. None may differ from its representation in the crate's types.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let odd: Vec<_> = self
            .peer
            .seen
            .iter()
            .filter(|line| line.get("odd").is_some())
            .collect();
        assert!(odd.is_empty(), "{odd:#?}");
        let updates = self.peer.seen.iter().filter_map(|line| line.get("update"));
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// Returns all text that the agent has sent.
    pub(crate) fn text(&self) -> String {
        let chunks = self.updates("agent_message_chunk").into_iter();
        chunks
            .filter_map(|chunk| chunk["content"]["text"].as_str())
            .collect()
    }
}

//! The example as a separate process: served over HTTP and over pipes, with every check that an unknown client faces.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test starts real programs, says what it tried and stops where it cannot go on"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

#[path = "../../examples/product.rs"]
mod product;

/// The variable that makes this process the example.
const PROGRAM: &str = "HAFT_TEST_PROGRAM";

/// Headers of a request.
type Headers<'a> = &'a [(&'a str, &'a str)];

const ANN: (&str, &str) = ("authorization", "Bearer ann's token");
const OPERATOR: (&str, &str) = ("authorization", "Bearer the operator's token");

fn main() -> ExitCode {
    if let Some(code) = haft_app::enter() {
        return code;
    }
    if std::env::var_os(PROGRAM).is_some() {
        return product::main();
    }
    for (name, test) in TESTS {
        test();
        eprintln!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

const TESTS: [(&str, fn()); 3] = [
    (
        "strangers_are_refused_before_anything",
        strangers_are_refused_before_anything,
    ),
    (
        "a_call_waits_for_the_operator_and_runs_once",
        a_call_waits_for_the_operator_and_runs_once,
    ),
    (
        "one_client_is_served_over_pipes",
        one_client_is_served_over_pipes,
    ),
];

/// Returns the command that runs the example in a folder.
fn product(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env(PROGRAM, "product")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// The example, listening; killed when dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut child = product(folder, &[]).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    /// Sends one request on its own connection and returns status, session and body. `headers` override the defaults.
    fn send(&self, target: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Reply {
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(ToString::to_string).unwrap_or_default();
        let length = body.len().to_string();
        let usual = [
            ("host", self.address.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("content-length", &length),
            ("connection", "close"),
        ];
        let set = |name| headers.iter().any(|(given, _)| *given == name);
        let usual = usual.iter().filter(|(name, _)| !set(*name));
        let lines: Vec<String> = usual
            .chain(headers)
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("{method} {target} HTTP/1.1\r\n{}\r\n{body}", lines.concat());
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let _ = stream.shutdown(Shutdown::Both);
        Reply::read(&text)
    }

    /// Sends a message to the MCP service.
    fn mcp(&self, headers: &[(&str, &str)], id: u64, method: &str, params: &Value) -> Reply {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send("/mcp", headers, Some(&message))
    }

    /// Interrupts the program, as Ctrl-C does, and returns its exit code.
    fn stop(mut self) -> i32 {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
#[derive(Debug)]
struct Reply {
    status: u16,
    session: String,
    body: String,
}

impl Reply {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then_some(value)
        });
        Self {
            status,
            session: session.unwrap_or_default().to_owned(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        let start = self
            .body
            .find(['{', '['])
            .unwrap_or_else(|| panic!("{self:?}"));
        let end = self.body.rfind(['}', ']']).unwrap();
        serde_json::from_str(&self.body[start..=end]).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

fn hello() -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
}

fn strangers_are_refused_before_anything() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.send("/health", &[], None).body, "ok");
    let rows: [(Headers<'_>, u16, u16); 7] = [
        (&[], 401, 401),
        (&[("authorization", "Bearer bob's token")], 401, 401),
        (&[ANN, ("host", "evil.example")], 403, 403),
        (&[ANN, ("origin", "http://evil.example")], 403, 403),
        (&[OPERATOR, ("host", "evil.example")], 403, 403),
        // The credentials of the MCP service decide about no request.
        (&[ANN], 200, 403),
        (&[OPERATOR], 200, 200),
    ];
    for (headers, mcp, approvals) in rows {
        let reply = server.mcp(headers, 1, "initialize", &hello());
        assert_eq!(reply.status, mcp, "{headers:?} {reply:?}");
        let reply = server.send("/approvals", headers, None);
        assert_eq!(reply.status, approvals, "{headers:?} {reply:?}");
        let reply = server.send("/approvals/ap-1/approve", headers, Some(&json!({})));
        let decided = if approvals == 200 { 404 } else { approvals };
        assert_eq!(reply.status, decided, "{headers:?} {reply:?}");
    }
    assert_eq!(server.stop(), 0);
}

fn a_call_waits_for_the_operator_and_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let began = server.mcp(&[ANN], 1, "initialize", &hello());
    let info = &began.json()["result"]["serverInfo"];
    assert_eq!(
        (&info["name"], &info["title"]),
        (&json!("mine"), &json!("My product"))
    );
    let ann = [ANN, ("mcp-session-id", began.session.as_str())];
    let listed = server.mcp(&ann, 2, "tools/list", &json!({})).json();
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["balance", "close"]);

    let call = |id, tool: &str, account: &str| {
        let params = json!({"name": tool, "arguments": {"account": account}});
        server.mcp(&ann, id, "tools/call", &params).json()["result"].to_string()
    };
    assert!(call(3, "balance", "ann").contains("100"));
    let denied = call(4, "close", "root");
    assert!(denied.contains("denied"), "{denied}");
    let asked = call(5, "close", "bob");
    let pending = server.send("/approvals", &[OPERATOR], None).json();
    let id = pending[0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{pending} {asked}"));
    assert_eq!(pending.as_array().unwrap().len(), 1);
    assert!(call(6, "balance", "bob").contains("100"));

    let target = format!("/approvals/{id}/approve");
    let decided = server.send(&target, &[OPERATOR], Some(&json!({})));
    assert_eq!(decided.status, 200, "{decided:?}");
    // The decision has the operator's own name.
    assert_eq!(decided.json()["decision"]["by"], "olga", "{decided:?}");
    let closed = call(7, "close", "bob");
    assert!(closed.contains("closed bob"), "{closed}");
    assert!(call(8, "balance", "bob").contains("no account"));
    let shown = server
        .send(&format!("/approvals/{id}"), &[OPERATOR], None)
        .json();
    assert_eq!(shown["status"], "done", "{shown}");
    assert_eq!(server.stop(), 0);
}

fn one_client_is_served_over_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = product(folder.path(), &["stdio"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |id: u64, method: &str, params: Value| -> Value {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{message}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(
        ask(1, "initialize", hello())["result"]["serverInfo"]["name"],
        "mine"
    );
    let params = json!({"name": "balance", "arguments": {"account": "ann"}});
    let balance = ask(2, "tools/call", params).to_string();
    assert!(balance.contains("100"), "{balance}");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

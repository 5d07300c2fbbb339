//! `haft serve`: the gate before every route, the ready line, MCP over both transports, how it ends.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStderr, ChildStdout, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Lab, Ran, ended};

/// A server that reported that it is ready.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: String,
    pub(crate) call: String,
    pub(crate) operator: String,
    said: String,
}

impl Server {
    pub(crate) fn start(lab: &Lab, args: &[&str]) -> Self {
        Self::started(lab.command(&serving(args)))
    }

    /// Starts one that may have this many files and connections open.
    pub(crate) fn start_with_files(lab: &Lab, args: &[&str], files: usize) -> Self {
        Self::started(lab.limited(&serving(args), files))
    }

    fn started(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let read = |name: &str| {
            let path = ready[name].as_str().unwrap();
            let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{path}");
            std::fs::read_to_string(path).unwrap().trim().to_owned()
        };
        Self {
            address: ready["address"].as_str().unwrap().to_owned(),
            call: read("token_file"),
            operator: read("operator_token_file"),
            child: Some(child),
            said: line,
        }
    }

    /// Returns its stderr from now on.
    pub(crate) fn stderr(&mut self) -> ChildStderr {
        self.child.as_mut().unwrap().stderr.take().unwrap()
    }

    /// Returns its ready message.
    pub(crate) fn ready(&self) -> Value {
        serde_json::from_str(&self.said).unwrap()
    }

    /// Returns a caller, to be sent to another thread.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            address: self.address.clone(),
            call: self.call.clone(),
        }
    }

    /// Sends one request on its own connection.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Reply {
        let reply = self.caller().try_ask(request);
        reply.unwrap_or_else(|| panic!("{} {} has no answer", request.method, request.path))
    }

    /// Returns its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Returns its current memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns an amount of memory from the process's status, in bytes.
    fn status(&self, name: &str) -> u64 {
        let id = self.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(name));
        let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kibibytes.parse::<u64>().unwrap() << 10
    }

    /// Ends it with a signal and returns its result.
    pub(crate) fn end(mut self, signal: Signal) -> Ran {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        ended(child)
    }
}

fn serving<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["serve", "--http", "127.0.0.1:0", "--json"];
    all.extend(args);
    all
}

/// A client with the call token.
pub(crate) struct Caller {
    address: String,
    pub(crate) call: String,
}

impl Caller {
    /// Returns a client of this address without a token.
    pub(crate) fn at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            call: String::new(),
        }
    }

    /// Sends one request on its own connection; `None` if the server disconnects before it answers.
    pub(crate) fn try_ask(&self, request: &Request<'_>) -> Option<Reply> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let host = request.host.unwrap_or(&self.address);
        let mut text = format!(
            "{} {} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n",
            request.method, request.path
        );
        if let Some(token) = request.token {
            let _ = write!(text, "authorization: Bearer {token}\r\n");
        }
        for (name, value) in request.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let _ = write!(
            text,
            "content-length: {}\r\n\r\n{}",
            request.body.len(),
            request.body
        );
        stream.write_all(text.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Some(Reply {
            status: status.unwrap_or_else(|| panic!("{answer}")),
            head: head.to_lowercase(),
            body: body.to_owned(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) host: Option<&'a str>,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Status line and headers, in lowercase.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

pub(crate) fn get<'a>(path: &'a str, token: Option<&'a str>) -> Request<'a> {
    Request {
        method: "GET",
        path,
        token,
        host: None,
        headers: &[],
        body: "",
    }
}

pub(crate) fn post<'a>(path: &'a str, token: &'a str, body: &'a str) -> Request<'a> {
    Request {
        method: "POST",
        headers: &[
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ],
        body,
        ..get(path, Some(token))
    }
}

#[test]
fn every_route_asks_every_caller_for_a_token() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let (call, operator) = (Some(server.call.as_str()), Some(server.operator.as_str()));
    // The route, then its status without a token, with a wrong one, with the call token, and with the operator's.
    let rows: [(&str, &str, [u16; 4]); 40] = [
        ("GET", "/", [200, 200, 200, 200]),
        ("GET", "/app.js", [200, 200, 200, 200]),
        ("GET", "/waiting/ap-1", [200, 200, 200, 200]),
        ("POST", "/waiting", [401, 401, 403, 405]),
        ("GET", "/api/v1/login", [401, 401, 405, 405]),
        ("POST", "/api/v1/login", [400, 400, 400, 400]),
        ("POST", "/api/v1/login-link", [401, 401, 403, 200]),
        ("POST", "/api/v1/tickets", [401, 401, 403, 400]),
        ("GET", "/api/v1/session", [401, 401, 401, 401]),
        ("POST", "/api/v1/logout", [401, 401, 403, 204]),
        ("GET", "/healthz", [200, 200, 200, 200]),
        ("POST", "/healthz", [401, 401, 403, 405]),
        ("GET", "/mcp", [401, 401, 405, 405]),
        ("POST", "/mcp", [401, 401, 415, 415]),
        ("PUT", "/mcp", [401, 401, 403, 405]),
        ("GET", "/api/v1/tools", [401, 401, 200, 200]),
        ("GET", "/api/v1/tools/read_file", [401, 401, 200, 200]),
        ("GET", "/api/v1/tools/nope", [401, 401, 404, 404]),
        ("POST", "/api/v1/tools", [401, 401, 403, 405]),
        ("GET", "/api/v1/calls", [401, 401, 200, 200]),
        ("POST", "/api/v1/calls", [401, 401, 400, 400]),
        ("DELETE", "/api/v1/calls", [401, 401, 403, 405]),
        ("POST", "/api/v1/chains", [401, 401, 400, 400]),
        ("GET", "/api/v1/runs", [401, 401, 200, 200]),
        ("DELETE", "/api/v1/runs/x", [401, 401, 403, 405]),
        ("GET", "/api/v1/runs/x/changes", [401, 401, 403, 404]),
        ("POST", "/api/v1/runs/x/undo", [401, 401, 403, 404]),
        ("GET", "/api/v1/artifacts", [401, 401, 200, 200]),
        ("GET", "/api/v1/policy", [401, 401, 200, 200]),
        ("GET", "/nope", [401, 401, 404, 404]),
        ("POST", "/nope", [401, 401, 403, 404]),
        ("GET", "/api/v1/approvals", [401, 401, 200, 200]),
        ("GET", "/api/v1/approvals/x", [401, 401, 404, 404]),
        ("GET", "/api/v1/audit", [401, 401, 403, 200]),
        ("POST", "/api/v1/approvals/batch", [401, 401, 403, 400]),
        ("POST", "/api/v1/approvals/x/approve", [401, 401, 403, 404]),
        ("POST", "/api/v1/approvals/x/deny", [401, 401, 403, 404]),
        ("POST", "/api/v1/approvals/x/answer", [401, 401, 403, 404]),
        ("POST", "/api/v1/policy/explain", [401, 401, 403, 400]),
        ("PATCH", "/api/v1/approvals/x/approve", [401, 401, 403, 405]),
    ];
    for (method, path, expect) in rows {
        let wrong = "0".repeat(64);
        let found = [None, Some(wrong.as_str()), call, operator].map(|token| {
            server
                .ask(&Request {
                    method,
                    ..get(path, token)
                })
                .status
        });
        assert_eq!(found, expect, "{method} {path}");
    }
}

#[test]
fn a_foreign_host_or_origin_is_refused_before_anything_else() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let call = Some(server.call.as_str());
    for path in ["/", "/healthz", "/mcp", "/api/v1/tools", "/nope"] {
        for host in ["evil.example", "localhost:1", "127.0.0.1.evil.example"] {
            let request = Request {
                host: Some(host),
                ..get(path, call)
            };
            assert_eq!(server.ask(&request).status, 403, "{path} {host}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:1"] {
            let headers = [("origin", origin)];
            let request = Request {
                headers: &headers,
                ..get(path, call)
            };
            assert_eq!(server.ask(&request).status, 403, "{path} {origin}");
        }
    }
    let own = format!("http://{}", server.address);
    let request = Request {
        headers: &[("origin", &own)],
        ..get("/api/v1/tools", call)
    };
    assert_eq!(server.ask(&request).status, 200);
    let twice = [("authorization", "Bearer x")];
    let request = Request {
        headers: &twice,
        ..get("/api/v1/tools", call)
    };
    assert_eq!(server.ask(&request).status, 403);
}

#[test]
fn without_auth_the_call_token_is_dropped_and_nothing_else() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--no-auth"]);
    let rows = [
        ("GET", "/api/v1/tools", 200),
        ("POST", "/api/v1/approvals/x/approve", 403),
        ("POST", "/nope", 403),
        ("GET", "/nope", 404),
    ];
    for (method, path, status) in rows {
        assert_eq!(
            server
                .ask(&Request {
                    method,
                    ..get(path, None)
                })
                .status,
            status,
            "{method} {path}"
        );
    }
}

#[test]
fn calls_by_the_api_are_one_run_that_only_it_and_the_operator_read() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    lab.run(&["call", "read_file", "--args", r#"{"path":"a.txt"}"#]);
    let server = Server::start(&lab, &[]);
    let body = r#"{"tool":"read_file","arguments":{"path":"a.txt"}}"#;
    let first = server.ask(&post("/api/v1/calls", &server.call, body));
    assert_eq!(first.status, 200);
    let first = first.json();
    assert_eq!(
        (&first["status"], &first["origin"]),
        (&json!("ok"), &json!("host"))
    );
    let twice = r#"{"tool":"read_file","arguments":{"path":"a.txt","path":"a.txt"}}"#;
    let second = server
        .ask(&post("/api/v1/calls", &server.call, twice))
        .json();
    assert_eq!(second.pointer("/error/kind").unwrap(), "invalid_arguments");
    assert_eq!(first["run"], second["run"]);
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"tool":"a","tool":"b"}"#,
        r#"{"tool":"a","x":1}"#,
    ] {
        assert_eq!(
            server
                .ask(&post("/api/v1/calls", &server.call, wrong))
                .status,
            400,
            "{wrong}"
        );
    }
    let runs = |token: &str| {
        let listed = server.ask(&get("/api/v1/runs", Some(token))).json();
        listed.as_array().unwrap().len()
    };
    assert_eq!((runs(&server.call), runs(&server.operator)), (1, 2));
    let calls = server.ask(&get("/api/v1/calls", Some(&server.call))).json();
    assert_eq!(calls.as_array().unwrap().len(), 2);
    let other = lab.run(&["runs", "list", "--json"]).json();
    let other = other
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["door"] == "call")
        .unwrap();
    let path = format!("/api/v1/runs/{}", other["run"].as_str().unwrap());
    assert_eq!(server.ask(&get(&path, Some(&server.call))).status, 404);
    assert_eq!(server.ask(&get(&path, Some(&server.operator))).status, 200);
}

#[test]
fn the_ready_line_is_exact_and_a_signal_ends_it() {
    let lab = Lab::new();
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let server = Server::start(&lab, &[]);
        let line = format!("listening on http://{}\n", server.address);
        assert_eq!(
            server.ready()["console"],
            format!("http://{}/", server.address)
        );
        let ran = server.end(signal);
        assert_eq!((ran.code, ran.stderr), (code, line));
    }
}

#[test]
fn a_server_gives_back_what_its_start_used_of_the_binary_and_answers() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let server = Server::start(&lab, &[]);
    let call = || {
        let body = r#"{"tool":"read_file","arguments":{"path":"a.txt"}}"#;
        let reply = server.ask(&post("/api/v1/calls", &server.call, body));
        assert_eq!(reply.json()["status"], "ok", "{}", reply.body);
    };
    // Its peak memory is far above what is left of its startup.
    let released = || server.memory() * 3 < server.status("VmHWM:") * 2;
    for _ in 0..2_000 {
        if released() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(released(), "{} bytes stay", server.memory());
    call();
    call();
}

#[test]
fn an_address_in_use_is_told() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let ran = lab.run(&["serve", "--http", &server.address]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("127.0.0.1:0 takes a free port"),
        "{}",
        ran.stderr
    );
    let other = format!("a `haft serve` in {} has it", lab.work().display());
    assert!(ran.stderr.contains(&other), "{}", ran.stderr);
    for wrong in ["nonsense", "127.0.0.1", "127.0.0.1:99999"] {
        assert_eq!(lab.run(&["serve", "--http", wrong]).code, 2, "{wrong}");
    }
}

/// Sends one line to a server on stdio, and returns its answer.
pub(crate) fn exchange(
    child: &mut Child,
    stdout: &mut BufReader<ChildStdout>,
    message: &Value,
) -> Value {
    let stdin = child.stdin.as_mut().unwrap();
    writeln!(stdin, "{message}").unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

pub(crate) fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

pub(crate) fn tool_call(id: u32, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn stdio_speaks_mcp_and_opens_no_port() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let args = ["serve", "--stdio", "-c", "approval.mode=deny"];
    let mut child = lab.command(&args).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let answer = exchange(&mut child, &mut stdout, &hello());
    assert_eq!(answer.pointer("/result/serverInfo/name").unwrap(), "haft");
    let call = tool_call(2, "read_file", &json!({"path": "a.txt"}));
    let answer = exchange(&mut child, &mut stdout, &call);
    assert_eq!(answer.pointer("/result/content/0/text").unwrap(), "hello\n");
    let call = tool_call(3, "write_file", &json!({"path": "b.txt", "content": ""}));
    let answer = exchange(&mut child, &mut stdout, &call);
    assert_eq!(answer.pointer("/result/isError").unwrap(), true);
    // Rejected before it was a call: it leaves an event all the same.
    let answer = exchange(&mut child, &mut stdout, &json!("not a request"));
    assert!(answer.get("error").is_some());
    drop(child.stdin.take());
    drop(stdout);
    let ran = ended(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(!lab.home().join("token").exists());
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(
        (&runs[0]["door"], &runs[0]["state"]),
        (&json!("mcp stdio"), &json!("closed"))
    );
    let run = runs[0]["run"].as_str().unwrap();
    let shown = lab.run(&["runs", "show", run, "--json"]).stdout;
    assert!(
        shown.contains("\"denied\"") && shown.contains("refused-1"),
        "{shown}"
    );
    assert_eq!(lab.run(&["runs", "verify", run]).code, 0);
}

#[test]
fn a_bad_mcp_message_gets_a_clear_error_and_an_audit_line() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let rows: [(&str, u16); 5] = [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,", 400),
        ("[]", 400),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400),
        (&deep, 400),
    ];
    for (body, status) in &rows {
        let reply = server.ask(&post("/mcp", &server.call, body));
        assert_eq!(reply.status, *status, "{}", reply.body);
        assert!(
            !reply.json()["error"]["message"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(server.end(Signal::TERM).code, 0);
    let runs = lab.run(&["runs", "list", "--json"]).json();
    let run = runs[0]["run"].as_str().unwrap();
    let record = lab.home().join("runs").join(run).join("events.jsonl");
    let record = std::fs::read_to_string(record).unwrap();
    assert_eq!(record.matches("refused-").count(), rows.len(), "{record}");
    assert_eq!(lab.run(&["runs", "verify", run]).code, 0);
}

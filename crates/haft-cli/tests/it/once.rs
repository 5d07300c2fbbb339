//! F1: a script and a call that a client repeats after they were suspended: nothing runs twice, through any entry point.

use std::io::BufReader;
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, ended};
use crate::serve::{Request, Server, exchange, hello, post, tool_call};

/// An allowed line, one that a user decides about, an allowed one.
pub(crate) const SCRIPT: &str = "
tools.write_file(path='log.txt', content='one\\n', mode='append')
try:
    tools.write_file(path='asked.txt', content='asked\\n', mode='append')
    said = 'yes'
except PermissionError:
    said = 'no'
tools.write_file(path='log.txt', content='two\\n', mode='append')
print('printed')
said
";

pub(crate) const SETTINGS: [&str; 6] = [
    "-c",
    "policy.allow=[\"Edit(/log.txt)\"]",
    "-c",
    "chain.approval_timeout_s=1",
    "-c",
    "limits.approval_timeout_s=1",
];

/// The result of a call, as far as every entry point reports it.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: String,
    pub(crate) value: Value,
    pub(crate) whole: Value,
}

impl Got {
    fn of_outcome(outcome: Value) -> Self {
        Self {
            status: outcome["status"].as_str().unwrap_or_default().to_owned(),
            value: outcome["data"]["result"].clone(),
            whole: outcome,
        }
    }

    fn of_mcp(answer: Value) -> Self {
        let result = &answer["result"];
        let status = result["_meta"]["haft"]["status"].as_str();
        Self {
            status: status.unwrap_or_default().to_owned(),
            value: result["structuredContent"]["result"].clone(),
            whole: answer,
        }
    }
}

/// The client that makes the call.
pub(crate) enum Client {
    Command,
    Api(Server),
    Stdio(Child, BufReader<ChildStdout>),
    /// With the session from the handshake.
    Legacy(Server, String),
    Modern(Server),
}

const CLIENTS: [&str; 5] = ["command", "api", "stdio", "legacy", "modern"];

impl Client {
    pub(crate) fn new(lab: &Lab, name: &str) -> Self {
        match name {
            "api" => Self::Api(Server::start(lab, &SETTINGS)),
            "modern" => Self::Modern(Server::start(lab, &SETTINGS)),
            "legacy" => {
                let server = Server::start(lab, &SETTINGS);
                let reply = server.ask(&Request {
                    headers: &[
                        ("content-type", "application/json"),
                        ("accept", "application/json, text/event-stream"),
                    ],
                    ..post("/mcp", &server.call, &hello().to_string())
                });
                let session = reply
                    .head
                    .lines()
                    .find_map(|line| line.strip_prefix("mcp-session-id: "));
                let session = session
                    .unwrap_or_else(|| panic!("{}", reply.head))
                    .to_owned();
                Self::Legacy(server, session)
            }
            "stdio" => {
                let args = [&["serve", "--stdio"][..], &SETTINGS].concat();
                let mut child = lab.command(&args).spawn().unwrap();
                let mut stdout = BufReader::new(child.stdout.take().unwrap());
                exchange(&mut child, &mut stdout, &hello());
                Self::Stdio(child, stdout)
            }
            _ => Self::Command,
        }
    }

    pub(crate) fn call(&mut self, lab: &Lab, tool: &str, arguments: &Value) -> Got {
        match self {
            Self::Command => {
                let arguments = arguments.to_string();
                let call = ["call", tool, "--args", &arguments, "--json"];
                Got::of_outcome(lab.run(&[&call[..], &SETTINGS].concat()).json())
            }
            Self::Api(server) => {
                let body = json!({"tool": tool, "arguments": arguments}).to_string();
                let reply = server.ask(&post("/api/v1/calls", &server.call, &body));
                Got::of_outcome(reply.json())
            }
            Self::Stdio(child, stdout) => {
                Got::of_mcp(exchange(child, stdout, &tool_call(7, tool, arguments)))
            }
            Self::Legacy(server, session) => {
                let body = tool_call(7, tool, arguments).to_string();
                mcp(server, &body, &[("mcp-session-id", session.as_str())])
            }
            Self::Modern(server) => {
                let mut call = tool_call(7, tool, arguments);
                call["params"]["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "once", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let headers = [
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", tool),
                ];
                mcp(server, &call.to_string(), &headers)
            }
        }
    }

    /// Kills it without a message.
    pub(crate) fn kill(self) {
        if let Self::Stdio(mut child, _) = self {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn end(self) {
        if let Self::Stdio(mut child, stdout) = self {
            drop(child.stdin.take());
            drop(stdout);
            ended(child);
        }
    }
}

fn mcp(server: &Server, body: &str, headers: &[(&str, &str)]) -> Got {
    let all = [
        &[
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ],
        headers,
    ]
    .concat();
    let reply = server.ask(&Request {
        headers: &all,
        ..post("/mcp", &server.call, body)
    });
    // One event of a stream, or only the answer.
    let data: String = reply
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let text = if data.is_empty() { &reply.body } else { &data };
    let found = text
        .find("{\"jsonrpc\"")
        .unwrap_or_else(|| panic!("{}", reply.body));
    let mut answers = serde_json::Deserializer::from_str(&text[found..]).into_iter::<Value>();
    let answer = answers.find_map(|one| one.ok().filter(|one| one.get("result").is_some()));
    Got::of_mcp(answer.unwrap_or_else(|| panic!("{}", reply.body)))
}

pub(crate) fn log(lab: &Lab) -> String {
    std::fs::read_to_string(lab.work().join("log.txt")).unwrap_or_default()
}

pub(crate) fn read_asked(lab: &Lab) -> String {
    std::fs::read_to_string(lab.work().join("asked.txt")).unwrap_or_default()
}

pub(crate) fn pending(lab: &Lab) -> Vec<String> {
    let list = lab.run(&["approvals", "list", "--json"]).json();
    let ids = list.as_array().unwrap().iter();
    ids.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn decide(lab: &Lab, word: &str) {
    let ids = pending(lab);
    assert_eq!(ids.len(), 1, "{ids:?}");
    let ran = lab.run(&[&["approvals", word, &ids[0]][..], &SETTINGS].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// If decided elsewhere, a script's outcome is returned to the call that repeats it, once; the next call is a new one.
#[test]
fn f1_a_script_that_a_person_decided_about_is_collected_and_not_run_again() {
    for name in CLIENTS {
        for (word, value, file) in [("approve", "yes", "asked\n"), ("deny", "no", "")] {
            let lab = Lab::new();
            let mut client = Client::new(&lab, name);
            let arguments = json!({"code": SCRIPT});
            let first = client.call(&lab, "tool_chain", &arguments);
            assert_eq!(first.status, "suspended", "{name}: {first:?}");
            assert_eq!(log(&lab), "one\n", "{name}");
            // Repeated before a decision, it is still pending, and nothing runs again.
            let early = client.call(&lab, "tool_chain", &arguments);
            assert_eq!(early.status, "suspended", "{name}: {early:?}");
            assert_eq!(
                (log(&lab).as_str(), pending(&lab).len()),
                ("one\n", 1),
                "{name}"
            );
            decide(&lab, word);
            // In a different notation it is the same call.
            let again: Value =
                serde_json::from_str(&format!(" {{ \"code\" : {} }}", arguments["code"])).unwrap();
            let told = client.call(&lab, "tool_chain", &again);
            assert_eq!(
                (told.status.as_str(), &told.value),
                ("ok", &json!(value)),
                "{name}: {told:?}"
            );
            assert!(
                told.whole.to_string().contains("printed"),
                "{name}: {told:?}"
            );
            assert_eq!(log(&lab), "one\ntwo\n", "{name}");
            assert_eq!(read_asked(&lab), file, "{name}");
            // It was delivered: another call is a new one.
            let new = client.call(&lab, "tool_chain", &arguments);
            assert_eq!(
                log(&lab),
                if word == "deny" && new.status == "ok" {
                    "one\ntwo\none\ntwo\n"
                } else {
                    "one\ntwo\none\n"
                },
                "{name} {word}: {new:?}"
            );
            client.end();
        }
    }
}

#[test]
fn f1_a_repeated_script_that_waits_is_resumed_by_the_decision() {
    for name in ["api", "stdio", "legacy"] {
        let lab = Lab::new();
        let mut client = Client::new(&lab, name);
        let arguments = json!({"code": SCRIPT});
        assert_eq!(
            client.call(&lab, "tool_chain", &arguments).status,
            "suspended"
        );
        std::thread::scope(|scope| {
            let deciding = scope.spawn(|| decide(&lab, "approve"));
            // The call may come before, during or after the decision.
            let told = wait("the outcome", || {
                let told = client.call(&lab, "tool_chain", &arguments);
                (told.status != "suspended").then_some(told)
            });
            assert_eq!(
                (told.status.as_str(), &told.value),
                ("ok", &json!("yes")),
                "{name}: {told:?}"
            );
            deciding.join().unwrap();
        });
        assert_eq!(
            (log(&lab).as_str(), read_asked(&lab).as_str()),
            ("one\ntwo\n", "asked\n"),
            "{name}"
        );
        client.end();
    }
}

#[test]
fn f1_what_another_process_finished_is_collected_by_a_new_one() {
    for name in ["api", "stdio", "modern"] {
        for decided_first in [true, false] {
            let lab = Lab::new();
            let mut client = Client::new(&lab, name);
            let arguments = json!({"code": SCRIPT});
            assert_eq!(
                client.call(&lab, "tool_chain", &arguments).status,
                "suspended"
            );
            client.kill();
            if decided_first {
                decide(&lab, "approve");
                assert_eq!(log(&lab), "one\ntwo\n", "{name}");
            }
            let mut client = Client::new(&lab, name);
            if !decided_first {
                let early = client.call(&lab, "tool_chain", &arguments);
                assert_eq!(early.status, "suspended", "{name}: {early:?}");
                assert_eq!(log(&lab), "one\n", "{name}");
                decide(&lab, "approve");
            }
            collects_the_outcome(&lab, &mut client, name);
            client.end();
        }
    }
}

/// Repeats the script's call until its outcome is available; both lines ran once.
fn collects_the_outcome(lab: &Lab, client: &mut Client, name: &str) {
    let arguments = json!({"code": SCRIPT});
    let told = wait("the outcome", || {
        let told = client.call(lab, "tool_chain", &arguments);
        (told.status != "suspended").then_some(told)
    });
    let outcome = (told.status.as_str(), &told.value);
    assert_eq!(outcome, ("ok", &json!("yes")), "{name}: {told:?}");
    let ran = (log(lab), read_asked(lab));
    assert_eq!(
        ran,
        ("one\ntwo\n".to_owned(), "asked\n".to_owned()),
        "{name}"
    );
}

#[test]
fn f1_a_decision_that_could_not_be_acted_on_at_once_is_acted_on_later() {
    let lab = Lab::new();
    let mut client = Client::new(&lab, "api");
    let arguments = json!({"code": SCRIPT});
    let first = client.call(&lab, "tool_chain", &arguments);
    assert_eq!(first.status, "suspended", "{first:?}");
    client.kill();
    let mut client = Client::new(&lab, "api");
    let list = lab.run(&["approvals", "list", "--json"]).json();
    let id = list[0]["id"].as_str().unwrap();
    // Another process uses the run while the server and the command want it.
    let run = lab
        .home()
        .join("runs")
        .join(list[0]["run"].as_str().unwrap());
    let held = std::fs::File::open(run).unwrap();
    held.lock().unwrap();
    let ran = lab.run(&[&["approvals", "approve", id][..], &SETTINGS].concat());
    assert!(
        ran.stderr.contains("already being resumed"),
        "{}",
        ran.stderr
    );
    assert_eq!(log(&lab), "one\n");
    drop(held);
    collects_the_outcome(&lab, &mut client, "api");
    client.end();
}

#[test]
fn f1_a_call_that_a_person_decided_about_is_collected_by_every_entry_point() {
    for name in CLIENTS {
        for (word, status, file) in [("approve", "ok", "x\n"), ("deny", "denied", "")] {
            let lab = Lab::new();
            let mut client = Client::new(&lab, name);
            let arguments = json!({"path": "asked.txt", "content": "x\n", "mode": "append"});
            for _ in 0..3 {
                let waits = client.call(&lab, "write_file", &arguments);
                assert_eq!(waits.status, "suspended", "{name}: {waits:?}");
                assert_eq!(pending(&lab).len(), 1, "{name}");
            }
            decide(&lab, word);
            let told = client.call(&lab, "write_file", &arguments);
            assert_eq!(told.status, status, "{name}: {told:?}");
            assert_eq!(read_asked(&lab), file, "{name}");
            // A command's next call asks again; within a run a denial holds.
            let new = client.call(&lab, "write_file", &arguments);
            let expect = if name == "command" || word == "approve" {
                "suspended"
            } else {
                "denied"
            };
            assert_eq!(new.status, expect, "{name} {word}: {new:?}");
            assert_eq!(read_asked(&lab), file, "{name}");
            client.end();
        }
    }
}

#[test]
fn f1_a_command_s_suspended_run_is_the_one_that_ends() {
    let lab = Lab::new();
    lab.file("script.py", SCRIPT);
    let chain = [&["chain", "script.py", "--json"][..], &SETTINGS].concat();
    let first = lab.run(&chain);
    assert_eq!(first.code, 4, "{}", first.stderr);
    let run = first.json()["run"].clone();
    assert_eq!(lab.run(&chain).json()["run"], run);
    decide(&lab, "approve");
    let told = lab.run(&chain).json();
    assert_eq!(told["data"], json!({"result": "yes"}), "{told}");
    assert_eq!(told["calls"].as_array().unwrap().len(), 3, "{told}");
    let runs = lab.run(&["runs", "list", "--json"]).json();
    let states = runs.as_array().unwrap().iter().map(|run| &run["state"]);
    assert!(states.clone().all(|state| state == "closed"), "{runs}");
    assert_eq!(states.count(), 2);
    for run in runs.as_array().unwrap() {
        let verified = lab.run(&["runs", "verify", run["run"].as_str().unwrap()]);
        assert_eq!(verified.code, 0, "{}", verified.stdout);
    }
}

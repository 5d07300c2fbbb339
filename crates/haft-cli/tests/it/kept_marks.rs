//! What a client's run has read counts for its next runs, and stays with the files that it wrote, with real processes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::harness::Lab;

/// A server that strangers may write to: one tool reads, one sends.
const SERVER: &str = r#"
import json, sys
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
tools = [{"name": name, "description": "Do something.", "inputSchema": schema} for name in ["read", "comment"]]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "tracker", "version": "1"}}
    elif m["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    elif m["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "done"}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

fn lab(more: &str) -> Lab {
    let lab = Lab::new();
    let folder = lab.home().parent().unwrap().join("server");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("server.py"), SERVER).unwrap();
    let at = folder.display();
    lab.user_settings(&format!(
        "approval.mode = \"deny\"\npolicy.profile = \"trusted\"\npolicy.allow = [\"tracker.*\"]\n{more}\n\
         [mcp.servers.tracker]\ncommand = \"python3\"\nargs = [\"{at}/server.py\"]\n\
         sandbox.read = [\"{at}\"]\nsandbox.network = \"host\"\n"
    ));
    let pinned = lab.run(&["mcp", "pin", "tracker", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    lab
}

/// Makes calls in turn in one session of a client of this name, and returns for each whether it ran, with what was said.
fn session(lab: &Lab, client: &str, calls: &[(&str, Value)]) -> Vec<(bool, String)> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1"},
    }});
    let mut serving = lab.command(&["serve", "--stdio"]).spawn().unwrap();
    let mut input = serving.stdin.take().unwrap();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let mut ask = |request: &Value| {
        writeln!(input, "{request}").unwrap();
        loop {
            let line = lines.next().unwrap().unwrap();
            let reply: Value = serde_json::from_str(&line).unwrap();
            if reply["id"] == request["id"] {
                return reply["result"].clone();
            }
        }
    };
    ask(&hello);
    let mut said = Vec::new();
    for (id, (name, arguments)) in (1..).zip(calls) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let result = ask(&call);
        said.push((result["isError"] != true, result.to_string()));
    }
    drop(input);
    assert!(serving.wait().unwrap().success());
    said
}

const READ: &str = "tracker.read";
const COMMENT: &str = "tracker.comment";

fn read() -> (&'static str, Value) {
    (READ, json!({"text": "12"}))
}

fn comment() -> (&'static str, Value) {
    (COMMENT, json!({"text": "secret"}))
}

/// Calls one tool in a session of its own.
fn one(lab: &Lab, client: &str, tool: &str) -> (bool, String) {
    session(lab, client, &[(tool, json!({"text": "secret"}))]).remove(0)
}

#[test]
fn mark_when_the_client_comes_back_counts_until_the_operator_clears_it() {
    let lab = lab("");
    assert!(one(&lab, "agent", READ).0);
    let (ran, said) = one(&lab, "agent", COMMENT);
    assert!(!ran && said.contains("guard untrusted-content"), "{said}");
    assert!(one(&lab, "agent", READ).0, "a look-up may return");
    assert!(one(&lab, "other", COMMENT).0, "another client");
    let listed = lab
        .run(&["runs", "marks", "--client", "agent", "--json"])
        .json();
    assert_eq!(listed["marks"][0]["client"], "agent", "{listed}");
    assert_eq!(
        listed["marks"][0]["sources"][0],
        "server tracker: tracker.read"
    );
    lab.run(&["runs", "marks", "--clear", "--client", "agent"]);
    assert!(one(&lab, "agent", COMMENT).0, "cleared");
}

#[test]
fn mark_when_settings_keep_none_ends_with_its_run() {
    let lab = lab("policy.keep_marks_s = 0");
    assert!(one(&lab, "agent", READ).0);
    assert!(one(&lab, "agent", COMMENT).0);
    let both = session(&lab, "agent", &[read(), comment()]);
    assert!(both[0].0 && !both[1].0, "{both:?}");
}

#[test]
fn file_when_a_marked_run_wrote_it_marks_the_run_that_reads_it() {
    let lab = lab("");
    let write = |path: &str| ("write_file", json!({"path": path, "content": "send all\n"}));
    let load = |path: &str| ("read_file", json!({"path": path}));
    let both = session(&lab, "first", &[read(), write("notes.md")]);
    assert!(both.iter().all(|one| one.0), "{both:?}");
    lab.file("mine.md", "mine\n");
    let fresh = session(&lab, "second", &[load("mine.md"), comment()]);
    assert!(fresh.iter().all(|one| one.0), "{fresh:?}");
    let poisoned = session(&lab, "third", &[load("notes.md"), comment()]);
    assert!(poisoned[0].0 && !poisoned[1].0, "{poisoned:?}");
    // The user's own words are the user's.
    lab.file("notes.md", "read and edited\n");
    let edited = session(&lab, "fourth", &[load("notes.md"), comment()]);
    assert!(edited.iter().all(|one| one.0), "{edited:?}");
}

#[test]
fn instructions_to_agents_when_a_trusted_run_writes_them_are_asked_about() {
    let lab = lab("");
    for path in ["AGENTS.md", "sub/claude.md"] {
        let write = ("write_file", json!({"path": path, "content": "x"}));
        let (ran, said) = session(&lab, "agent", &[write]).remove(0);
        assert!(
            !ran && said.contains("guard agent-instructions"),
            "{path}: {said}"
        );
    }
}

#[test]
fn third_of_the_rule_of_two_when_settings_ask_is_asked_about_and_shown() {
    let lab = lab("policy.rule_of_two = \"ask\"\npolicy.untrusted_content = \"off\"");
    lab.file("data.txt", "private\n");
    let load = ("read_file", json!({"path": "data.txt"}));
    let all = session(&lab, "agent", &[read(), load, comment()]);
    assert!(all[0].0 && all[1].0 && !all[2].0, "{all:?}");
    assert!(all[2].1.contains("guard rule-of-two"), "{all:?}");
    let runs = lab.run(&["runs", "list", "--json", "-n", "1"]).json();
    let run = runs[0]["run"].as_str().unwrap().to_owned();
    let shown = lab.run(&["runs", "show", &run, "--json"]).json();
    let expect = json!({"untrusted": true, "private": true, "sends": false});
    assert_eq!(shown["rule_of_two"], expect, "{shown}");
    let shown = lab.run(&["runs", "show", &run]);
    assert!(
        shown
            .stdout
            .contains("has read untrusted content, seen private data"),
        "{}",
        shown.stdout
    );
}

#[test]
fn workspace_when_settings_do_not_trust_it_marks_who_reads_it() {
    let lab = lab("policy.trust_workspace = \"no\"");
    lab.file("readme.md", "x\n");
    let all = session(
        &lab,
        "agent",
        &[("read_file", json!({"path": "readme.md"})), comment()],
    );
    assert!(all[0].0 && !all[1].0, "{all:?}");
}

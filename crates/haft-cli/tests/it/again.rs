//! AF: calls and scripts that are made again when their state is lost, old, or still in progress.

use std::fs::OpenOptions;
use std::io::Write as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::approvals::{decide, lines, only_one, text, wait};
use crate::harness::Lab;
use crate::once::{
    Client, SCRIPT, SETTINGS, decide as decide_by_command, log, pending, read_asked,
};
use crate::serve::{Server, post};

/// Returns the run of the pending request.
fn run_that_waits(lab: &Lab) -> String {
    let waits = lab.run(&["approvals", "list", "--json"]).json();
    text(&waits[0], "run")
}

/// Leaves the state of a process that exits after its script has ended, but before the outcome is recorded.
fn journal_is_closed(lab: &Lab, run: &str) {
    let path = lab.home().join("runs").join(run).join("journal.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let close = json!({"type": "close", "chain": first["chain"], "status": "ok"});
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(file, "{close}").unwrap();
}

#[test]
fn af1_a_script_whose_outcome_is_lost_is_said_to_be_lost_once_and_not_run_again() {
    for name in ["command", "stdio"] {
        let lab = Lab::new();
        let mut client = Client::new(&lab, name);
        let arguments = json!({"code": SCRIPT});
        let first = client.call(&lab, "tool_chain", &arguments);
        assert_eq!(first.status, "suspended", "{name}: {first:?}");
        client.kill();
        journal_is_closed(&lab, &run_that_waits(&lab));
        let mut client = Client::new(&lab, name);
        let lost = client.call(&lab, "tool_chain", &arguments);
        assert_eq!(lost.status, "error", "{name}: {lost:?}");
        let said = lost.whole.to_string();
        assert!(said.contains("outcome is lost"), "{name}: {said}");
        assert!(!said.contains("runs resume"), "{name}: {said}");
        assert_eq!(log(&lab), "one\n", "{name}");
        // It was reported: the next call is a new one.
        let new = client.call(&lab, "tool_chain", &arguments);
        assert_eq!(new.status, "suspended", "{name}: {new:?}");
        assert_eq!(log(&lab), "one\none\n", "{name}");
        client.end();
    }
}

#[test]
fn af3_an_earlier_outcome_says_so_and_no_other_entry_point_hears_it() {
    let lab = Lab::new();
    let mut command = Client::new(&lab, "command");
    let arguments = json!({"path": "asked.txt", "content": "x\n", "mode": "append"});
    let first = command.call(&lab, "write_file", &arguments);
    assert_eq!(first.status, "suspended", "{first:?}");
    decide_by_command(&lab, "approve");
    std::fs::remove_file(lab.work().join("asked.txt")).unwrap();
    let mut model = Client::new(&lab, "stdio");
    let own = model.call(&lab, "write_file", &arguments);
    assert_eq!(own.status, "suspended", "{own:?}");
    assert_eq!(read_asked(&lab), "");
    model.end();
    let told = command.call(&lab, "write_file", &arguments);
    let said = told.whole.to_string();
    assert_eq!(told.status, "ok", "{said}");
    assert!(said.contains("Nothing ran now."), "{said}");
    assert!(said.contains(&text(&first.whole, "run")), "{said}");
    let shown = lab.run(&["runs", "show", &text(&told.whole, "run"), "--json"]);
    let approval = text(&first.whole, "approval");
    assert!(shown.stdout.contains(&approval), "{}", shown.stdout);
}

/// Appends a line, asks, appends another, waits for a file, and appends a third.
const WAITS: &str = "
import time
tools.write_file(path='log.txt', content='one\\n', mode='append')
tools.write_file(path='asked.txt', content='asked\\n', mode='append')
tools.write_file(path='log.txt', content='two\\n', mode='append')
while True:
    try:
        tools.read_file(path='go.txt')
        break
    except ToolError:
        time.sleep(0.2)
tools.write_file(path='log.txt', content='three\\n', mode='append')
'yes'
";

#[test]
fn af5_a_server_that_stops_while_it_resumes_a_script_leaves_it_to_be_resumed() {
    let lab = Lab::new();
    let server = Server::start(&lab, &SETTINGS);
    let body = json!({"tool": "tool_chain", "arguments": {"code": WAITS}}).to_string();
    let first = server.ask(&post("/api/v1/calls", &server.call, &body));
    assert_eq!(first.json()["status"], "suspended", "{}", first.body);
    let request = only_one(&server);
    let (id, run) = (text(&request, "id"), text(&request, "run"));
    assert_eq!(decide(&server, &id, "approve", &json!({})).status, 200);
    let file = lab.work().join("log.txt");
    wait("the script", || (lines(&file) == 2).then_some(()));
    let ran = server.end(Signal::TERM);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = lab.run(&["runs", "show", &run, "--json"]);
    assert!(
        shown.stdout.contains("can be resumed again"),
        "{}",
        shown.stdout
    );
    // If made again, it does not start over.
    let server = Server::start(&lab, &SETTINGS);
    let early = server.ask(&post("/api/v1/calls", &server.call, &body));
    assert_eq!(early.json()["status"], "error", "{}", early.body);
    assert_eq!(log(&lab), "one\ntwo\n");
    lab.file("go.txt", "");
    let resumed = lab.run(&[&["runs", "resume", &run][..], &SETTINGS].concat());
    assert_eq!(resumed.code, 0, "{}{}", resumed.stdout, resumed.stderr);
    let told = server.ask(&post("/api/v1/calls", &server.call, &body));
    assert_eq!(told.json()["data"]["result"], "yes", "{}", told.body);
    assert_eq!(log(&lab), "one\ntwo\nthree\n");
    assert_eq!(read_asked(&lab), "asked\n");
}

#[test]
fn af6_a_question_that_a_command_asks_again_is_the_same_question() {
    let lab = Lab::new();
    let mut command = Client::new(&lab, "command");
    let arguments = json!({"title": "Which way?", "questions": [
        {"id": "way", "type": "single", "text": "Left or right?", "options": ["left", "right"]}]});
    for _ in 0..2 {
        let waits = command.call(&lab, "ask_user", &arguments);
        assert_eq!(waits.status, "suspended", "{waits:?}");
        assert_eq!(pending(&lab).len(), 1);
    }
    let answers = r#"{"way":"left"}"#;
    let answer = [
        "approvals",
        "answer",
        &pending(&lab)[0],
        "--answers",
        answers,
    ];
    let ran = lab.run(&[&answer[..], &SETTINGS].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let told = command.call(&lab, "ask_user", &arguments);
    assert_eq!(told.status, "ok", "{told:?}");
    assert_eq!(told.whole["data"]["answers"], json!({"way": "left"}));
    // The answer was delivered: a new call asks again.
    let new = command.call(&lab, "ask_user", &arguments);
    assert_eq!(new.status, "suspended", "{new:?}");
}

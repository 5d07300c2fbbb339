//! A client's process that is killed while its call waits for a decision: the call made again gets the outcome, and nothing runs twice.

use std::process::Child;

use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::Lab;
use crate::once::{Client, pending, read_asked};
use crate::serve::{exchange, hello, post, tool_call};
use crate::signals::jailed;

/// A script whose second line is asked about.
const ASKS: &str = "tools.list_files()\ntools.write_file(path='asked.txt', content='asked\\n', mode='append')\n'did'";

/// Long enough for the decision.
const PATIENT: [&str; 4] = [
    "-c",
    "chain.approval_timeout_s=50",
    "-c",
    "limits.approval_timeout_s=60",
];

fn write() -> Value {
    json!({"path": "asked.txt", "content": "asked\n", "mode": "append"})
}

/// Starts the client that makes the call and waits for the decision.
fn start_waiting(lab: &Lab, client: &str, tool: &str, arguments: &Value) -> Child {
    if client == "command" {
        let arguments = arguments.to_string();
        let call = ["call", tool, "--args", &arguments, "--wait=300"];
        return lab.command(&call).spawn().unwrap();
    }
    let args = [&["serve", "--stdio"][..], &PATIENT].concat();
    let mut child = lab.command(&args).spawn().unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    exchange(&mut child, &mut stdout, &hello());
    let line = format!("{}\n", tool_call(7, tool, arguments));
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), line.as_bytes()).unwrap();
    child
}

/// One scene: the call is made, its client ends while it waits, it is decided about, and made again.
fn scene(client: &str, tool: &str, arguments: &Value, decision: &str) {
    let row = format!("{client} {tool} {decision}");
    let lab = Lab::new();
    let (client, leaves) = client.split_once(' ').unwrap_or((client, ""));
    let mut child = start_waiting(&lab, client, tool, arguments);
    let id = wait("the request", || pending(&lab).pop());
    match leaves {
        "leaves" => drop(child.stdin.take()),
        _ => child.kill().unwrap(),
    }
    child.wait().unwrap();
    let again = |times: usize| {
        let mut client = Client::new(&lab, client);
        let told: Vec<_> = (0..times)
            .map(|_| client.call(&lab, tool, arguments))
            .collect();
        client.end();
        told
    };
    // Before the decision it is the same request that is waited for.
    let early = again(1).remove(0);
    assert_eq!(early.status, "suspended", "{row}: {early:?}");
    assert_eq!(pending(&lab), [id.as_str()], "{row}");
    let ran = lab.run(&["approvals", decision, &id]);
    let told = again(2);
    let whole = told[0].whole.to_string();
    let note = (decision == "approve").then_some("Nothing ran now");
    assert!(
        whole.contains(note.unwrap_or("said no")),
        "{row}: {ran:?} {whole}"
    );
    let runs = usize::from(decision == "approve");
    assert_eq!(read_asked(&lab), "asked\n".repeat(runs), "{row}");
    // Its outcome was collected: made once more, it is a new call.
    assert_eq!(told[1].status, "suspended", "{row}: {:?}", told[1]);
    let new = pending(&lab);
    assert!(new.len() == 1 && new[0] != id, "{row}: {new:?}");
}

#[test]
fn a_call_whose_client_was_killed_while_it_waited_is_collected_and_not_run_again() {
    let command = json!({"command": "echo asked >> asked.txt"});
    let calls = [
        ("write_file", write()),
        ("tool_chain", json!({"code": ASKS})),
        ("run_command", command),
    ];
    let here = if jailed(&Lab::new()) { 3 } else { 2 };
    let rows = ["command", "stdio", "stdio leaves"].into_iter();
    let rows = rows.flat_map(|client| calls[..here].iter().map(move |call| (client, call)));
    for (client, (tool, arguments)) in rows {
        // Each waits for the lease of the killed process to end.
        std::thread::scope(|scope| {
            for decision in ["approve", "deny"] {
                scope.spawn(move || scene(client, tool, arguments, decision));
            }
        });
    }
}

#[test]
fn a_decision_whose_approver_was_killed_is_acted_on_by_the_call_made_again() {
    for (decision, status) in [("approve", "ok"), ("deny", "denied")] {
        let lab = Lab::new();
        let mut child = start_waiting(&lab, "command", "write_file", &write());
        let id = wait("the request", || pending(&lab).pop());
        child.kill().unwrap();
        child.wait().unwrap();
        // It leaves the request to its client for some seconds, since the lease of that process is not over yet.
        let mut approver = lab.command(&["approvals", decision, &id]).spawn().unwrap();
        wait("the decision", || pending(&lab).is_empty().then_some(()));
        approver.kill().unwrap();
        approver.wait().unwrap();
        let told = Client::new(&lab, "command").call(&lab, "write_file", &write());
        assert_eq!(told.status, status, "{told:?}");
        let runs = usize::from(decision == "approve");
        assert_eq!(read_asked(&lab), "asked\n".repeat(runs), "{decision}");
    }
}

#[test]
fn a_question_whose_server_was_killed_is_answered_for_the_next() {
    let lab = Lab::new();
    let question =
        json!({"title": "Which?", "questions": [{"id": "a", "type": "text", "text": "Name?"}]});
    let mut child = start_waiting(&lab, "stdio", "ask_user", &question);
    let id = wait("the question", || pending(&lab).pop());
    child.kill().unwrap();
    child.wait().unwrap();
    let answers = ["approvals", "answer", &id, "--answers", "{\"a\":\"this\"}"];
    let ran = lab.run(&answers);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let mut next = Client::new(&lab, "stdio");
    let told = next.call(&lab, "ask_user", &question);
    assert!(told.whole.to_string().contains("this"), "{told:?}");
    assert_eq!(pending(&lab), [""; 0]);
    next.end();
}

#[test]
fn a_suspended_call_says_how_it_is_decided_whatever_waits_within_it() {
    let lab = Lab::new();
    let here = if jailed(&lab) { 3 } else { 2 };
    let script = json!({"code": ASKS}).to_string();
    let write = write().to_string();
    let calls = [
        ("write_file", write.as_str()),
        ("tool_chain", script.as_str()),
        ("run_command", r#"{"command": "echo asked >> asked.txt"}"#),
    ];
    for (tool, arguments) in &calls[..here] {
        let ran = lab.run(&["call", tool, "--args", arguments]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 4, "{tool}: {said}");
        assert!(
            said.contains("haft approvals approve ap-"),
            "{tool}: {said}"
        );
    }
}

#[test]
fn a_server_that_was_killed_while_a_call_waited_leaves_it_to_the_next() {
    let lab = Lab::new();
    let server = crate::serve::Server::start(&lab, &PATIENT);
    let body = json!({"tool": "write_file", "arguments": write()}).to_string();
    let call = post("/api/v1/calls", &server.call, &body);
    std::thread::scope(|scope| {
        let caller = server.caller();
        scope.spawn(move || caller.try_ask(&call));
        let id = wait("the request", || pending(&lab).pop());
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        let ran = lab.run(&["approvals", "approve", &id]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    });
    assert_eq!(read_asked(&lab), "asked\n");
    let mut next = Client::new(&lab, "api");
    let told = next.call(&lab, "write_file", &write());
    let whole = told.whole.to_string();
    assert!(whole.contains("Nothing ran now"), "{whole}");
    assert_eq!(read_asked(&lab), "asked\n");
    next.end();
}

#[test]
fn a_client_beside_one_that_still_waits_has_a_request_of_its_own() {
    let lab = Lab::new();
    let mut first = start_waiting(&lab, "command", "write_file", &write());
    let id = wait("the request", || pending(&lab).pop());
    let second = Client::new(&lab, "command").call(&lab, "write_file", &write());
    assert_eq!(second.status, "suspended", "{second:?}");
    let own = second.whole["approval"].as_str().unwrap();
    assert_ne!(own, id);
    assert_eq!(lab.run(&["approvals", "approve", own]).code, 0);
    assert_eq!(read_asked(&lab), "asked\n");
    assert_eq!(lab.run(&["approvals", "deny", &id]).code, 0);
    assert_eq!(first.wait().unwrap().code(), Some(3));
    assert_eq!(read_asked(&lab), "asked\n");
}

#[test]
fn a_call_that_needs_no_decision_now_does_not_wait_for_the_request_of_an_earlier_run() {
    if !jailed(&Lab::new()) {
        return;
    }
    for client in ["command", "stdio"] {
        let lab = Lab::new();
        let arguments = json!({"command": "touch made"});
        let trusted = "[policy]\nprofile = \"trusted\"\n";
        lab.user_settings(&format!("{trusted}ask = [\"Bash(touch *)\"]\n"));
        let mut first = Client::new(&lab, client);
        let asked = first.call(&lab, "run_command", &arguments);
        assert_eq!(asked.status, "suspended", "{client}: {asked:?}");
        first.end();
        lab.user_settings(trusted);
        let mut next = Client::new(&lab, client);
        let ran = next.call(&lab, "run_command", &arguments);
        assert_eq!(ran.status, "ok", "{client}: {ran:?}");
        assert!(lab.work().join("made").exists(), "{client}");
        assert!(pending(&lab).is_empty(), "{client}");
        next.end();
    }
}

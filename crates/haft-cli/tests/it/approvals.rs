//! Approvals: pending calls, decided from anywhere, exactly once, even if the process that asked was killed.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Reply, Server, get, post};

/// Longer than anything here takes; the tests continue as soon as they can.
const PATIENCE: Duration = Duration::from_secs(120);

/// Retries until `look` returns something.
pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Calls a tool of a server on a separate thread; returns the answer when the call ends.
pub(crate) fn call_in_background(
    server: &Server,
    tool: &str,
    arguments: &Value,
) -> JoinHandle<Option<Reply>> {
    let body = json!({"tool": tool, "arguments": arguments}).to_string();
    let caller = server.caller();
    std::thread::spawn(move || caller.try_ask(&post("/api/v1/calls", &caller.call, &body)))
}

/// Returns the pending requests, as the operator sees them.
fn waiting(server: &Server) -> Vec<Value> {
    let reply = server.ask(&get("/api/v1/approvals", Some(&server.operator)));
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json().as_array().unwrap().clone()
}

pub(crate) fn only_one(server: &Server) -> Value {
    let found = wait("a request", || waiting(server).into_iter().next());
    assert_eq!(waiting(server).len(), 1);
    found
}

pub(crate) fn show(server: &Server, id: &str) -> Value {
    let path = format!("/api/v1/approvals/{id}");
    server.ask(&get(&path, Some(&server.operator))).json()
}

pub(crate) fn decide(server: &Server, id: &str, word: &str, body: &Value) -> Reply {
    let path = format!("/api/v1/approvals/{id}/{word}");
    server.ask(&post(&path, &server.operator, &body.to_string()))
}

pub(crate) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// Returns the number of lines of a file that appending calls have written.
pub(crate) fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

fn append() -> Value {
    json!({"path": "log.txt", "content": "line\n", "mode": "append"})
}

/// The decision about a request whose process was killed, and the result.
struct Row {
    name: &'static str,
    settings: &'static [&'static str],
    /// Done to the workspace between the request and the decision.
    meanwhile: fn(&Lab),
    decision: (&'static str, &'static str),
    status: u16,
    /// The final status of the request.
    ends: &'static str,
    /// The status of its outcome.
    outcome: &'static str,
    log: &'static str,
}

const NOTHING: fn(&Lab) = |_| {};

#[rustfmt::skip]
const AFTER_A_KILL: [Row; 6] = [
    Row { name: "approved", settings: &[], meanwhile: NOTHING, decision: ("approve", "{}"), status: 200, ends: "done", outcome: "ok", log: "old\nline\n" },
    Row { name: "denied", settings: &[], meanwhile: NOTHING, decision: ("deny", r#"{"message":"not now"}"#), status: 200, ends: "denied", outcome: "denied", log: "old\n" },
    Row { name: "edited", settings: &[], meanwhile: NOTHING, decision: ("approve", r#"{"edit":{"path":"log.txt","content":"other\n","mode":"append"}}"#), status: 200, ends: "done", outcome: "ok", log: "old\nother\n" },
    Row { name: "changed file", settings: &[], meanwhile: |lab| { lab.file("log.txt", "new\n"); }, decision: ("approve", "{}"), status: 200, ends: "done", outcome: "error", log: "new\n" },
    Row { name: "answered in its place", settings: &[], meanwhile: NOTHING, decision: ("answer", r#"{"text":"take it as written"}"#), status: 200, ends: "answered", outcome: "ok", log: "old\n" },
    Row {
        name: "expired", settings: &["-c", "limits.approval_timeout_s=1", "-c", "policy.on_approval_timeout=deny"],
        // slow on purpose: the request expires a second after it was made, while no process is running.
        meanwhile: |_| std::thread::sleep(Duration::from_millis(1200)),
        decision: ("approve", "{}"), status: 410, ends: "expired", outcome: "", log: "old\n",
    },
];

#[test]
fn a_call_whose_asker_was_killed_comes_to_what_was_decided_once() {
    for row in AFTER_A_KILL {
        let lab = Lab::new();
        let log = lab.file("log.txt", "old\n");
        let first = Server::start(&lab, row.settings);
        let asker = call_in_background(&first, "write_file", &append());
        let id = text(&only_one(&first), "id");
        drop(first);
        assert!(asker.join().unwrap().is_none(), "{}", row.name);
        (row.meanwhile)(&lab);
        let server = Server::start(&lab, row.settings);
        let (word, body) = row.decision;
        let body: Value = serde_json::from_str(body).unwrap();
        let reply = decide(&server, &id, word, &body);
        assert_eq!(reply.status, row.status, "{}: {}", row.name, reply.body);
        let entry = wait(row.name, || {
            let entry = show(&server, &id);
            let over = entry["status"] == row.ends;
            (over && (row.outcome.is_empty() || entry["outcome"].is_object())).then_some(entry)
        });
        if !row.outcome.is_empty() {
            assert_eq!(
                entry["outcome"]["status"], row.outcome,
                "{}: {entry}",
                row.name
            );
        }
        // A second decision comes too late, and nothing runs twice.
        let again = decide(&server, &id, "approve", &json!({}));
        assert!([409, 410].contains(&again.status), "{}", row.name);
        assert_eq!(
            std::fs::read_to_string(&log).unwrap(),
            row.log,
            "{}",
            row.name
        );
        drop(server);
        let runs = lab.run(&["runs", "list", "--json"]).json();
        for run in runs.as_array().unwrap() {
            let run = run["run"].as_str().unwrap();
            let verified = lab.run(&["runs", "verify", run]);
            assert_eq!(verified.code, 0, "{}: {}", row.name, verified.stdout);
        }
    }
}

#[test]
fn every_part_of_a_waiting_command_says_its_verdict() {
    let lab = Lab::new();
    let line = json!({"command": "ls && touch made > out.txt"}).to_string();
    let on = "policy.commands=ask";
    let allow = "policy.allow=[\"run_command(ls)\"]";
    let call = ["call", "run_command", "--args", &line, "--json"];
    let asked = lab.run(&[&call[..], &["-c", on, "-c", allow]].concat());
    assert_eq!(asked.code, 4, "{}{}", asked.stdout, asked.stderr);
    let id = text(&asked.json(), "approval");
    let shown = lab.run(&["approvals", "show", &id]).stdout;
    for part in [
        "  allow  runs ls\n",
        "  ask    runs touch made\n",
        "  ask    writes out.txt\n",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let whole = lab.run(&["approvals", "show", &id, "--json"]).json();
    let parts = whole["permissions"].as_array().unwrap();
    let runs = parts.iter().filter(|part| part["kind"] == "run");
    let verdicts: Vec<_> = runs.map(|part| text(part, "verdict")).collect();
    assert_eq!(verdicts, ["allow", "ask"], "{whole}");
}

#[test]
fn a_second_terminal_decides_for_a_server_that_waits() {
    for (word, status, count) in [("approve", "ok", 1), ("deny", "denied", 0)] {
        let lab = Lab::new();
        let server = Server::start(&lab, &[]);
        let asker = call_in_background(&server, "write_file", &append());
        let id = text(&only_one(&server), "id");
        let listed = lab.run(&["approvals", "list", "--json"]).json();
        assert_eq!(listed[0]["id"], json!(id));
        let ran = lab.run(&["approvals", word, &id]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let outcome = asker.join().unwrap().unwrap().json();
        assert_eq!(outcome["status"], status, "{outcome}");
        assert_eq!(lines(&lab.work().join("log.txt")), count);
        assert_eq!(lab.run(&["approvals", "approve", &id]).code, 2);
    }
}

#[test]
fn a_command_without_a_terminal_ends_suspended_and_is_gone_on_with() {
    let lab = Lab::new();
    let arguments = append().to_string();
    let call = ["call", "write_file", "--args", &arguments, "--json"];
    let log = lab.work().join("log.txt");
    let asked = lab.run(&call);
    assert_eq!(asked.code, 4, "{}", asked.stderr);
    let (id, run) = (text(&asked.json(), "approval"), text(&asked.json(), "run"));
    let listed = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "suspended");
    // Without a decision there is nothing to resume.
    assert_eq!(lab.run(&["runs", "resume", &run]).code, 4);
    let shown = lab.run(&["approvals", "show", &id]);
    assert!(shown.stdout.contains("+line"), "{}", shown.stdout);
    for (edit, code, says) in [
        (r#"{"path":"log.txt"}"#, 2, "content"),
        (r#"{"path":"../x","content":""}"#, 3, "leaves"),
        (r#"{"path":".git/config","content":""}"#, 3, "denies"),
    ] {
        let ran = lab.run(&["approvals", "approve", &id, "--edit", edit]);
        assert_eq!(ran.code, code, "{edit}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{edit}: {}", ran.stderr);
    }
    let approved = lab.run(&["approvals", "approve", &id[..12], "--json"]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    assert_eq!(approved.json()["call"], "call-1");
    assert_eq!(lines(&log), 1);
    assert_eq!(lab.run(&["approvals", "deny", &id]).code, 2);
    assert_eq!(lab.run(&["runs", "resume", &run]).code, 2);
    // The repeated call returns the outcome, once; the next one asks again.
    assert_eq!(lab.run(&call).json()["status"], "ok");
    assert_eq!(lines(&log), 1);
    let denied = text(&lab.run(&call).json(), "approval");
    let ran = lab.run(&["approvals", "deny", &denied, "--message", "no"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = lab.run(&["approvals", "show", &denied]).stdout;
    assert!(shown.trim_end().ends_with("(command line): no"), "{shown}");
    assert_eq!(lines(&log), 1);
    for run in lab
        .run(&["runs", "list", "--json"])
        .json()
        .as_array()
        .unwrap()
    {
        assert_eq!(run["state"], "closed", "{run}");
    }
}

#[test]
fn of_two_hafts_that_hear_of_a_decision_one_runs_the_call() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    for count in 1..=5 {
        let content = format!("line {count}\n");
        let arguments =
            json!({"path": "log.txt", "content": content, "mode": "append"}).to_string();
        let asked = lab.run(&["call", "write_file", "--args", &arguments, "--json"]);
        let id = text(&asked.json(), "approval");
        // The server follows the decision, too; the second process finds the run locked.
        let ran = lab.run(&["approvals", "approve", &id, "--json"]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.json()["status"], "ok", "{}", ran.stdout);
        assert_eq!(lines(&lab.work().join("log.txt")), count);
    }
    drop(server);
}

#[test]
fn waiting_is_bounded_and_its_end_is_what_settings_say() {
    let arguments = append().to_string();
    let call = ["call", "write_file", "--args", &arguments, "--wait=1"];
    let deny = ["-c", "policy.on_approval_timeout=deny"];
    for (more, code) in [(&[][..], 4), (&deny, 3)] {
        let lab = Lab::new();
        let ran = lab.run(&[&call, more].concat());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(!lab.work().join("log.txt").exists());
    }
}

#[test]
fn the_same_request_is_asked_once_and_answers_all_who_make_it() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let askers = [(); 3].map(|()| call_in_background(&server, "write_file", &append()));
    let id = text(&only_one(&server), "id");
    // slow on purpose: all calls must have arrived, not just the first, and nothing outside shows that one has joined a request.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(waiting(&server).len(), 1);
    assert_eq!(decide(&server, &id, "approve", &json!({})).status, 200);
    for asker in askers {
        let outcome = asker.join().unwrap().unwrap().json();
        assert_eq!(outcome["status"], "ok", "{outcome}");
    }
    assert_eq!(lines(&lab.work().join("log.txt")), 1);
    // Once it has run, the same call asks again; after a denial it does not.
    let asker = call_in_background(&server, "write_file", &append());
    let second = text(&only_one(&server), "id");
    assert_ne!(second, id);
    decide(&server, &second, "deny", &json!({"message": "enough"}));
    assert_eq!(asker.join().unwrap().unwrap().json()["status"], "denied");
    let asker = call_in_background(&server, "write_file", &append());
    let outcome = asker.join().unwrap().unwrap().json();
    assert_eq!(outcome["status"], "denied", "{outcome}");
    assert_eq!(waiting(&server).len(), 0);
}

#[test]
fn a_session_and_always_hold_for_what_was_seen_and_no_wider() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let asker = call_in_background(&server, "write_file", &append());
    let id = text(&only_one(&server), "id");
    let scope = json!({"scope": "session"});
    assert_eq!(decide(&server, &id, "approve", &scope).status, 200);
    asker.join().unwrap().unwrap();
    let outcome = call_in_background(&server, "write_file", &append())
        .join()
        .unwrap();
    assert_eq!(outcome.unwrap().json()["status"], "ok");
    let other = json!({"path": "other.txt", "content": "x"});
    let asker = call_in_background(&server, "write_file", &other);
    let id = text(&only_one(&server), "id");
    let rule = format!("/api/v1/approvals/{id}/rule?rule=Edit(%2F**)");
    let tried = server.ask(&get(&rule, Some(&server.operator))).json();
    assert_eq!(
        (&tried["ok"], &tried["covers"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(tried["matched"].as_array().unwrap().len(), 2, "{tried}");
    for (rule, status) in [("Edit(", 422), ("a\nb", 422)] {
        let body = json!({"scope": "always", "rule": rule});
        assert_eq!(
            decide(&server, &id, "approve", &body).status,
            status,
            "{rule}"
        );
    }
    let always = json!({"scope": "always"});
    let reply = decide(&server, &id, "approve", &always);
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.json()["decision"]["rule"], "Edit(/other.txt)");
    asker.join().unwrap().unwrap();
    drop(server);
    // It holds permanently, only for this file in this folder.
    let other = other.to_string();
    let call = |arguments: &str| lab.run(&["call", "write_file", "--args", arguments]).code;
    assert_eq!(call(&other), 0);
    assert_eq!(call(r#"{"path":"third.txt","content":""}"#), 4);
    let shown = lab.run(&["policy", "show"]).stdout;
    assert!(
        shown.contains("Edit(/other.txt)") && shown.contains("always"),
        "{shown}"
    );
}

#[test]
fn several_are_decided_at_once_each_by_its_own_choice() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let askers: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            call_in_background(
                &server,
                "write_file",
                &json!({"path": name, "content": "x"}),
            )
        })
        .collect();
    let all = wait("three requests", || {
        Some(waiting(&server)).filter(|all| all.len() == 3)
    });
    let decisions: Vec<Value> = all
        .iter()
        .map(|item| {
            let keep = item["fact"]["text"] != "b";
            json!({"id": item["id"], "decision": if keep { "approve" } else { "deny" }})
        })
        .chain([json!({"id": "ap-none", "decision": "approve"})])
        .collect();
    let body = json!({ "decisions": decisions }).to_string();
    let reply = server.ask(&post("/api/v1/approvals/batch", &server.operator, &body));
    let results = reply.json()["results"].as_array().unwrap().clone();
    let ok: Vec<_> = results.iter().map(|result| result["ok"] == true).collect();
    assert_eq!(ok, [true, true, true, false], "{}", reply.body);
    for asker in askers {
        asker.join().unwrap().unwrap();
    }
    let made = ["a", "b", "c"].map(|name| lab.work().join(name).exists());
    assert_eq!(made, [true, false, true]);
}

#[test]
fn a_chain_waits_with_its_call_and_goes_on_by_its_journal() {
    let script = "n = len(tools.list_files().data['entries'])\n\
         tools.write_file(path='log.txt', content='one\\n', mode='append')\n\
         tools.write_file(path='log.txt', content='two\\n', mode='append')\n\
         print('done', n)\n";
    let lab = Lab::new();
    lab.file("script.py", script);
    let suspended = lab.run(&["chain", "script.py", "--json"]);
    assert_eq!(
        suspended.code, 4,
        "{}{}",
        suspended.stdout, suspended.stderr
    );
    let run = text(&suspended.json(), "run");
    let first = text(&suspended.json(), "approval");
    let ran = lab.run(&["approvals", "approve", &first, "--json"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let log = lab.work().join("log.txt");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\n");
    let second = text(&ran.json(), "approval");
    assert_ne!(first, second);
    // The file is as the first half of the script left it.
    let ran = lab.run(&["approvals", "approve", &second, "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let outcome = ran.json();
    assert_eq!(outcome["content"][0]["text"], "done 1\n", "{outcome}");
    assert_eq!(outcome["run"], json!(run));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\n");
    assert_eq!(lab.run(&["runs", "resume", &run]).code, 2);
    assert_eq!(lab.run(&["runs", "verify", &run]).code, 0);
}

#[test]
fn a_served_chain_that_was_killed_while_it_waited_goes_on_after_the_decision() {
    let lab = Lab::new();
    let first = Server::start(&lab, &[]);
    let code = "tools.write_file(path='log.txt', content='one\\n', mode='append')\nprint('done')";
    let asker = call_in_background(&first, "tool_chain", &json!({ "code": code }));
    let item = only_one(&first);
    assert_eq!(item["parent"], "call-1", "{item}");
    drop(first);
    assert!(asker.join().unwrap().is_none());
    let server = Server::start(&lab, &[]);
    let id = text(&item, "id");
    assert_eq!(decide(&server, &id, "approve", &json!({})).status, 200);
    let entry = wait("the chain's end", || {
        let entry = show(&server, &id);
        (entry["outcome"]["tool"] == "tool_chain").then_some(entry)
    });
    assert_eq!(entry["outcome"]["content"][0]["text"], "done\n", "{entry}");
    assert_eq!(lines(&lab.work().join("log.txt")), 1);
}

#[test]
fn scripts_that_wait_too_long_for_their_server_go_on_in_it_each_by_itself() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["-c", "chain.approval_timeout_s=1"]);
    let script = |name: &str| {
        let code = format!("tools.write_file(path='{name}', content='x')\nprint('{name} done')");
        call_in_background(&server, "tool_chain", &json!({ "code": code })).join()
    };
    let mut ids = Vec::new();
    for name in ["a.txt", "b.txt"] {
        let outcome = script(name).unwrap().unwrap().json();
        assert_eq!(outcome["status"], "suspended", "{outcome}");
        ids.push(text(&outcome, "approval"));
    }
    // One that does not wait, in the same run, does not affect those.
    let code = json!({"code": "print(len(tools.list_files().data['entries']))"});
    let outcome = call_in_background(&server, "tool_chain", &code)
        .join()
        .unwrap()
        .unwrap()
        .json();
    assert_eq!(outcome["content"][0]["text"], "0\n", "{outcome}");
    for (id, name) in ids.iter().zip(["a.txt", "b.txt"]) {
        assert_eq!(decide(&server, id, "approve", &json!({})).status, 200);
        let entry = wait("the script's end", || {
            let entry = show(&server, id);
            (entry["outcome"]["tool"] == "tool_chain").then_some(entry)
        });
        let said = format!("{name} done\n");
        assert_eq!(
            entry["outcome"]["content"][0]["text"],
            json!(said),
            "{entry}"
        );
        assert!(lab.work().join(name).exists());
    }
}

#[test]
fn questions_wait_in_the_same_inbox_and_their_answers_must_fit() {
    let arguments = json!({
        "title": "Which way?",
        "questions": [
            {"id": "way", "type": "single", "text": "left or right", "options": ["left", "right"]},
            {"id": "sure", "type": "confirm", "text": "sure?", "default": true},
            {"id": "why", "type": "text", "text": "why?"},
        ],
    });
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let asker = call_in_background(&server, "ask_user", &arguments);
    let item = only_one(&server);
    assert_eq!(
        (&item["kind"], &item["fact"]["text"]),
        (&json!("question"), &json!("Which way?"))
    );
    let id = text(&item, "id");
    for (word, body, status) in [
        ("approve", json!({}), 422),
        ("answer", json!({"answers": {"way": "up"}}), 422),
        ("answer", json!({"answers": {"nope": 1}}), 422),
        ("answer", json!({"answers": {"way": "left"}}), 200),
        ("answer", json!({"answers": {"way": "right"}}), 409),
    ] {
        assert_eq!(
            decide(&server, &id, word, &body).status,
            status,
            "{word} {body}"
        );
    }
    let outcome = asker.join().unwrap().unwrap().json();
    let data = json!({"answers": {"sure": true, "way": "left"}, "unanswered": ["why"]});
    assert_eq!(outcome["data"], data, "{outcome}");
    // Without a terminal the question is stored and the command ends.
    let text_arguments = arguments.to_string();
    let ran = lab.run(&["call", "ask_user", "--args", &text_arguments, "--json"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let id = text(&ran.json(), "approval");
    let answers = r#"{"way":"right","why":"it is shorter"}"#;
    let ran = lab.run(&["approvals", "answer", &id, "--answers", answers, "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let data = json!({"answers": {"sure": true, "way": "right", "why": "it is shorter"}});
    assert_eq!(ran.json()["data"], data);
    // No answer in time: the result is the given answers, which are only the defaults.
    let mut short = arguments;
    short["wait_s"] = json!(1);
    let outcome = call_in_background(&server, "ask_user", &short)
        .join()
        .unwrap()
        .unwrap()
        .json();
    assert_eq!(
        outcome["data"],
        json!({"answers": {"sure": true}, "unanswered": ["way", "why"]}),
        "{outcome}"
    );
}

#[test]
fn a_question_waits_no_longer_than_a_call_that_needs_approval() {
    let lab = Lab::new();
    let question = json!({"title": "Which way?", "wait_s": 300, "questions": [
        {"id": "way", "type": "single", "text": "Left or right?", "options": ["left", "right"]}]});
    let call = [
        "call",
        "ask_user",
        "--args",
        &question.to_string(),
        "--json",
    ];
    let limit = ["--wait", "-c", "limits.approval_timeout_s=1"];
    for wait in [&["--wait=1"][..], &limit] {
        let ran = lab.run(&[&call, wait].concat());
        assert_eq!(ran.code, 4, "{wait:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.json()["status"], "suspended", "{wait:?}");
    }
}

#[test]
fn a_server_that_is_told_to_stop_leaves_what_waits() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let asker = call_in_background(&server, "write_file", &append());
    let id = text(&only_one(&server), "id");
    let ran = server.end(rustix::process::Signal::TERM);
    assert_eq!((ran.code, ran.stderr.contains("panicked")), (0, false));
    drop(asker);
    let listed = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "suspended", "{listed}");
    assert_eq!(lab.run(&["approvals", "approve", &id]).code, 0);
    assert_eq!(lines(&lab.work().join("log.txt")), 1);
}

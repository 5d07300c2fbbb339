//! Connections of commands that are held until a user decides, with real processes: what is asked, and the effect of an answer, even
//! a late one.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, ended};
use crate::serve::Server;
use crate::signals::jailed;

/// A server on this machine, and how often it was connected to.
struct Page {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Page {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Returns the arguments of a command that requests a page of this machine, and then runs `rest`.
fn arguments(port: u16, rest: &str) -> String {
    let place = format!("127.0.0.1:{port}");
    let get = format!("GET http://{place}/ HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n");
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/3128; printf '{get}' >&3; {rest}");
    json!({ "argv": ["bash", "-c", line], "timeout_s": 120 }).to_string()
}

const READ: &str = "cat <&3";
/// Continues until told otherwise, from then on without an answer.
const UNTIL_TOLD: &str = "while [ ! -e go ]; do sleep 0.05; done";

/// Makes a call that waits for decisions.
fn call(lab: &Lab, arguments: &str, more: &[&str]) -> Child {
    let words = [
        "call",
        "run_command",
        "--args",
        arguments,
        "--json",
        "--wait=120",
    ];
    lab.command(&[&words[..], more].concat()).spawn().unwrap()
}

fn pending(lab: &Lab) -> Vec<Value> {
    let listed = lab.run(&["approvals", "list", "--json"]).json();
    let listed = listed.as_array().unwrap().iter();
    let pending = listed.filter(|request| request["status"] == "pending");
    pending.cloned().collect()
}

/// Waits for a request and returns it.
fn request(lab: &Lab) -> Value {
    let found = wait("a request", || pending(lab).pop());
    let id = found["id"].as_str().unwrap();
    lab.run(&["approvals", "show", id, "--json"]).json()
}

fn approve_always(lab: &Lab, request: &Value) -> crate::harness::Ran {
    let id = request["id"].as_str().unwrap();
    lab.run(&["approvals", "approve", id, "--yes", "--scope", "always"])
}

fn kept_rules(lab: &Lab) -> Vec<String> {
    let rules = lab.run(&["policy", "rules", "--json"]).json();
    let rules = rules.as_array().unwrap().iter();
    rules
        .map(|rule| rule["rule"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_server_of_this_machine_is_reached_when_a_person_agrees_and_asked_about_once() {
    let (lab, page) = (Lab::new(), Page::new());
    if !jailed(&lab) {
        return;
    }
    let arguments = arguments(page.port, READ);
    let running = call(&lab, &arguments, &[]);
    let request = request(&lab);
    let rule = format!("Network(127.0.0.1:{})", page.port);
    assert_eq!(request["tool"], "connect");
    assert_eq!(request["risk"], "critical");
    assert_eq!(request["suggested"], json!([rule]));
    assert!(request["reason"].as_str().unwrap().contains("private"));
    let shown: Value = serde_json::from_str(request["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&shown["program"], &shown["port"]),
        (&json!("bash"), &json!(page.port))
    );
    assert_eq!(page.requests(), 0);
    let ran = approve_always(&lab, &request);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let said = ended(running).json();
    assert!(
        said["data"]["stdout"].as_str().unwrap().ends_with("hello"),
        "{said}"
    );
    let place = format!("127.0.0.1:{}", page.port);
    assert_eq!(said["data"]["network_reached"], json!([place]));
    assert_eq!(kept_rules(&lab), [rule]);
    let again = ended(call(&lab, &arguments, &[])).json();
    assert_eq!(again["status"], "ok", "{again}");
    assert_eq!(pending(&lab), Vec::<Value>::new());
    assert_eq!(page.requests(), 2);
}

#[test]
fn no_command_is_offered_the_console_of_haft() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let server = Server::start(&lab, &[]);
    let port = server.address.rsplit_once(':').unwrap().1.parse().unwrap();
    let allow = format!("policy.allow=[\"Network(127.0.0.1:{port})\"]");
    for more in [&[][..], &["-c", &allow]] {
        let said = ended(call(&lab, &arguments(port, READ), more)).json();
        let out = said["data"]["stdout"].as_str().unwrap();
        assert!(out.starts_with("HTTP/1.1 403 Forbidden"), "{said}");
        assert!(out.contains("haft itself listens"), "{said}");
    }
    server.end(Signal::TERM);
    // The port now belongs to another program.
    let said = lab.run(&[
        "call",
        "run_command",
        "--args",
        &arguments(port, READ),
        "--json",
    ]);
    assert!(
        !said.stdout.contains("haft itself listens"),
        "{}",
        said.stdout
    );
}

#[test]
fn an_answer_after_the_command_ended_is_refused_and_connects_nothing() {
    let (lab, page) = (Lab::new(), Page::new());
    if !jailed(&lab) {
        return;
    }
    let running = call(
        &lab,
        &arguments(page.port, UNTIL_TOLD),
        &["-c", "sandbox.changes=direct", "--profile", "trusted"],
    );
    let request = request(&lab);
    lab.file("go", "");
    let said = ended(running).json();
    assert_eq!(said["status"], "ok", "{said}");
    assert_eq!(pending(&lab), Vec::<Value>::new());
    let ran = approve_always(&lab, &request);
    assert_ne!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(page.requests(), 0);
    assert_eq!(kept_rules(&lab), Vec::<String>::new());
}

#[test]
fn a_request_of_a_call_that_is_ended_leaves_the_inbox() {
    let (lab, page) = (Lab::new(), Page::new());
    if !jailed(&lab) {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let running = call(&lab, &arguments(page.port, READ), &[]);
        request(&lab);
        kill_process(Pid::from_child(&running), signal).unwrap();
        let ran = ended(running);
        assert_ne!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(pending(&lab), Vec::<Value>::new(), "{signal:?}");
    }
    assert_eq!(page.requests(), 0);
}

#[test]
fn a_rule_that_is_chosen_after_haft_was_killed_is_kept_and_the_answer_says_what_it_did() {
    let (lab, page) = (Lab::new(), Page::new());
    if !jailed(&lab) {
        return;
    }
    let arguments = arguments(page.port, READ);
    let running = call(&lab, &arguments, &[]);
    let request = request(&lab);
    kill_process(Pid::from_child(&running), Signal::KILL).unwrap();
    ended(running);
    let ran = approve_always(&lab, &request);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("has ended: it made no connection"), "{said}");
    assert_eq!(page.requests(), 0);
    assert_eq!(
        kept_rules(&lab),
        [format!("Network(127.0.0.1:{})", page.port)]
    );
    assert_eq!(pending(&lab), Vec::<Value>::new());
    let again = ended(call(&lab, &arguments, &[])).json();
    assert_eq!(again["status"], "ok", "{again}");
    assert_eq!(page.requests(), 1);
}

#[test]
fn changes_are_shown_with_what_the_command_connected_to() {
    let (lab, page) = (Lab::new(), Page::new());
    if !jailed(&lab) {
        return;
    }
    let arguments = arguments(page.port, "cat <&3 > made.txt");
    let running = call(&lab, &arguments, &[]);
    let connection = request(&lab);
    assert_eq!(approve_always(&lab, &connection).code, 0);
    let changes = wait("the changes", || {
        pending(&lab)
            .into_iter()
            .find(|one| one["tool"] == "apply_changes")
    });
    let id = changes["id"].as_str().unwrap();
    let shown = lab.run(&["approvals", "show", id]).stdout;
    let says = format!("connected to 127.0.0.1:{}", page.port);
    assert!(shown.contains(&says), "{shown}");
    assert_eq!(lab.run(&["approvals", "approve", id, "--yes"]).code, 0);
    assert_eq!(ended(running).json()["status"], "ok");
    assert!(lab.work().join("made.txt").exists());
}

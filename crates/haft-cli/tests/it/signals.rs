//! Signals during a call: it is recorded as cancelled, and its run is sealed.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, ended};
use crate::serve::{Server, exchange, hello, tool_call};

/// Returns whether commands can run here; prints a message if not.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn jailed(lab: &Lab) -> bool {
    let report = lab.run(&["doctor", "--json"]).json();
    let strength = report["sandbox"]["strength"].as_str().unwrap();
    let enough = matches!(strength, "full" | "no-proc");
    if !enough {
        eprintln!("SKIPPED: the jail's strength here is {strength}");
    }
    enough
}

/// Returns whether haft leaves this signal ignored: it is here, as below `nohup` or in the background of a script, and is none of the two
/// that haft always hears.
pub(crate) fn stays_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    ignored >> (signal.as_raw() - 1) & 1 == 1 && ![Signal::INT, Signal::TERM].contains(&signal)
}

/// Waits until the command of the test has created the file `started`, in the workspace or on its copy.
pub(crate) fn started(lab: &Lab) {
    wait("the command to start", || {
        let runs = fs::read_dir(lab.home().join("runs")).into_iter().flatten();
        let views = runs.flatten().map(|run| run.path().join("changes/views"));
        let views = views.flat_map(|views| fs::read_dir(views).into_iter().flatten());
        let mut copies = views.flatten().map(|view| view.path().join("upper"));
        let is_in = |folder: &Path| folder.join("started").exists();
        (is_in(&lab.work()) || copies.any(|copy| is_in(&copy))).then_some(())
    });
}

/// Checks the only run with a call: closed, sound, its call cancelled.
fn cancelled_and_sealed(lab: &Lab) {
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(
        (&runs[0]["state"], &runs[0]["calls"]),
        (&json!("closed"), &json!(1))
    );
    let run = runs[0]["run"].as_str().unwrap();
    let shown = lab.run(&["runs", "show", run, "--json"]).json();
    let events = shown["events"].as_array().unwrap();
    let ends: Vec<&Value> = events
        .iter()
        .filter(|e| e["type"] == "call_ended")
        .collect();
    assert_eq!(ends[0]["status"], "cancelled", "{ends:?}");
    let verified = lab.run(&["runs", "verify", run, "--json"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
}

/// Commands run without asking.
pub(crate) const COMMANDS: [&str; 2] = ["--profile", "trusted"];

fn sleeper() -> Value {
    json!({"argv": ["sh", "-c", "touch started; exec sleep 60"], "timeout_s": 60})
}

#[test]
fn sigterm_during_a_call_records_it_as_cancelled() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let server = Server::start(&lab, &COMMANDS);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let body = json!({"tool": "run_command", "arguments": sleeper()}).to_string();
    let head = format!(
        "POST /api/v1/calls HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        server.call,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    started(&lab);
    let ran = server.end(Signal::TERM);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"status\":\"cancelled\""), "{answer}");
    cancelled_and_sealed(&lab);
}

#[test]
fn sigterm_during_a_call_over_stdio_records_it_as_cancelled() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let mut args = vec!["serve", "--stdio"];
    args.extend(COMMANDS);
    let mut child = lab.command(&args).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    exchange(&mut child, &mut stdout, &hello());
    let call = tool_call(2, "run_command", &sleeper());
    writeln!(child.stdin.as_mut().unwrap(), "{call}").unwrap();
    started(&lab);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    cancelled_and_sealed(&lab);
}

#[test]
fn ctrl_c_during_haft_call_is_130_and_recorded() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let arguments = sleeper().to_string();
    let mut args = vec!["call", "run_command", "--json", "--args", &arguments];
    args.extend(COMMANDS);
    let child = lab.command(&args).spawn().unwrap();
    started(&lab);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert_eq!(ran.json()["status"], "cancelled");
    cancelled_and_sealed(&lab);
}

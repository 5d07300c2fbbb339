//! What a command printed reaches every reader, however its call ended and whoever made it (V1, V2).

use std::io::BufReader;
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use crate::agent_run::{calls, run_json, script};
use crate::harness::{Lab, ended};
use crate::serve::{exchange, hello, tool_call};
use crate::signals::jailed;

/// A command that fails and prints on both streams.
const FAILS: &str = "echo '1 failed: adds'; echo 'expected 4, got 5' >&2; exit 3";
const SAYS: [&str; 2] = ["1 failed: adds", "expected 4, got 5"];
const TRUSTED: [&str; 2] = ["--profile", "trusted"];
const ASKED: [&str; 4] = [
    "-c",
    "policy.ask=[\"Bash\"]",
    "-c",
    "limits.approval_timeout_s=1",
];
/// Asks about what a command changed, after it ran.
const REVIEWED: [&str; 4] = [
    "-c",
    "sandbox.changes=review",
    "-c",
    "limits.approval_timeout_s=1",
];

/// A client of `haft serve --stdio`.
struct Client(Child, BufReader<ChildStdout>);

impl Client {
    fn new(lab: &Lab, settings: &[&str]) -> Self {
        let args = [&["serve", "--stdio"][..], settings].concat();
        let mut child = lab.command(&args).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        exchange(&mut child, &mut stdout, &hello());
        Self(child, stdout)
    }

    /// Returns the text of the result, which is all that many clients show their model, and whether it is an error.
    fn call(&mut self, arguments: &Value) -> (String, bool) {
        let call = tool_call(7, "run_command", arguments);
        let answer = exchange(&mut self.0, &mut self.1, &call);
        let result = &answer["result"];
        let blocks = result["content"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        (texts.join("\n"), result["isError"] == true)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        drop(self.1);
        ended(self.0);
    }
}

fn has_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

fn pending(lab: &Lab) -> String {
    let waits = lab.run(&["approvals", "list", "--json"]).json();
    waits[0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{waits}"))
        .to_owned()
}

#[test]
fn an_mcp_client_reads_what_a_command_printed_that_failed_or_took_too_long() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let mut client = Client::new(&lab, &TRUSTED);
    let (text, is_error) = client.call(&json!({"command": FAILS}));
    assert!(is_error, "{text}");
    assert!(text.starts_with("failed: exit code 3 after "), "{text}");
    let expect = "\n--- stdout ---\n1 failed: adds\n--- stderr ---\nexpected 4, got 5\n";
    assert!(text.ends_with(expect), "{text}");
    let late = json!({"command": "echo begun; echo so far >&2; sleep 600", "timeout_s": 1});
    let (text, is_error) = client.call(&late);
    assert!(is_error && text.starts_with("timeout: "), "{text}");
    has_all(
        &text,
        &[
            "\n--- stdout ---\nbegun\n",
            "so far",
            "--- note ---\nraise timeout_s",
        ],
    );
    let (text, is_error) = client.call(&json!({"command": "echo fine"}));
    assert_eq!((text.as_str(), is_error), ("fine\n", false));
    client.end();
}

#[test]
fn a_command_whose_changes_are_denied_late_still_says_what_it_printed() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let arguments = json!({"command": "echo '2 passed'; echo made > made.txt"});
    let mut client = Client::new(&lab, &REVIEWED);
    let (text, _) = client.call(&arguments);
    has_all(&text, &["suspended: ", "need approval"]);
    lab.run(&["approvals", "deny", &pending(&lab)]);
    let (text, is_error) = client.call(&arguments);
    assert!(is_error && text.starts_with("denied: "), "{text}");
    has_all(&text, &["--- stdout ---\n2 passed\n", "made.txt"]);
    client.end();
    assert!(!lab.work().join("made.txt").exists());
}

/// V2: the outcome of a call that was approved elsewhere is the same for whoever asks, whenever.
#[test]
fn a_command_that_was_approved_elsewhere_says_what_it_printed_to_every_reader() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let arguments = json!({"command": FAILS});
    let words = arguments.to_string();
    let note = "Nothing ran now.";
    // A new client, after the first is gone.
    let mut first = Client::new(&lab, &ASKED);
    let (text, _) = first.call(&arguments);
    has_all(&text, &["suspended: ", "needs approval"]);
    first.end();
    let approve = lab.run(&[&["approvals", "approve", &pending(&lab)][..], &ASKED].concat());
    has_all(&(approve.stdout + &approve.stderr), &SAYS);
    let mut second = Client::new(&lab, &ASKED);
    let (text, is_error) = second.call(&arguments);
    assert!(
        is_error && text.starts_with("failed: exit code 3"),
        "{text}"
    );
    has_all(&text, &[SAYS[0], SAYS[1], "--- note ---\n", note]);
    second.end();
    // The same command again, without a terminal.
    let call = [&["call", "run_command", "--args", &words][..], &ASKED].concat();
    assert_eq!(lab.run(&call).code, 4);
    let approve = lab.run(&[&["approvals", "approve", &pending(&lab)][..], &ASKED].concat());
    has_all(&(approve.stdout + &approve.stderr), &SAYS);
    let again = lab.run(&call);
    assert_eq!(again.stdout, "1 failed: adds\n", "{}", again.stderr);
    has_all(&again.stderr, &[SAYS[1], note, "exit code 3"]);
    let shown = lab.run(&["runs", "list", "--json"]).json();
    let run = shown[0]["run"].as_str().unwrap().to_owned();
    has_all(&lab.run(&["runs", "show", &run]).stdout, &SAYS);
}

#[test]
fn the_agent_reads_what_a_command_printed_that_failed_or_was_approved_elsewhere() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let call = json!({"command": FAILS})
        .to_string()
        .replace("\":", "\" =")
        .replace("{\"command\"", "{ command")
        .replace('}', " }");
    let call = format!("{{ id = \"c\", tool = \"run_command\", arguments = {call} }}");
    let turns = format!(
        "{}[[turns]]\nexpect.results = [{{ call = \"c\", contains = \"{}\", error = true }}, {{ call = \"c\", contains = \"{}\" }}]\n\
         say = [{{ text = \"I see.\" }}]\n",
        calls(&[&call]),
        SAYS[0],
        SAYS[1],
    );
    let model = script(&lab, &turns);
    let args = [&["run", "test it", "--model", &model][..], &TRUSTED].concat();
    let ran = lab.run(&args);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "I see.\n"),
        "{}",
        ran.stderr
    );
    // The cards show what was printed, too.
    has_all(&ran.stderr, &SAYS);
    let args = [&["test it", "--model", &model][..], &ASKED].concat();
    let (ran, lines) = run_json(&lab, &args);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let run = lines.last().unwrap()["run"].as_str().unwrap().to_owned();
    let approve = lab.run(&[&["approvals", "approve", &pending(&lab)][..], &ASKED].concat());
    assert!(matches!(approve.code, 0 | 1), "{}", approve.stderr);
    let args = [&["--resume", &run, "--model", &model][..], &ASKED].concat();
    let (ran, lines) = run_json(&lab, &args);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(lines.last().unwrap()["text"], "I see.");
}

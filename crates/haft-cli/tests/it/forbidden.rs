//! A machine that forbids user namespaces, as Ubuntu 24.04 and containers do: the cause is named once, the recipe is in `haft doctor` alone,
//! and every command that needs the jail leads there in one line.

use std::io::BufReader;
use std::process::Child;

use serde_json::json;

use crate::harness::{Lab, Ran, ended};
use crate::serve::{exchange, hello, tool_call};

/// The cause on such a machine.
const CAUSE: &str = "their limit user.max_user_namespaces is 0";
/// What a command says that needs the jail.
const SHORT: &str = "the jail needs user namespaces";
/// A part of the recipe.
const RECIPE: &str = "sudo sysctl";

/// Starts the binary where the limit of user namespaces is 0.
fn start(lab: &Lab, args: &[&str]) -> Child {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces || exit 70; exec \"$0\" \"$@\"";
    let mut all = vec!["-Ur", "sh", "-c", script, env!("CARGO_BIN_EXE_haft")];
    all.extend(args);
    lab.program("unshare", &all).spawn().unwrap()
}

/// Calls a command through a server on stdio; returns its answer.
fn served(lab: &Lab) -> String {
    let mut child = start(lab, &["serve", "--stdio", "-c", "approval.mode=deny"]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    exchange(&mut child, &mut stdout, &hello());
    let call = tool_call(2, "run_command", &json!({"command": "echo hello"}));
    let answer = exchange(&mut child, &mut stdout, &call);
    drop(child.stdin.take());
    let ran = ended(child);
    format!("{answer}{}", ran.stderr)
}

/// A model that runs a command and repeats what it is told.
const SCENARIO: &str = r#"
title = "Run one command"

[[turns]]
say = [{ call = { id = "one", tool = "run_command", arguments = { command = "echo hello" } } }]

[[turns]]
say = [{ text = "done" }]
"#;

#[test]
fn where_namespaces_are_forbidden_doctor_has_the_one_recipe_and_commands_lead_there() {
    let lab = Lab::new();
    let doctor = ended(start(&lab, &["doctor"]));
    if doctor.code == 70 || doctor.stderr.starts_with("unshare:") {
        eprintln!("SKIPPED: it takes user namespaces of one's own");
        return;
    }
    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    for part in [CAUSE, RECIPE, "1. ", "2. "] {
        assert_eq!(
            doctor.stdout.matches(part).count(),
            1,
            "{part}: {}",
            doctor.stdout
        );
    }
    let first: Vec<&str> = doctor.stdout.lines().take(5).collect();
    let first = first.join("\n");
    assert!(first.contains(CAUSE) && first.contains(RECIPE), "{first}");

    let scenario = lab.file("one.toml", SCENARIO);
    let model = format!("scripted:{}", scenario.display());
    let ran = |args: &[&str]| -> Ran { ended(start(&lab, args)) };
    let said = |ran: Ran| format!("{}{}", ran.stdout, ran.stderr);
    let called = said(ran(&["call", "run_command", "command=echo hello"]));
    // A user at a terminal is told where to go.
    assert!(called.contains("haft doctor"), "{called}");
    for (what, said, needs_jail) in [
        ("init", said(ran(&["init"])), false),
        ("call", called, true),
        ("exec", said(ran(&["exec", "--", "echo", "hello"])), true),
        (
            "run",
            said(ran(&["run", "say hello", "--model", &model])),
            true,
        ),
        ("serve", served(&lab), true),
    ] {
        for part in [CAUSE, RECIPE, "space left", "AppArmor"] {
            assert!(!said.contains(part), "{what} says {part}: {said}");
        }
        assert_eq!(said.contains(SHORT), needs_jail, "{what}: {said}");
        assert!(said.lines().count() < 15, "{what}: {said}");
    }
}

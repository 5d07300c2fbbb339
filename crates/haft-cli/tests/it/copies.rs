//! Commands on a copy: pending changes are applied once, as shown, through any entry point and after any kind of exit.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Lab;
use crate::once::{Client, SETTINGS, decide, pending};
use crate::signals::jailed;

const CLIENTS: [&str; 5] = ["command", "api", "stdio", "legacy", "modern"];

const LINE: &str = "cat a.txt; echo two >> a.txt";

/// Creates a workspace with a file, in which commands can work on copies.
fn lab() -> Option<Lab> {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let doctor = lab.run(&["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap();
    let changes = checks
        .iter()
        .find(|check| check["name"] == "changes")
        .unwrap();
    assert!(!jailed(&lab) || changes["ok"] == true, "{changes}");
    jailed(&lab).then_some(lab)
}

fn content(lab: &Lab) -> String {
    std::fs::read_to_string(lab.work().join("a.txt")).unwrap()
}

/// Returns the number of copies kept.
fn count_copies(lab: &Lab) -> usize {
    let runs = std::fs::read_dir(lab.home().join("runs"))
        .unwrap()
        .flatten();
    let views = runs.filter_map(|run| std::fs::read_dir(run.path().join("changes/views")).ok());
    views.map(Iterator::count).sum()
}

/// Waits until the last copy is removed: a server that still lives removes it just after it has answered.
fn wait_until_no_copy_is_left(lab: &Lab) {
    let late = Instant::now() + Duration::from_secs(60);
    while count_copies(lab) > 0 {
        assert!(Instant::now() < late, "a copy is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_person_decided_about_is_applied_once_and_told_to_the_call_that_is_made_again() {
    for name in CLIENTS {
        let Some(lab) = lab() else { return };
        let mut client = Client::new(&lab, name);
        let arguments = json!({"command": LINE});
        let first = client.call(&lab, "run_command", &arguments);
        assert_eq!(first.status, "suspended", "{name}: {first:?}");
        assert_eq!(
            (content(&lab).as_str(), count_copies(&lab)),
            ("one\n", 1),
            "{name}"
        );
        // Made again before a decision, it keeps waiting, and nothing runs again.
        let early = client.call(&lab, "run_command", &arguments);
        assert_eq!(early.status, "suspended", "{name}: {early:?}");
        if name != "command" {
            assert_eq!((pending(&lab).len(), count_copies(&lab)), (1, 1), "{name}");
            decide(&lab, "approve");
            assert_eq!(content(&lab), "one\ntwo\n", "{name}");
            let told = client.call(&lab, "run_command", &arguments);
            assert_eq!(told.status, "ok", "{name}: {told:?}");
            let shown = told.whole.to_string();
            assert!(
                shown.contains("one\\n") && shown.contains("a.txt"),
                "{name}: {shown}"
            );
            assert_eq!(content(&lab), "one\ntwo\n", "{name}");
            wait_until_no_copy_is_left(&lab);
        }
        client.end();
    }
}

#[test]
fn a_copy_outlives_its_process_and_what_was_shown_is_applied() {
    for name in ["stdio", "api"] {
        let Some(lab) = lab() else { return };
        let mut client = Client::new(&lab, name);
        let arguments = json!({"command": LINE});
        let first = client.call(&lab, "run_command", &arguments);
        assert_eq!(first.status, "suspended", "{name}: {first:?}");
        client.kill();
        let id = pending(&lab).remove(0);
        let shown = lab.run(&["approvals", "show", &id]).stdout;
        assert!(
            shown.contains("+two") && shown.contains(LINE),
            "{name}: {shown}"
        );
        decide(&lab, "approve");
        assert_eq!(
            (content(&lab).as_str(), count_copies(&lab)),
            ("one\ntwo\n", 0),
            "{name}"
        );
        let runs = lab.run(&["runs", "list", "--json"]).json();
        let runs = runs.as_array().unwrap().iter();
        let changed = runs.map(|run| run["run"].as_str().unwrap()).find(|run| {
            let diff = lab.run(&["runs", "diff", run]);
            diff.stdout.contains("+two")
        });
        let undone = lab.run(&["runs", "undo", changed.unwrap(), "--yes"]);
        assert_eq!(undone.code, 0, "{name}: {}{}", undone.stdout, undone.stderr);
        assert_eq!(content(&lab), "one\n", "{name}");
    }
}

#[test]
fn what_the_person_saved_meanwhile_is_a_conflict_and_stays() {
    let Some(lab) = lab() else { return };
    let mut client = Client::new(&lab, "stdio");
    let first = client.call(&lab, "run_command", &json!({"command": LINE}));
    assert_eq!(first.status, "suspended", "{first:?}");
    client.kill();
    lab.file("a.txt", "own\n");
    let id = pending(&lab).remove(0);
    let ran = lab.run(&[&["approvals", "approve", &id][..], &SETTINGS].concat());
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_ne!(ran.code, 0, "{said}");
    assert!(said.contains("changed after it was shown"), "{said}");
    // The command's version is kept, too.
    assert_eq!(
        (content(&lab).as_str(), count_copies(&lab)),
        ("own\n", 1),
        "{said}"
    );
}

#[test]
fn what_a_person_denies_is_not_applied_and_the_output_is_told() {
    let Some(lab) = lab() else { return };
    let mut client = Client::new(&lab, "stdio");
    let arguments = json!({"command": LINE});
    let first = client.call(&lab, "run_command", &arguments);
    assert_eq!(first.status, "suspended", "{first:?}");
    decide(&lab, "deny");
    let told = client.call(&lab, "run_command", &arguments);
    assert_eq!(told.status, "denied", "{told:?}");
    assert!(told.whole.to_string().contains("one\\n"), "{told:?}");
    assert_eq!(content(&lab), "one\n", "{told:?}");
    wait_until_no_copy_is_left(&lab);
    client.end();
}

#[test]
fn a_script_waits_for_the_decision_about_its_command_and_goes_on() {
    for name in ["stdio", "api"] {
        let Some(lab) = lab() else { return };
        let mut client = Client::new(&lab, name);
        let code = "done = tools.run_command(command='cat a.txt; echo two >> a.txt')\n\
            [change['path'] for change in done.data['changes']]";
        let arguments = json!({"code": code});
        let first = client.call(&lab, "tool_chain", &arguments);
        assert_eq!(first.status, "suspended", "{name}: {first:?}");
        assert_eq!(
            (content(&lab).as_str(), count_copies(&lab)),
            ("one\n", 1),
            "{name}"
        );
        decide(&lab, "approve");
        assert_eq!(content(&lab), "one\ntwo\n", "{name}");
        wait_until_no_copy_is_left(&lab);
        let told = client.call(&lab, "tool_chain", &arguments);
        assert_eq!(
            (told.status.as_str(), &told.value),
            ("ok", &json!(["a.txt"])),
            "{name}: {told:?}"
        );
        client.end();
    }
}

//! What haft says of decisions and suspended calls is what happened: what ran, what was applied, who decided, what waits for whom.

use haft::approval::inbox::RequestEnding;
use serde_json::{Value, json};

use crate::agent_resume::{lab, model, read, suspended};
use crate::agent_run::APPEND;
use crate::agent_withdrawn::end;
use crate::approvals::wait;
use crate::harness::{Lab, Ran, ended};
use crate::signals::jailed;

/// Runs a command in a run of its own.
fn command(lab: &Lab, line: &str, more: &[&str]) -> Ran {
    let arguments = json!({ "command": line }).to_string();
    let call = ["call", "run_command", "--args", &arguments];
    lab.run(&[&call[..], more].concat())
}

/// Returns the only pending request.
fn pending(lab: &Lab) -> Value {
    let all = lab.run(&["approvals", "list", "--json"]).json();
    let [one] = &all.as_array().unwrap()[..] else {
        panic!("{all}");
    };
    one.clone()
}

fn id(request: &Value) -> String {
    request["id"].as_str().unwrap().to_owned()
}

/// Checks that a text has all of these parts, and none of those.
fn check(row: &str, text: &str, has: &[&str], has_not: &[&str]) {
    for part in has {
        assert!(text.contains(part), "{row}: no {part:?} in {text}");
    }
    for part in has_not {
        assert!(!text.contains(part), "{row}: {part:?} in {text}");
    }
}

/// Waits until a process of the test attends the only request, and returns its id.
fn attended(lab: &Lab) -> String {
    wait("the request", || {
        let all = lab.run(&["approvals", "list", "--json"]).json();
        let one = all.as_array().unwrap().first()?;
        (one["attended"] == true).then(|| id(one))
    })
}

const APPROVE: &[&str] = &["approve", "--yes"];
const DENY: &[&str] = &["deny", "--message", "not today"];
const ANSWER: &[&str] = &["answer", "--answers", r#"{"text":"leave it"}"#];
/// What is true of a command whose changes are not applied.
const UNDONE: &str = "the command has run, and its changes were not applied";
const NOT_APPLIED: &str = "1 change was not applied (a.txt: ";

/// A command whose changes are decided.
struct Decided {
    /// How it ends.
    end: &'static str,
    /// Whether its file changes before the decision.
    is_changed: bool,
    decision: &'static [&'static str],
    /// The exit code of the decision, and what it says.
    code: i32,
    says: &'static [&'static str],
    /// The same for the command's call when it is made again.
    again: i32,
    says_again: &'static [&'static str],
}

const DECIDED: [Decided; 5] = [
    Decided {
        end: "exit 0",
        is_changed: false,
        decision: APPROVE,
        code: 0,
        says: &["SAID"],
        again: 0,
        says_again: &["SAID", "approved by"],
    },
    Decided {
        end: "exit 3",
        is_changed: false,
        decision: APPROVE,
        code: 0,
        says: &[
            "SAID",
            "ok apply_changes: applied what was approved (1 change); the command itself: exit code 3",
        ],
        again: 1,
        says_again: &["SAID", "error run_command: exit code 3"],
    },
    Decided {
        end: "exit 0",
        is_changed: false,
        decision: DENY,
        code: 0,
        says: &["said no: not today"],
        again: 3,
        says_again: &["SAID", NOT_APPLIED, "said no: not today", "denied by"],
    },
    Decided {
        end: "exit 0",
        is_changed: false,
        decision: ANSWER,
        code: 0,
        says: &["SAID", "leave it"],
        again: 3,
        says_again: &[
            "SAID",
            NOT_APPLIED,
            "answered in place of the tool: leave it",
        ],
    },
    Decided {
        end: "exit 0",
        is_changed: true,
        decision: APPROVE,
        code: 1,
        says: &[UNDONE],
        again: 1,
        says_again: &["SAID", NOT_APPLIED, UNDONE],
    },
];

#[test]
fn the_changes_of_a_command_when_they_are_decided_read_as_what_became_of_them() {
    if !jailed(&Lab::new()) {
        return;
    }
    for row in DECIDED {
        let name = format!("{} {} {:?}", row.end, row.is_changed, row.decision);
        let lab = Lab::new();
        lab.file("a.txt", "mine\n");
        let line = format!("echo x >> a.txt; echo SAID; {}", row.end);
        assert_eq!(command(&lab, &line, &[]).code, 4, "{name}");
        let request = id(&pending(&lab));
        if row.is_changed {
            lab.file("a.txt", "other\n");
        }
        let decided = lab.run(&[&["approvals"], row.decision, &[&request]].concat());
        let text = decided.stdout + &decided.stderr;
        assert_eq!(decided.code, row.code, "{name}: {text}");
        check(&name, &text, row.says, &["nothing ran"]);
        let expect = match (row.is_changed, row.decision == APPROVE) {
            (true, _) => "other\n",
            (false, true) => "mine\nx\n",
            (false, false) => "mine\n",
        };
        assert_eq!(read(&lab, "a.txt"), expect, "{name}");
        let repeated = command(&lab, &line, &[]);
        let text = repeated.stdout + &repeated.stderr;
        assert_eq!(repeated.code, row.again, "{name}: {text}");
        check(&name, &text, row.says_again, &["nothing ran"]);
        assert_eq!(read(&lab, "a.txt"), expect, "{name}");
    }
}

#[test]
fn a_call_that_is_made_again_before_the_decision_says_what_waits_and_who_decides() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let line = "echo x >> a.txt";
    let write = json!({"path": "b.txt", "content": "x"}).to_string();
    let write = ["call", "write_file", "--args", &write];
    let trusted: &[&str] = &["--profile", "trusted"];
    let rule: &[&str] = &["-c", r#"policy.allow=["Edit(/a.txt)"]"#];
    for settings in [&[][..], trusted, rule] {
        let lab = Lab::new();
        assert_eq!(command(&lab, line, &[]).code, 4);
        let request = id(&pending(&lab));
        let ran = command(&lab, line, settings);
        let text = ran.stdout + &ran.stderr;
        assert_eq!(ran.code, 4, "{settings:?}: {text}");
        let has = [
            "has run on a copy of the workspace; what it changed waits for the user's approval",
            &format!("`haft approvals approve {request}`"),
        ];
        check(&format!("{settings:?}"), &text, &has, &["has not finished"]);
    }
    assert_eq!(lab.run(&write).code, 4);
    let request = id(&pending(&lab));
    let ran = lab.run(&write);
    let has = [
        "the request is pending",
        &format!("`haft approvals approve {request}`"),
    ];
    check(
        "write",
        &(ran.stdout + &ran.stderr),
        &has,
        &["has not finished"],
    );
}

#[test]
fn a_decision_that_does_not_take_effect_is_no_success_and_says_who_decided() {
    let lab = Lab::new();
    let write = json!({"path": "b.txt", "content": "x"}).to_string();
    let ran = lab.run(&["call", "write_file", "--args", &write]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let request = pending(&lab);
    let (request, run) = (id(&request), request["run"].as_str().unwrap());
    // A process that resumes the run under other settings has it.
    let held = std::fs::File::open(lab.home().join("runs").join(run)).unwrap();
    held.lock().unwrap();
    let approving = lab.command(&["approvals", "approve", &request]);
    let approving = { approving }.spawn().unwrap();
    wait("the decision", || {
        let shown = lab.run(&["approvals", "show", &request, "--json"]).json();
        (shown["status"] == "approved").then_some(())
    });
    let by = "the call was made again, and profile trusted allows it now";
    end(&lab, &request, RequestEnding::Void, by);
    let approved = ended(approving);
    assert_eq!(approved.code, 3, "{}{}", approved.stdout, approved.stderr);
    let says = format!("the decision about {request} had no effect: {by}");
    check("approve", &approved.stderr, &[&says], &[]);
    let late = lab.run(&["approvals", "approve", &request]);
    assert_eq!(late.code, 3, "{}{}", late.stdout, late.stderr);
    let says = format!("approval {request} is withdrawn: {by}");
    check("late", &late.stderr, &[&says], &["already decided"]);
}

/// Checks the process that a refusal names, where the file system tells which one has a lock.
fn check_process(refused: &Ran, expect: u32) {
    if refused.stderr.contains("(process ") {
        let says = format!("(process {expect})");
        check("process", &refused.stderr, &[&says], &[]);
    }
}

#[test]
fn a_run_that_is_in_use_says_which_process_has_it_and_what_to_do() {
    let lab = lab();
    let model = model(&lab, APPEND);
    let (run, request) = suspended(&lab, &model);
    let resume = ["run", "--resume", &run, "--model", &model];
    let mut first = lab
        .command(&[&resume[..], &["--wait=60"]].concat())
        .spawn()
        .unwrap();
    assert_eq!(attended(&lab), request);
    let second = lab.run(&resume);
    assert_eq!(second.code, 2, "{}", second.stderr);
    let says = format!("run {run} is already being resumed by another haft process");
    check(
        "resumed",
        &second.stderr,
        &[&says, "resume the run again"],
        &["doctor"],
    );
    check_process(&second, first.id());
    first.kill().unwrap();
    first.wait().unwrap();

    let lab = self::lab();
    let model = self::model(&lab, APPEND);
    let mut first = lab
        .command(&["run", "go", "--wait=60", "--model", &model])
        .spawn()
        .unwrap();
    attended(&lab);
    let run = pending(&lab)["run"].as_str().unwrap().to_owned();
    let second = lab.run(&["run", "--resume", &run, "--model", &model]);
    assert_eq!(second.code, 2, "{}", second.stderr);
    let says = format!("run {run} is still active in the haft process that started it");
    check("started", &second.stderr, &[&says], &["being resumed"]);
    check_process(&second, first.id());
    first.kill().unwrap();
    first.wait().unwrap();
}

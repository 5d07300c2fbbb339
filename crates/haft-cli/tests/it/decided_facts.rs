//! What haft says of decisions and suspended calls is what happened: what ran, what was applied, who decided, what waits for whom.

use haft::approval::inbox::Ending;
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

#[test]
fn the_changes_of_a_command_when_they_are_decided_read_as_what_became_of_them() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let approve: &[&str] = &["approvals", "approve", "--yes"];
    let deny: &[&str] = &["approvals", "deny", "--message", "not today"];
    let undone = "the command has run, and its changes were not applied";
    // How the command ends, who changes its file meanwhile, the decision with its exit code and words, and the exit code and words of
    // the same call made again.
    type Said<'a> = (&'a [&'a str], i32, &'a [&'a str], i32, &'a [&'a str]);
    let rows: [(&str, bool, Said<'_>); 4] = [
        (
            "exit 0",
            false,
            (approve, 0, &["SAID"], 0, &["SAID", "approved by"]),
        ),
        (
            "exit 3",
            false,
            (
                approve,
                0,
                &[
                    "SAID",
                    "ok apply_changes: applied what was approved (1 change)",
                    "exit code 3",
                ],
                1,
                &["SAID", "error run_command: exit code 3"],
            ),
        ),
        (
            "exit 0",
            false,
            (
                deny,
                0,
                &["said no: not today"],
                3,
                &[
                    "SAID",
                    "1 change was not applied (a.txt: ",
                    "said no: not today",
                    "denied by",
                ],
            ),
        ),
        (
            "exit 0",
            true,
            (
                approve,
                1,
                &[undone],
                1,
                &["SAID", "1 change was not applied (a.txt: ", undone],
            ),
        ),
    ];
    for (end, is_changed, (decision, code, says, again, then_says)) in rows {
        let row = format!("{end} {is_changed} {decision:?}");
        let lab = Lab::new();
        lab.file("a.txt", "mine\n");
        let line = format!("echo x >> a.txt; echo SAID; {end}");
        assert_eq!(command(&lab, &line, &[]).code, 4, "{row}");
        let request = id(&pending(&lab));
        if is_changed {
            lab.file("a.txt", "other\n");
        }
        let decided = lab.run(&[decision, &[&request]].concat());
        let text = decided.stdout + &decided.stderr;
        assert_eq!(decided.code, code, "{row}: {text}");
        check(&row, &text, says, &["nothing ran"]);
        let now = if is_changed { "other\n" } else { "mine\n" };
        let added = if decision == approve && !is_changed {
            "x\n"
        } else {
            ""
        };
        assert_eq!(read(&lab, "a.txt"), format!("{now}{added}"), "{row}");
        let repeated = command(&lab, &line, &[]);
        let text = repeated.stdout + &repeated.stderr;
        assert_eq!(repeated.code, again, "{row}: {text}");
        check(&row, &text, then_says, &["nothing ran"]);
        assert_eq!(read(&lab, "a.txt"), format!("{now}{added}"), "{row}");
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
    end(&lab, &request, Ending::Void, by);
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

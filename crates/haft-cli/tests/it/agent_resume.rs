//! `haft run --resume`: a suspended run goes on in itself, however it was decided and however often it is resumed; nothing is asked about
//! or runs twice.

use std::process::Child;

use serde_json::{Value, json};

use crate::agent_run::{APPEND, calls, live, next, of_type, run_json, says, script};
use crate::approvals::{decide, wait};
use crate::harness::{Lab, ended};
use crate::serve::Server;

/// An allowed line before and after the call that is asked about.
pub(crate) fn log(id: &str, text: &str) -> String {
    format!(
        r#"{{ id = "{id}", tool = "write_file", arguments = {{ path = "log.txt", content = "{text}\n", mode = "append" }} }}"#
    )
}

const CHAIN: &str = r#"{ id = "w", tool = "tool_chain", arguments = { code = "tools.write_file(path='log.txt', content='in\\n', mode='append')\ntools.write_file(path='a.txt', content='x\\n', mode='append')\n'ran'" } }"#;

pub(crate) fn lab() -> Lab {
    let lab = Lab::new();
    lab.user_settings(
        "agent.suggest = false\npolicy.allow = [\"Edit(/log.txt)\"]\nchain.approval_timeout_s = 1\n",
    );
    lab
}

/// Returns a model that makes three calls, the second of which is asked about, and answers every prompt.
pub(crate) fn model(lab: &Lab, asked: &str) -> String {
    let turns = [
        calls(&[&log("l", "1"), asked, &log("m", "2")]),
        says("So be it."),
        says("Again."),
        says("Once more."),
    ];
    script(lab, &turns.concat())
}

pub(crate) fn runs(lab: &Lab) -> Vec<Value> {
    let listed = lab.run(&["runs", "list", "--json"]).json();
    listed.as_array().unwrap().clone()
}

/// Checks that there is one run, in this state, with a sound record.
pub(crate) fn one_run(lab: &Lab, run: &str, state: &str, row: &str) {
    let all = runs(lab);
    let found: Vec<(&Value, &Value)> = all.iter().map(|one| (&one["run"], &one["state"])).collect();
    assert_eq!(found, [(&json!(run), &json!(state))], "{row}");
    let verified = lab.run(&["runs", "verify", run]);
    assert_eq!(
        verified.code, 0,
        "{row}: {}{}",
        verified.stdout, verified.stderr
    );
}

pub(crate) fn read(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.work().join(name)).unwrap_or_default()
}

/// Starts the task; returns the run and the request that it waits for.
pub(crate) fn suspended(lab: &Lab, model: &str) -> (String, String) {
    let (ran, lines) = run_json(lab, &["go", "--model", model]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let done = lines.last().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&done["run"]), text(&done["approvals"][0]))
}

/// Resumes the run in a process that waits for the decision.
fn resumer(lab: &Lab, run: &str, model: &str, id: &str) -> Child {
    let args = [
        "run",
        "--resume",
        run,
        "--wait=60",
        "--json",
        "--model",
        model,
    ];
    let child = lab.command(&args).spawn().unwrap();
    wait("a process that waits for the decision", || {
        let shown = lab.run(&["approvals", "show", id, "--json"]).json();
        (shown["attended"] == true || shown["waiting"] == true).then_some(())
    });
    child
}

pub(crate) fn by_command(lab: &Lab, id: &str, how: &[&str]) {
    let decided = lab.run(&[&["approvals", how[0], id], &how[1..]].concat());
    assert!(matches!(decided.code, 0 | 3), "{how:?}: {}", decided.stderr);
}

/// Has a server decide and follow the decision.
pub(crate) fn by_server(lab: &Lab, id: &str, how: &[&str]) {
    let server = Server::start(lab, &[]);
    let mut body = json!({"message": how.get(2)});
    if stops(how) {
        body = json!({"message": how.last(), "stop": true});
    }
    assert_eq!(decide(&server, id, how[0], &body).status, 200, "{how:?}");
    wait("the call", || {
        let shown = lab.run(&["approvals", "show", id, "--json"]).json();
        let outcome = shown.get("outcome");
        outcome.filter(|outcome| outcome.is_object()).map(drop)
    });
    wait("the run", || {
        let state = if stops(how) { "closed" } else { "suspended" };
        (runs(lab)[0]["state"] == state).then_some(())
    });
}

/// Returns whether a decision ends the run.
fn stops(how: &[&str]) -> bool {
    how.contains(&"--stop")
}

/// Decides while a process that resumed the run waits for it.
pub(crate) fn by_resumer(lab: &Lab, [run, model, id]: [&str; 3], how: &[&str]) {
    let child = resumer(lab, run, model, id);
    let other = lab.run(&["run", "--resume", run, "--model", model]);
    assert_eq!(other.code, 2, "{how:?}: {}", other.stderr);
    let says = format!("run {run} is already being resumed by another haft process");
    assert!(other.stderr.contains(&says), "{how:?}: {}", other.stderr);
    by_command(lab, id, how);
    let ran = ended(child);
    let code = if stops(how) { 3 } else { 0 };
    assert_eq!(ran.code, code, "{how:?}: {}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_suspended_run_goes_on_in_itself_whoever_decides_and_however_often_it_is_resumed() {
    let edited = r#"{"path":"a.txt","content":"y\n","mode":"append"}"#;
    let once: &[&str] = &["approve"];
    let always: &[&str] = &["approve", "--scope", "always"];
    let edit: &[&str] = &["approve", "--edit", edited];
    let deny: &[&str] = &["deny", "--message", "not this one"];
    // Who decides, how, the call, and the file afterwards.
    let rows = [
        ("command", once, APPEND, "x\n"),
        ("command", always, APPEND, "x\n"),
        ("command", edit, APPEND, "y\n"),
        ("command", deny, APPEND, ""),
        ("command", once, CHAIN, "x\n"),
        ("server", once, APPEND, "x\n"),
        ("server", deny, APPEND, ""),
        ("server", once, CHAIN, "x\n"),
        ("resumer", once, APPEND, "x\n"),
        ("resumer", deny, APPEND, ""),
    ];
    for (by, how, asked, expect) in rows {
        let row = format!("{by} {how:?} {}", asked.len());
        let lab = lab();
        let model = model(&lab, asked);
        let (run, id) = suspended(&lab, &model);
        one_run(&lab, &run, "suspended", &row);
        match by {
            "command" => by_command(&lab, &id, how),
            "server" => by_server(&lab, &id, how),
            _ => by_resumer(&lab, [&run, &model, &id], how),
        }
        if by != "resumer" {
            one_run(&lab, &run, "suspended", &row);
        }
        for time in 0..3 {
            let (ran, lines) = run_json(&lab, &["--resume", &run, "--model", &model]);
            assert_eq!(ran.code, 0, "{row} {time}: {}{}", ran.stdout, ran.stderr);
            let done = lines.last().unwrap();
            assert_eq!(
                (&done["run"], &done["text"]),
                (&json!(run), &json!("So be it.")),
                "{row}"
            );
            assert!(
                of_type(&lines, "approval").is_empty(),
                "{row}: {}",
                ran.stdout
            );
            one_run(&lab, &run, "closed", &row);
            assert_eq!(read(&lab, "a.txt"), expect, "{row}");
        }
        let chained = if asked == CHAIN { "in\n" } else { "" };
        assert_eq!(read(&lab, "log.txt"), format!("1\n{chained}2\n"), "{row}");
        let folder = lab.home().join("runs").join(&run);
        let kept = std::fs::read_to_string(folder.join("conversation.jsonl")).unwrap();
        assert_eq!(kept.contains("not this one"), how == deny, "{row}");
    }
}

#[test]
fn a_finished_run_has_one_successor_whichever_of_them_is_resumed() {
    let lab = lab();
    let model = model(&lab, &log("w", "w"));
    let (ran, lines) = run_json(&lab, &["go", "--model", &model]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let first = lines.last().unwrap()["run"].as_str().unwrap().to_owned();
    let mut known = vec![first.clone()];
    for answer in ["Again.", "Once more."] {
        let args = ["and now?", "--resume", &first, "--model", &model];
        let (ran, lines) = run_json(&lab, &args);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let done = lines.last().unwrap();
        assert_eq!(done["text"], answer, "it goes on where the last one ended");
        known.push(done["run"].as_str().unwrap().to_owned());
    }
    // Without another prompt no run starts, and the answer is the last one.
    let (ran, lines) = run_json(&lab, &["--resume", &first, "--model", &model]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(lines.last().unwrap()["text"], "Once more.");
    known.reverse();
    let all = runs(&lab);
    let ids: Vec<&str> = all.iter().map(|one| one["run"].as_str().unwrap()).collect();
    assert_eq!(ids, known);
    assert_eq!(read(&lab, "log.txt"), "1\nw\n2\n");
}

#[test]
fn a_run_that_was_killed_while_it_waited_gets_the_result_of_the_call_that_ran_elsewhere() {
    for started in [true, false] {
        let lab = lab();
        let model = model(&lab, APPEND);
        let (run, id) = if started {
            let args = ["run", "go", "--wait=60", "--json", "--model", &model];
            let mut child = lab.command(&args).spawn().unwrap();
            let mut lines = live(&mut child);
            let run = next(&mut lines, "tool_call")["run"]
                .as_str()
                .unwrap()
                .to_owned();
            let id = wait("the request", || {
                let all = lab.run(&["approvals", "list", "--json"]).json();
                all[0]["id"].as_str().map(str::to_owned)
            });
            child.kill().unwrap();
            child.wait().unwrap();
            (run, id)
        } else {
            let (run, id) = suspended(&lab, &model);
            let mut child = resumer(&lab, &run, &model, &id);
            child.kill().unwrap();
            child.wait().unwrap();
            (run, id)
        };
        let approved = lab.run(&["approvals", "approve", &id]);
        assert_eq!(approved.code, 0, "{started}: {}", approved.stderr);
        for _ in 0..2 {
            let (ran, lines) = run_json(&lab, &["--resume", &run, "--model", &model]);
            assert_eq!(ran.code, 0, "{started}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(lines.last().unwrap()["text"], "So be it.");
            one_run(&lab, &run, "closed", "killed");
        }
        assert_eq!(read(&lab, "a.txt"), "x\n", "{started}");
        assert_eq!(read(&lab, "log.txt"), "1\n2\n", "{started}");
    }
}

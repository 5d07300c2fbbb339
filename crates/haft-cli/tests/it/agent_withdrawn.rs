//! `haft run --resume` under other settings: a call that rules decide now leaves no request behind that could run it a second time.

use std::process::Child;
use std::thread;

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestEnding, WaitingCalls as _};
use haft_store::sqlite::SqliteInbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::agent_resume::{lab, model, one_run, read, suspended};
use crate::agent_run::{APPEND, run_json};
use crate::harness::{Lab, ended};
use crate::signals::jailed;

/// A command with other words each time it runs.
const COMMAND: &str = r#"{ id = "w", tool = "run_command", arguments = { command = "date +%s%N >> a.txt; echo it said so" } }"#;
/// A script that writes.
const SCRIPTED: &str = r#"{ id = "w", tool = "tool_chain", arguments = { code = "tools.write_file(path='a.txt', content='x\\n', mode='append')\n'ran'" } }"#;

const DENY_FILE: &str = r#"policy.deny=["Edit(/a.txt)"]"#;

/// Returns the ids of the requests with this status.
fn with_status(lab: &Lab, status: &str) -> Vec<String> {
    let all = lab.run(&["approvals", "list", "--all", "--json"]).json();
    let all = all.as_array().unwrap().iter();
    let of = all.filter(|one| one["status"] == status);
    of.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

fn show(lab: &Lab, id: &str) -> Value {
    lab.run(&["approvals", "show", id, "--json"]).json()
}

/// Checks that a request is withdrawn for this reason, and that nobody can approve it any more.
fn check_withdrawn(lab: &Lab, id: &str, why: &str, row: &str) {
    let shown = show(lab, id);
    assert_eq!(shown["status"], "withdrawn", "{row}: {shown}");
    let said = shown["why"].as_str().unwrap_or_default();
    assert!(said.contains(why), "{row}: {said}");
    let page = lab.run(&["approvals", "show", id]).stdout;
    assert!(
        page.contains(&format!("withdrawn: {said}")),
        "{row}: {page}"
    );
    let late = lab.run(&["approvals", "approve", "--yes", id]);
    assert_eq!(late.code, 3, "{row}: {}{}", late.stdout, late.stderr);
    let says = format!("approval {id} is withdrawn: {said}");
    assert!(late.stderr.contains(&says), "{row}: {}", late.stderr);
}

#[test]
fn a_call_that_other_settings_decide_on_resume_leaves_nothing_to_approve() {
    if !jailed(&Lab::new()) {
        return;
    }
    let trusted: &[&str] = &["--profile", "trusted"];
    let allow: &[&str] = &["-c", r#"policy.allow=["Edit(/a.txt)"]"#];
    let deny: &[&str] = &["-c", DENY_FILE];
    let no_commands: &[&str] = &["-c", r#"policy.deny=["run_command"]"#];
    let gone: &[&str] = &["-c", r#"tools.disable=["write_file"]"#];
    let no_scripts: &[&str] = &["-c", r#"tools.disable=["tool_chain"]"#];
    // The call, what is changed for the resume, how many lines it writes, and why the request is withdrawn.
    let rows = [
        (APPEND, trusted, 1, "profile trusted allows it now"),
        (APPEND, allow, 1, "Edit(/a.txt) allows it now"),
        (APPEND, deny, 0, "Edit(/a.txt) denies it now"),
        (APPEND, gone, 0, "its call has ended without it"),
        (COMMAND, trusted, 1, "profile trusted allows it now"),
        (COMMAND, deny, 0, "Edit(/a.txt) denies it now"),
        (COMMAND, no_commands, 0, "run_command denies it now"),
        (SCRIPTED, trusted, 1, "profile trusted allows it now"),
        (SCRIPTED, deny, 0, "Edit(/a.txt) denies it now"),
        (SCRIPTED, no_scripts, 0, "its call has ended without it"),
    ];
    for (asked, other, lines, why) in rows {
        let row = format!("{other:?} {asked}");
        let lab = lab();
        let model = model(&lab, asked);
        let (run, id) = suspended(&lab, &model);
        for _ in 0..2 {
            let args = [&["--resume", &run, "--model", &model][..], other].concat();
            let (ran, told) = run_json(&lab, &args);
            assert_eq!(ran.code, 0, "{row}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(told.last().unwrap()["text"], "So be it.", "{row}");
            one_run(&lab, &run, "closed", &row);
            check_withdrawn(&lab, &id, why, &row);
            assert_eq!(with_status(&lab, "pending"), [""; 0], "{row}");
            let written = read(&lab, "a.txt");
            assert_eq!(written.lines().count(), lines, "{row}: {written}");
        }
    }
}

#[test]
fn a_call_that_waited_for_two_requests_leaves_neither_when_it_ends() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab();
    let model = model(&lab, COMMAND);
    let (run, changes) = suspended(&lab, &model);
    let ask = ["-c", r#"policy.commands="ask""#];
    let args = [&["--resume", &run, "--model", &model][..], &ask].concat();
    let (ran, told) = run_json(&lab, &args);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let command = told.last().unwrap()["approvals"][0].as_str().unwrap();
    assert_ne!(command, changes);
    let denied = lab.run(&["approvals", "deny", command]);
    assert_eq!(denied.code, 0, "{}{}", denied.stdout, denied.stderr);
    let (ran, _) = run_json(&lab, &args);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    check_withdrawn(&lab, &changes, "its call has ended without it", "two");
    one_run(&lab, &run, "closed", "two");
    assert_eq!(read(&lab, "a.txt"), "");
}

#[test]
fn an_approval_that_races_with_a_resume_under_other_settings_runs_the_call_once() {
    if !jailed(&Lab::new()) {
        return;
    }
    for asked in [APPEND, COMMAND] {
        for later in ["approve", "resume"] {
            let row = format!("{later} {asked}");
            let lab = lab();
            let model = model(&lab, asked);
            let (run, id) = suspended(&lab, &model);
            let resume = ["run", "--resume", &run, "--model", &model, "--json"];
            let resume = [&resume[..], &["--profile", "trusted"]].concat();
            let approve = ["approvals", "approve", "--yes", &id];
            let (first, second) = match later {
                "approve" => (&resume[..], &approve[..]),
                _ => (&approve[..], &resume[..]),
            };
            let first = lab.command(first).spawn().unwrap();
            let second = lab.command(second).spawn().unwrap();
            let (first, second) = (ended(first), ended(second));
            let approved = if later == "approve" { &second } else { &first };
            if show(&lab, &id)["status"] == "withdrawn" {
                let told = format!("{row}: {}{}", approved.stdout, approved.stderr);
                assert_ne!(approved.code, 0, "{told}");
                assert!(told.contains("profile trusted allows it now"), "{told}");
            }
            let both = format!("{row}: {} {} {}", first.code, first.stderr, second.stderr);
            let (ran, _) = run_json(&lab, &["--resume", &run, "--model", &model]);
            assert_eq!(ran.code, 0, "{both} {}{}", ran.stdout, ran.stderr);
            one_run(&lab, &run, "closed", &row);
            assert_eq!(with_status(&lab, "pending"), [""; 0], "{both}");
            let written = read(&lab, "a.txt");
            assert_eq!(written.lines().count(), 1, "{both}: {written}");
        }
    }
}

#[test]
fn a_command_s_call_that_other_settings_decide_leaves_nothing_to_approve() {
    let allow = r#"policy.allow=["Edit(/a.txt)"]"#;
    // What is done before the call is made again, what it is made with, its exit code, and how often it has run in the end.
    for (first, other, code, lines, why) in [
        ("", allow, 0, 1, "Edit(/a.txt) allows it now"),
        ("", DENY_FILE, 3, 0, "Edit(/a.txt) denies it now"),
        ("approve", allow, 0, 1, ""),
    ] {
        let row = format!("{first} {other}");
        let lab = lab();
        let call = [
            "call",
            "write_file",
            "path=a.txt",
            "content=x\n",
            "mode=append",
        ];
        let asked = lab.run(&call);
        assert_eq!(asked.code, 4, "{row}: {}{}", asked.stdout, asked.stderr);
        let id = with_status(&lab, "pending").remove(0);
        if first == "approve" {
            let approved = lab.run(&["approvals", "approve", "--yes", &id]);
            assert_eq!(approved.code, 0, "{row}: {}", approved.stderr);
        }
        let again = lab.run(&[&call[..], &["-c", other]].concat());
        assert_eq!(again.code, code, "{row}: {}{}", again.stdout, again.stderr);
        if first == "approve" {
            assert_eq!(show(&lab, &id)["status"], "done", "{row}");
        } else {
            check_withdrawn(&lab, &id, why, &row);
        }
        assert_eq!(read(&lab, "a.txt").lines().count(), lines, "{row}");
    }
}

/// Ends a request as its time would.
fn expire(lab: &Lab, id: &str) {
    end(lab, id, RequestEnding::Expired, "");
}

/// Ends a request as another process would.
pub(crate) fn end(lab: &Lab, id: &str, ending: RequestEnding, why: &str) {
    let inbox = SqliteInbox::new(&lab.home());
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let id = ApprovalId::new(id);
    runtime.block_on(async {
        inbox.end(&id, ending, why).await.unwrap();
        inbox.shut_down().await;
    });
}

#[test]
fn the_model_reads_what_is_true_of_a_call_whose_request_expired() {
    if !jailed(&Lab::new()) {
        return;
    }
    let command = "nobody decided in time about what the command changed";
    let copy = "The command has run, on a copy of the workspace";
    for (asked, says, is_said) in [
        (COMMAND, command, true),
        (COMMAND, copy, true),
        (COMMAND, "nothing ran", false),
        (APPEND, "nothing ran", true),
        (APPEND, copy, false),
    ] {
        let lab = lab();
        let model = model(&lab, asked);
        let (run, id) = suspended(&lab, &model);
        expire(&lab, &id);
        let (ran, _) = run_json(&lab, &["--resume", &run, "--model", &model]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(conversation(&lab, &run).contains(says), is_said, "{says}");
        assert_eq!(read(&lab, "a.txt"), "");
    }
}

fn conversation(lab: &Lab, run: &str) -> String {
    let folder = lab.home().join("runs").join(run);
    std::fs::read_to_string(folder.join("conversation.jsonl")).unwrap()
}

/// A command that leaves many files, so that applying them takes a while.
const MANY: &str = r#"{ id = "w", tool = "run_command", arguments = { command = "for i in $(seq 1 1500); do echo $i > made$i; done" } }"#;

fn made(lab: &Lab) -> usize {
    let entries = std::fs::read_dir(lab.work()).unwrap().flatten();
    let made = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("made"));
    made.count()
}

/// Approves the request in a process that is given the signal while it applies what was approved.
fn approve_until(lab: &Lab, id: &str, signal: Signal) -> Child {
    let approve = lab.command(&["approvals", "approve", "--yes", id]);
    let mut child = { approve }.spawn().unwrap();
    // No pause between two looks: all of it takes a moment.
    let first = lab.work().join("made1");
    while !first.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it applied nothing");
        thread::yield_now();
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, signal).unwrap();
    assert!(child.try_wait().unwrap().is_none() || signal == Signal::KILL);
    child
}

#[test]
fn a_run_whose_approval_was_killed_while_it_was_applied_goes_on_and_says_so() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab();
    let model = model(&lab, MANY);
    let (run, id) = suspended(&lab, &model);
    approve_until(&lab, &id, Signal::KILL).wait().unwrap();
    let applied = made(&lab);
    assert!(applied < 1500, "it was killed too late to test anything");
    let (ran, lines) = run_json(&lab, &["--resume", &run, "--model", &model]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(lines.last().unwrap()["text"], "So be it.");
    let advice = format!("approve {id}");
    assert!(!ran.stderr.contains(&advice), "{}", ran.stderr);
    let kept = conversation(&lab, &run);
    assert!(
        kept.contains("haft was stopped while it applied them"),
        "{kept}"
    );
    assert_eq!(made(&lab), applied, "nothing is applied a second time");
    assert_eq!(show(&lab, &id)["status"], "in_doubt");
    one_run(&lab, &run, "closed", "killed");
}

#[test]
fn a_run_whose_approval_is_being_applied_goes_on_once_that_is_done() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab();
    let model = model(&lab, MANY);
    let (run, id) = suspended(&lab, &model);
    let approving = approve_until(&lab, &id, Signal::STOP);
    let args = [
        "run",
        "--resume",
        &run,
        "--wait=60",
        "--json",
        "--model",
        &model,
    ];
    let mut resuming = lab.command(&args).spawn().unwrap();
    // By now it has had the time to find the run busy.
    let other = lab.run(&["runs", "list"]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    assert!(resuming.try_wait().unwrap().is_none(), "it waits");
    kill_process(Pid::from_child(&approving), Signal::CONT).unwrap();
    let approved = ended(approving);
    assert_eq!(approved.code, 0, "{}{}", approved.stdout, approved.stderr);
    let ran = ended(resuming);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(made(&lab), 1500);
    one_run(&lab, &run, "closed", "stopped");
}

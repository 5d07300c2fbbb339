//! A run knows which files it has read in every process that resumes it; a file whose content differs must still be read again.

use serde_json::json;

use crate::agent_resume::{one_run, read, suspended};
use crate::agent_run::{APPEND, calls, of_type, run_json, says, script};
use crate::harness::Lab;

const READ: &str = r#"{ id = "r", tool = "read_file", arguments = { path = "src.txt" } }"#;
const MOVE: &str =
    r#"{ id = "m", tool = "move_file", arguments = { from = "src.txt", to = "moved.txt" } }"#;
const EDIT: &str = r#"{ id = "e", tool = "edit_file", arguments = { path = "src.txt", edits = [{ find = "two", replace = "TWO" }] } }"#;
const EDIT_MOVED: &str = r#"{ id = "e", tool = "edit_file", arguments = { path = "moved.txt", edits = [{ find = "two", replace = "TWO" }] } }"#;
const WRITE: &str = r#"{ id = "e", tool = "write_file", arguments = { path = "src.txt", content = "one\nTWO\n" } }"#;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.user_settings(
        "agent.suggest = false\npolicy.allow = [\"Edit(/src.txt)\", \"Edit(/moved.txt)\"]\n",
    );
    lab.file("src.txt", "one\ntwo\n");
    lab
}

/// The calls before the one that is asked about, the call after it, the file when the run is resumed, its name and text at the end, and
/// what the model is told if the change is refused.
type Row<'a> = (&'a [&'a str], &'a str, &'a str, [&'a str; 2], &'a str);

#[test]
fn a_resumed_run_when_it_has_read_a_file_changes_it_without_reading_it_again() {
    let unchanged = "one\ntwo\n";
    let rows: [Row<'_>; 6] = [
        (&[READ], EDIT, unchanged, ["src.txt", "one\nTWO\n"], ""),
        (&[READ], WRITE, unchanged, ["src.txt", "one\nTWO\n"], ""),
        (
            &[READ, MOVE],
            EDIT_MOVED,
            unchanged,
            ["moved.txt", "one\nTWO\n"],
            "",
        ),
        (
            &[READ],
            EDIT,
            "one\ntwo\n3\n",
            ["src.txt", "one\ntwo\n3\n"],
            "changed since it was read in this run",
        ),
        (
            &[],
            EDIT,
            unchanged,
            ["src.txt", unchanged],
            "was not read in this run",
        ),
        (
            &[READ, MOVE],
            WRITE,
            "new\n",
            ["src.txt", "new\n"],
            "was not read in this run",
        ),
    ];
    for (before, after, there, [name, text], refused) in rows {
        let row = format!("{before:?} {after} {there:?}");
        let lab = lab();
        let turns = [
            calls(&[before, &[APPEND]].concat()),
            calls(&[after]),
            says("So be it."),
        ];
        let model = script(&lab, &turns.concat());
        let (run, id) = suspended(&lab, &model);
        if there != unchanged {
            lab.file("src.txt", there);
        }
        let approved = lab.run(&["approvals", "approve", &id]);
        assert_eq!(approved.code, 0, "{row}: {}", approved.stderr);
        let (ran, lines) = run_json(&lab, &["--resume", &run, "--model", &model]);
        assert_eq!(ran.code, 0, "{row}: {}{}", ran.stdout, ran.stderr);
        let ended = of_type(&lines, "tool_result").last().unwrap().to_string();
        assert!(ended.contains(refused), "{row}: {ended}");
        assert_eq!(read(&lab, name), text, "{row}: {ended}");
        one_run(&lab, &run, "closed", &row);
    }
}

#[test]
fn a_run_that_continues_a_finished_one_knows_what_that_one_has_read() {
    let lab = lab();
    let turns = [
        calls(&[READ]),
        says("Read."),
        calls(&[EDIT]),
        says("Changed."),
    ];
    let model = script(&lab, &turns.concat());
    let (ran, lines) = run_json(&lab, &["go", "--model", &model]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let first = lines.last().unwrap()["run"].as_str().unwrap();
    let (ran, lines) = run_json(&lab, &["and now?", "--resume", first, "--model", &model]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_ne!(lines.last().unwrap()["run"], json!(first));
    assert_eq!(read(&lab, "src.txt"), "one\nTWO\n", "{}", ran.stdout);
}

#[test]
fn a_script_that_is_run_again_knows_what_it_read_before_the_decision() {
    let lab = lab();
    let code = "tools.read_file(path='src.txt')\ntools.write_file(path='a.txt', content='x')\ntools.edit_file(path='src.txt', edits=[{'find': 'two', 'replace': 'TWO'}])\n'done'";
    let arguments = json!({ "code": code }).to_string();
    let settings = ["-c", "chain.approval_timeout_s=1"];
    let call = ["call", "tool_chain", "--json", "--args", &arguments];
    let ran = lab.run(&[&call[..], &settings].concat());
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let id = ran.json()["approval"].as_str().unwrap().to_owned();
    let approved = lab.run(&[&["approvals", "approve", "--json", &id][..], &settings].concat());
    assert_eq!(approved.code, 0, "{}{}", approved.stdout, approved.stderr);
    assert_eq!(approved.json()["data"]["result"], "done");
    assert_eq!(read(&lab, "src.txt"), "one\nTWO\n");
}

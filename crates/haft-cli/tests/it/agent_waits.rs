//! `haft run --resume` before the decision, after a denial that ended the run, and where nothing is left to do: no request is replaced, and
//! nothing begins anew.

use serde_json::{Value, json};

use crate::agent_resume::{
    by_command, by_resumer, by_server, lab, log, model, one_run, read, runs, suspended,
};
use crate::agent_run::{APPEND, calls, run_json, says, script};
use crate::harness::Lab;
use crate::signals::jailed;

/// A command with other words each time it runs.
const COMMAND: &str = r#"{ id = "w", tool = "run_command", arguments = { command = "date +%s%N >> a.txt; echo it said so" } }"#;
/// A script that runs such a command.
const SCRIPTED: &str = r#"{ id = "w", tool = "tool_chain", arguments = { code = "tools.run_command(command='date +%s%N >> a.txt; echo it said so')\n'ran'" } }"#;
/// A script that writes after it has seen what such a command printed.
const CHAINED: &str = r#"{ id = "w", tool = "tool_chain", arguments = { code = "import time\ntools.write_file(path='a.txt', content=str(time.time_ns()) + '\\n', mode='append')\n'ran'" } }"#;

fn pending(lab: &Lab) -> Vec<String> {
    let all = lab.run(&["approvals", "list", "--json"]).json();
    let ids = all.as_array().unwrap().iter();
    ids.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns a request as it is shown.
fn look(lab: &Lab, id: &str) -> Value {
    lab.run(&["approvals", "show", id, "--json"]).json()
}

#[test]
fn a_run_that_is_resumed_before_the_decision_waits_for_the_same_request() {
    if !jailed(&Lab::new()) {
        return;
    }
    let once: &[&str] = &["approve"];
    let deny: &[&str] = &["deny", "--message", "not this one"];
    for (asked, how) in [
        (APPEND, once),
        (CHAINED, once),
        (COMMAND, once),
        (COMMAND, deny),
        (SCRIPTED, once),
    ] {
        let row = format!("{how:?} {asked}");
        let lab = lab();
        let model = model(&lab, asked);
        let (run, id) = suspended(&lab, &model);
        let request = look(&lab, &id);
        for _ in 0..2 {
            let (ran, lines) = run_json(&lab, &["--resume", &run, "--model", &model]);
            assert_eq!(ran.code, 4, "{row}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(lines.last().unwrap()["approvals"], json!([id]), "{row}");
            assert_eq!(pending(&lab), [id.as_str()], "{row}");
            assert_eq!(look(&lab, &id), request, "{row}");
            one_run(&lab, &run, "suspended", &row);
        }
        by_command(&lab, &id, how);
        for _ in 0..2 {
            let (ran, lines) = run_json(&lab, &["--resume", &run, "--model", &model]);
            assert_eq!(ran.code, 0, "{row}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(lines.last().unwrap()["text"], "So be it.", "{row}");
            assert_eq!(pending(&lab), [""; 0], "{row}");
            one_run(&lab, &run, "closed", &row);
            let written = read(&lab, "a.txt");
            let expect = usize::from(how == once);
            assert_eq!(written.lines().count(), expect, "{row}: {written}");
            for line in written.lines() {
                assert!(
                    request.to_string().contains(line),
                    "{row}: {line} {request}"
                );
            }
        }
        let folder = lab.home().join("runs").join(&run);
        let kept = std::fs::read_to_string(folder.join("conversation.jsonl")).unwrap();
        let said = kept.contains("it said so\\n");
        assert!(said || asked != COMMAND, "{row}: {kept}");
        assert_eq!(kept.contains("not this one"), how == deny, "{row}: {kept}");
    }
}

/// Two reads side by side, both of which are asked about.
const READS: &str = r#"{ id = "w", tool = "read_file", arguments = { path = "p.txt" } } }, { call = { id = "w2", tool = "read_file", arguments = { path = "q.txt" } }"#;

/// Returns the calls of the conversation's last turn that the model was told did not run.
fn not_run(lab: &Lab, run: &str) -> usize {
    let folder = lab.home().join("runs").join(run);
    let kept = std::fs::read_to_string(folder.join("conversation.jsonl")).unwrap();
    kept.matches("not run: root denied").count()
}

#[test]
fn a_run_that_a_denial_ended_does_not_go_on() {
    if !jailed(&Lab::new()) {
        return;
    }
    let how: &[&str] = &["deny", "--stop", "--message", "not this one"];
    // Who denies, the call, and how many calls of the turn are left besides.
    for (by, asked, left) in [
        ("command", APPEND, 1),
        ("command", COMMAND, 1),
        ("command", SCRIPTED, 1),
        ("command", READS, 2),
        ("resumer", SCRIPTED, 1),
        ("server", COMMAND, 1),
        ("resumer", COMMAND, 1),
    ] {
        let row = format!("{by} {asked}");
        let lab = lab();
        for name in ["p.txt", "q.txt"] {
            lab.file(name, "secret\n");
        }
        let ask = "policy.ask=[\"Read(/p.txt)\",\"Read(/q.txt)\"]";
        let model = model(&lab, asked);
        let resume = |run: &str, prompt: &[&str]| {
            let args = ["--resume", run, "--model", &model, "-c", ask];
            run_json(&lab, &[prompt, &args].concat())
        };
        let (ran, lines) = run_json(&lab, &["go", "--model", &model, "-c", ask]);
        assert_eq!(ran.code, 4, "{row}: {}{}", ran.stdout, ran.stderr);
        let done = lines.last().unwrap();
        let run = done["run"].as_str().unwrap().to_owned();
        let id = done["approvals"][0].as_str().unwrap().to_owned();
        match by {
            "command" => by_command(&lab, &id, how),
            "server" => by_server(&lab, &id, how),
            _ => by_resumer(&lab, [&run, &model, &id], how),
        }
        for _ in 0..2 {
            one_run(&lab, &run, "closed", &row);
            assert_eq!(pending(&lab), [""; 0], "{row}");
            let (ran, lines) = resume(&run, &[]);
            assert_eq!(ran.code, 3, "{row}: {}{}", ran.stdout, ran.stderr);
            let done = lines.last().unwrap();
            assert_eq!(done["end"], "denied", "{row}: {done}");
            let why = done["message"].as_str().unwrap();
            assert!(why.ends_with(" and ended the run"), "{row}: {why}");
            assert_eq!(lines.len(), 1, "{row}: {}", ran.stdout);
        }
        assert_eq!(not_run(&lab, &run), left, "{row}");
        // Another prompt is a new task: it has the conversation, and makes none of the calls.
        let (ran, lines) = resume(&run, &["and now?"]);
        assert_eq!(ran.code, 0, "{row}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(lines.last().unwrap()["text"], "So be it.", "{row}");
        assert_eq!(runs(&lab).len(), 2, "{row}");
        assert_eq!(pending(&lab), [""; 0], "{row}");
        assert_eq!(read(&lab, "a.txt"), "", "{row}");
        assert_eq!(read(&lab, "log.txt"), "1\n", "{row}");
    }
}

#[test]
fn a_run_with_nothing_left_to_do_is_not_begun_again_without_a_prompt() {
    let fails = |id: u32| {
        let call = format!(
            r#"{{ id = "f{id}", tool = "read_file", arguments = {{ path = "none.txt" }} }}"#
        );
        calls(&[&call])
    };
    let turns = |end: &str| format!("[[turns]]\nstop = \"{end}\"\nsay = [{{ text = \"Half\" }}]\n");
    let failing = (0..6).map(fails).collect::<String>();
    let first = format!("{}{}", calls(&[&log("l", "1")]), says("Done."));
    // The model's turns, further arguments, how the run ends, and the exit code.
    let rows = [
        (says("Done."), "9", "done", 0),
        (turns("filter"), "9", "filtered", 1),
        (failing, "9", "repeating", 1),
        (first, "1", "budget", 1),
    ];
    for (turns, most, end, code) in rows {
        let lab = lab();
        let model = script(&lab, &turns);
        let args = ["--max-turns", most, "--model", &model];
        let (ran, lines) = run_json(&lab, &[&["go"][..], &args].concat());
        assert_eq!(ran.code, code, "{end}: {}{}", ran.stdout, ran.stderr);
        let done = lines.last().unwrap().clone();
        assert_eq!(done["end"], end, "{done}");
        let run = done["run"].as_str().unwrap();
        for _ in 0..2 {
            let resumed = [&["--resume", run][..], &args].concat();
            let (ran, lines) = run_json(&lab, &resumed);
            assert_eq!(ran.code, code, "{end}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(lines, std::slice::from_ref(&done), "{end}");
            one_run(&lab, run, "closed", end);
        }
    }
}

#[test]
fn a_run_whose_model_does_not_answer_has_one_successor_however_often_it_is_resumed() {
    let mut lab = lab();
    lab.set("OPENAI_API_KEY", "k-0123456789abcdef");
    let answers = script(
        &lab,
        &format!("{}{}", calls(&[&log("l", "1")]), says("Done.")),
    );
    let dead = |args: &[&str]| {
        let dead = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9"];
        lab.run(&[&["run", "--json"], args, &dead].concat())
    };
    let args = ["go", "--max-turns", "1", "--model", &answers];
    let (ran, lines) = run_json(&lab, &args);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let run = lines.last().unwrap()["run"].as_str().unwrap();
    for _ in 0..3 {
        let ran = dead(&["--resume", run]);
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(runs(&lab).len(), 2);
    }
    let (ran, lines) = run_json(&lab, &["--resume", run, "--model", &answers]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(lines.last().unwrap()["text"], "Done.");
    let states: Vec<Value> = runs(&lab).iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["closed", "closed"]);
    assert_eq!(read(&lab, "log.txt"), "1\n");
}

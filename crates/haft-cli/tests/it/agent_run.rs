//! `haft run`: a task from prompt to answer, with a scripted model, over HTTP.

use std::io::{BufRead, BufReader};
use std::process::Child;

use haft_scripted::{Scenario, serve};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Lab, Ran, ended};
use crate::pty::Pty;
use crate::signals::jailed;
use crate::terminal::at_terminal;

/// Returns the argument of `--model` for a script with these turns.
pub(crate) fn script(lab: &Lab, turns: &str) -> String {
    let file = lab.home().parent().unwrap().join("script.toml");
    std::fs::write(&file, format!("title = \"A test\"\n{turns}")).unwrap();
    format!("scripted:{}", file.display())
}

/// Returns a turn that makes these calls, as TOML.
pub(crate) fn calls(calls: &[&str]) -> String {
    let calls: Vec<String> = calls
        .iter()
        .map(|call| format!("{{ call = {call} }},"))
        .collect();
    format!("[[turns]]\nsay = [{}]\n", calls.join("\n"))
}

pub(crate) fn says(text: &str) -> String {
    format!("[[turns]]\nsay = [{{ text = \"{text}\" }}]\n")
}

pub(crate) const APPEND: &str = r#"{ id = "w", tool = "write_file", arguments = { path = "a.txt", content = "x\n", mode = "append" } }"#;

/// Returns the lines of JSON; there must be nothing else.
fn lines(ran: &Ran) -> Vec<Value> {
    let line = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}\n{}", ran.stderr))
    };
    ran.stdout.lines().map(line).collect()
}

pub(crate) fn of_type<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// Runs with `--json`: returns what was printed, and the lines, the last of which says how it ended.
pub(crate) fn run_json(lab: &Lab, args: &[&str]) -> (Ran, Vec<Value>) {
    let ran = lab.run(&[&["run", "--json"], args].concat());
    let lines = lines(&ran);
    let last = lines.last();
    let is_done = last.is_some_and(|line| line["type"] == "done");
    assert!(is_done, "{}{}", ran.stdout, ran.stderr);
    (ran, lines)
}

#[test]
fn an_answer_is_all_that_stdout_gets_and_what_came_before_it_goes_to_stderr() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let turns = format!(
        "[[turns]]\nexpect.user = \"look\"\nsay = [{{ text = \"I look.\" }}, {{ call = {} }}]\n{}",
        r#"{ id = "r", tool = "read_file", arguments = { path = "a.txt" } }"#,
        says("It says one.")
    );
    let model = script(&lab, &turns);
    for (args, stdin) in [(&["look"][..], ""), (&["-"][..], "look\n")] {
        let args = [&["run", "--model", &model], args].concat();
        let ran = lab.run_with(&args, stdin);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.stdout, "It says one.\n", "{}", ran.stderr);
        for line in [
            "I look.\n",
            "ok        read_file a.txt (",
            "done (2 turns, ",
        ] {
            assert!(ran.stderr.contains(line), "{line:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn without_a_model_or_a_key_one_line_says_what_to_set_and_how_to_try_it() {
    let lab = Lab::new();
    for (args, says) in [
        (&["run", "hi"][..], "model.default"),
        (
            &["run", "hi", "--model", "anthropic:claude"],
            "ANTHROPIC_API_KEY",
        ),
        (
            &["run", "hi", "--model", "gemini:x"],
            "GEMINI_API_KEY or GOOGLE_API_KEY",
        ),
        (
            &["run", "hi", "-c", "model.default=openai:x"],
            "OPENAI_API_KEY",
        ),
    ] {
        let ran = lab.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (5, ""), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        for part in [says, "--model scripted:first-try"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs, json!([]), "nothing was begun");
    for (args, code, says) in [
        (&["run"][..], 2, "there is no prompt"),
        (&["run", "hi", "--model", "gpt"], 2, "PROVIDER:MODEL"),
        (
            &["run", "hi", "--model", "scripted:none.toml"],
            2,
            "none.toml",
        ),
        (
            &[
                "run",
                "hi",
                "--model",
                "scripted:first-try",
                "-c",
                "agent.max_cost=1",
            ],
            5,
            "input_price",
        ),
        (
            &["run", "--resume", "20", "--model", "scripted:first-try"],
            2,
            "runs list",
        ),
    ] {
        let ran = lab.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn the_first_try_needs_nothing_but_a_readme() {
    let lab = Lab::new();
    lab.file("README.md", "# A project\n");
    let ran = lab.run(&["run", "what is here?", "--model", "scripted:first-try"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("a real model"), "{}", ran.stdout);
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(
        (&runs[0]["state"], &runs[0]["calls"]),
        (&json!("closed"), &json!(2)),
        "{runs}"
    );
    let run = runs[0]["run"].as_str().unwrap();
    let verified = lab.run(&["runs", "verify", run]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

/// Checks that each result follows its call, with the outcome of that call.
fn results_follow_calls(lines: &[Value]) {
    for result in of_type(lines, "tool_result") {
        let id = &result["tool_call_id"];
        let place = |kind: &str| {
            let mut lines = lines.iter();
            lines.position(|line| line["type"] == kind && line["tool_call_id"] == *id)
        };
        assert!(place("tool_call") < place("tool_result"), "{result}");
        assert_eq!(result["outcome"]["call"], *id, "{result}");
    }
}

#[test]
fn lines_of_json_tell_all_that_happens_in_order_and_name_the_run() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    lab.file("b.txt", "two\n");
    let read = |id: &str, file: &str| {
        format!(r#"{{ id = "{id}", tool = "read_file", arguments = {{ path = "{file}" }} }}"#)
    };
    let turns = [
        calls(&[
            &read("a", "a.txt"),
            &read("b", "b.txt"),
            &read("c", "c.txt"),
        ]),
        says("Done."),
    ];
    let model = script(&lab, &turns.concat());
    let (ran, lines) = run_json(&lab, &["go", "--model", &model]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "tool_call").count(),
        3,
        "{kinds:?}"
    );
    let results = of_type(&lines, "tool_result");
    let oks: Vec<&Value> = results.iter().map(|line| &line["ok"]).collect();
    assert_eq!(
        oks.iter().filter(|ok| **ok == &json!(true)).count(),
        2,
        "{results:?}"
    );
    results_follow_calls(&lines);
    let run = lines[0]["run"].as_str().unwrap();
    assert!(
        lines.iter().all(|line| line["run"] == run),
        "{}",
        ran.stdout
    );
    let deltas: String = lines
        .iter()
        .filter_map(|line| line["delta"].as_str())
        .collect();
    assert_eq!(deltas, "Done.");
    let done = lines.last().unwrap();
    assert_eq!(
        (&done["end"], &done["text"]),
        (&json!("done"), &json!("Done.")),
        "{done}"
    );
    assert_eq!(done["total"]["turns"], 2, "{done}");
    assert_eq!(of_type(&lines, "usage").len(), 2, "{kinds:?}");
}

#[test]
fn every_dialect_does_a_task_over_http_and_no_key_is_kept() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let key = "k-0123456789abcdef";
    for (provider, variable) in [
        ("openai", "OPENAI_API_KEY"),
        ("openai-chat", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GOOGLE_API_KEY"),
    ] {
        let mut lab = Lab::new();
        lab.set(variable, key);
        lab.file("a.txt", "one\n");
        let read = r#"{ id = "r", tool = "read_file", arguments = { path = "a.txt" } }"#;
        let list = r#"{ id = "l", tool = "list_files", arguments = { path = "." } }"#;
        let turns = format!(
            "title = \"A test\"\nkey = \"{key}\"\n{}[[turns]]\n\
             expect.results = [{{ call = \"r\", contains = \"one\" }}, {{ call = \"l\", contains = \"a.txt\" }}]\n\
             say = [{{ text = \"It says one.\" }}]\n",
            calls(&[read, list])
        );
        let scenario = Scenario::from_toml(&turns).unwrap();
        let server = runtime.block_on(serve(scenario)).unwrap();
        let model = format!("{provider}:m");
        let ran = lab.run(&[
            "run",
            "look",
            "--model",
            &model,
            "--base-url",
            &server.url(),
        ]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (0, "It says one.\n"),
            "{provider}: {}",
            ran.stderr
        );
        assert_eq!(server.problems(), [""; 0], "{provider}");
        let kept = lab
            .program("grep", &["-rlF", key, &lab.home().to_string_lossy()])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(kept.stdout).unwrap(), "", "{provider}");
        lab.set(variable, "k-another-0123456789");
        let ran = lab.run(&[
            "run",
            "look",
            "--model",
            &model,
            "--base-url",
            &server.url(),
        ]);
        assert_eq!(ran.code, 1, "{provider}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("status 40") && !ran.stderr.contains("k-another"),
            "{provider}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_denied_call_is_told_to_the_model_which_goes_on() {
    let lab = Lab::new();
    lab.user_settings("policy.deny = [\"Edit(a.txt)\"]\n");
    let turns = format!(
        "{}[[turns]]\nexpect.results = [{{ call = \"w\", contains = \"denied\", error = true }}]\nsay = [{{ text = \"I may not.\" }}]\n",
        calls(&[APPEND])
    );
    let model = script(&lab, &turns);
    let ran = lab.run(&["run", "write", "--model", &model]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "I may not.\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("denied    write_file a.txt ("),
        "{}",
        ran.stderr
    );
    assert!(!lab.work().join("a.txt").exists());
}

#[test]
fn a_person_at_the_terminal_is_asked_where_the_call_is_made() {
    // What is typed, the exit code, the output on stdout, and whether the file exists.
    for (typed, code, answer, written) in [
        ("y", 0, "Over.\n", true),
        ("n", 0, "Over.\n", false),
        ("q", 3, "", false),
    ] {
        let lab = Lab::new();
        let model = script(&lab, &[calls(&[APPEND]), says("Over.")].concat());
        let ran = at_terminal(
            &lab,
            &["run", "write", "--model", &model],
            &[("run it?", typed)],
        );
        assert_eq!(ran.code, code, "{typed}: {}", ran.stderr);
        assert_eq!(ran.stdout, answer, "{typed}: {}", ran.stderr);
        assert_eq!(lab.work().join("a.txt").exists(), written, "{typed}");
        let card = if written {
            "ok        write_file a.txt"
        } else {
            "denied    write_file a.txt"
        };
        assert!(ran.stderr.contains(card), "{typed}: {}", ran.stderr);
    }
}

#[test]
fn a_conversation_keeps_what_was_said_until_ctrl_d() {
    let lab = Lab::new();
    let turns = "[[turns]]\nexpect.user = \"first\"\nsay = [{ text = \"One.\" }]\n\
                 [[turns]]\nexpect.user = \"second\"\nsay = [{ text = \"Two.\" }]\n";
    let model = script(&lab, turns);
    let mut pty = Pty::whole(&lab, &["run", "--model", &model], 100);
    pty.expect("> ");
    pty.enter("first");
    pty.expect("One.");
    pty.expect("> ");
    pty.enter("second");
    pty.expect("Two.");
    pty.expect("> ");
    pty.type_in("\u{4}");
    let ran = pty.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        !ran.stderr.contains('\u{1b}'),
        "no colour without TERM: {:?}",
        ran.stderr
    );
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
}

/// Returns the next line of JSON with this type.
pub(crate) fn next(lines: &mut impl Iterator<Item = Value>, kind: &str) -> Value {
    let line = lines.find(|line| line["type"] == kind);
    line.unwrap_or_else(|| panic!("no line of the type {kind} came"))
}

/// Returns the lines of JSON of a running command.
pub(crate) fn live(child: &mut Child) -> impl Iterator<Item = Value> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).unwrap();
}

/// A call of a command that creates a file, reports that it runs, and keeps running for long.
pub(crate) const LONG: &str = r#"{ id = "c", tool = "run_command", arguments = { command = "echo x >> log.txt; echo started; exec sleep 600", timeout_s = 600 } }"#;

#[test]
fn ctrl_c_stops_the_tools_first_and_then_the_run() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let turns = format!(
        "{}[[turns]]\nfaults = [{{ hang_after = 0 }}]\nsay = [{{ text = \"Never.\" }}]\n",
        calls(&[LONG])
    );
    let model = script(&lab, &turns);
    let args = [
        "run",
        "go",
        "--json",
        "--profile",
        "trusted",
        "--model",
        &model,
    ];
    let mut child = lab.command(&args).spawn().unwrap();
    let mut lines = live(&mut child);
    let piece = next(&mut lines, "tool_progress");
    assert_eq!(
        (&piece["text"], &piece["stream"]),
        (&json!("started\n"), &json!("stdout"))
    );
    interrupt(&child);
    let result = next(&mut lines, "tool_result");
    assert_eq!(result["ok"], false, "{result}");
    assert!(
        result["text"].as_str().unwrap().contains("cancelled"),
        "{result}"
    );
    interrupt(&child);
    let done = next(&mut lines, "done");
    assert_eq!(done["end"], "cancelled", "{done}");
    let ran = ended(child);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let verified = lab.run(&["runs", "verify", done["run"].as_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

#[test]
fn a_second_ctrl_c_ends_the_run_however_many_calls_are_left() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    // The first interrupt stops all calls of a reply; at the second one, the next reply's call is running.
    let [first, second] = ["d", "e"].map(|id| LONG.replacen("\"c\"", &format!("{id:?}"), 1));
    let turns = [
        calls(&[LONG, &first, &second]),
        calls(&[&LONG.replacen("\"c\"", "\"f\"", 1)]),
    ];
    let model = script(&lab, &turns.concat());
    let args = [
        "run",
        "go",
        "--json",
        "--profile",
        "trusted",
        "--model",
        &model,
    ];
    let mut child = lab.command(&args).spawn().unwrap();
    let mut lines = live(&mut child);
    for _ in 0..2 {
        next(&mut lines, "usage");
        next(&mut lines, "tool_progress");
        interrupt(&child);
    }
    let done = next(&mut lines, "done");
    assert_eq!(done["end"], "cancelled", "{done}");
    assert_eq!(done["total"]["turns"], 2, "{done}");
    assert_eq!(ended(child).code, 130);
}

#[test]
fn an_empty_prompt_is_refused_before_a_run_begins() {
    let lab = Lab::new();
    let model = script(&lab, &says("Never."));
    for (prompt, stdin) in [("", ""), (" \n\t", ""), ("-", ""), ("-", "\n")] {
        let ran = lab.run_with(&["run", prompt, "--model", &model], stdin);
        assert_eq!(ran.code, 2, "{prompt:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("the prompt is empty"), "{}", ran.stderr);
    }
    let runs = lab.run(&["runs", "--json"]);
    assert!(!runs.stdout.contains("\"agent\""), "{}", runs.stdout);
}

#[test]
fn budgets_end_a_run_with_a_word_for_it() {
    let lab = Lab::new();
    let read = |id: usize| {
        format!(r#"{{ id = "r{id}", tool = "list_files", arguments = {{ limit = {id} }} }}"#)
    };
    let turns: String = (1..5).map(|id| calls(&[&read(id)])).collect();
    let model = script(&lab, &turns);
    for (option, says) in [
        (&["--max-turns", "2"][..], "2 turns"),
        (&["-c", "agent.max_turns=2"], "2 turns"),
        (&["-c", "agent.max_tokens=1"], "1 tokens"),
    ] {
        let (ran, lines) = run_json(&lab, &[&["go", "--model", &model], option].concat());
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let done = lines.last().unwrap();
        assert_eq!(done["end"], "budget", "{done}");
        assert!(done["message"].as_str().unwrap().contains(says), "{done}");
    }
    let prices = format!("models.\"{model}\".input_price=1000000");
    let cost = [
        "go",
        "--model",
        &model,
        "-c",
        &prices,
        "-c",
        "agent.max_cost=0.5",
    ];
    let (ran, lines) = run_json(&lab, &cost);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let done = lines.last().unwrap();
    assert_eq!(done["total"]["turns"], 1, "{done}");
    assert!(done["total"]["money"].as_f64().unwrap() > 0.5, "{done}");
}

//! What a user sees of a call: its output while it runs, and its result afterwards.

use std::fs;

use serde_json::json;

use crate::harness::Lab;
use crate::pty::Pty;

const ON: [&str; 4] = ["--profile", "trusted", "--color", "never"];

#[test]
fn a_commands_output_is_on_the_terminal_while_it_runs_and_not_twice() {
    let lab = Lab::new();
    // The command ends once the test has seen its first line: the line was shown while it ran.
    let command = "echo first; until test -e seen; do sleep 0.05; done; echo last >&2";
    let settings = format!("command={command}");
    // In the workspace itself, where the file is to appear.
    let direct = ["-c", "sandbox.changes=direct"];
    let call = [
        &["call", "run_command", settings.as_str()][..],
        &ON,
        &direct,
    ]
    .concat();
    let mut screen = Pty::whole(&lab, &call, 100);
    screen.expect("first\r\n");
    fs::write(lab.work().join("seen"), "").unwrap();
    screen.expect("last\r\n");
    let ran = screen.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for word in ["first", "last"] {
        let times = ran.stderr.matches(&format!("{word}\r\n")).count();
        assert_eq!(times, 1, "{word} stands {times} times in\n{}", ran.stderr);
    }
}

#[test]
fn a_run_is_shown_with_what_its_calls_gave_and_one_call_whole() {
    let lab = Lab::new();
    let text = (1..=9)
        .map(|n| format!("line {n}"))
        .collect::<Vec<_>>()
        .join("\n");
    lab.file("nine.txt", &text);
    lab.file("escape.txt", "a\u{1b}[2Jb\n");
    let rows = [
        (json!({"path": "nine.txt"}), "ok", "line 6", "line 7"),
        (json!({"path": "none.txt"}), "error", "none.txt", "line"),
        (json!({"path": "escape.txt"}), "ok", "a\\x1b[2Jb", "\u{1b}"),
    ];
    for (arguments, status, has, has_not) in rows {
        let arguments = arguments.to_string();
        let called = lab
            .run(&["call", "read_file", "--args", &arguments, "--json"])
            .json();
        let run = called["run"].as_str().unwrap();
        let call = called["call"].as_str().unwrap();
        let prefix = &run[..run.len() - 1];
        let all = lab.run(&["runs", "show", prefix]).stdout;
        assert!(all.starts_with(run), "{all}");
        for part in [call, status, "read_file", has] {
            assert!(all.contains(part), "no {part:?} in {all}");
        }
        assert!(!all.contains(has_not), "{has_not:?} in {all}");
        let one = lab.run(&["runs", "show", run, call]).stdout;
        for part in [call, status, "arguments", "\"path\"", has, "verdict"] {
            assert!(one.contains(part), "no {part:?} in {one}");
        }
        let document = lab.run(&["runs", "show", run, call, "--json"]).json();
        let events = document["events"].as_array().unwrap();
        assert!(
            events.iter().all(|event| event["call"] == call),
            "{document}"
        );
        if status == "ok" && has == "line 6" {
            let more = format!("3 more lines: haft runs show {run} {call}");
            assert!(all.contains(&more), "{all}");
            assert!(one.contains("line 9"), "{one}");
        }
    }
    let run = lab.run(&["runs", "list", "--json"]).json()[0]["run"].clone();
    let run = run.as_str().unwrap();
    let unknown = lab.run(&["runs", "show", run, "call-99"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let expect = format!("run {run} has no call `call-99`");
    assert!(unknown.stderr.contains(&expect), "{}", unknown.stderr);
}

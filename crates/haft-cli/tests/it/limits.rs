//! The time limit of a call: it applies to every tool, whatever its arguments request, and the output so far is kept.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Lab, ended};
use crate::signals::{started, stays_ignored};

const ON: [&str; 2] = ["--profile", "trusted"];

/// Returns the outcome of a tool's call under settings that allow calls five seconds.
fn limited(tool: &str, arguments: &Value) -> (Value, String) {
    let lab = Lab::new();
    let arguments = arguments.to_string();
    let call = ["call", tool, "--args", &arguments, "--json"];
    let limit = ["-c", "limits.call_timeout_s=5"];
    let ran = lab.run(&[&call[..], &ON, &limit].concat());
    assert_eq!(ran.code, 1, "{tool}: {}{}", ran.stdout, ran.stderr);
    (ran.json(), ran.stderr)
}

#[test]
fn f4_no_tool_takes_longer_than_a_call_may() {
    let sleep = "echo first; exec sleep 600";
    let script = format!(
        "print('first')\ntry:\n  tools.run_command(command={sleep:?}, timeout_s=600)\nexcept ToolError as e:\n  print(e.kind, e)"
    );
    let endless = "print('first')\nwhile True: pass";
    let rows = [
        ("run_command", json!({"command": sleep, "timeout_s": 600})),
        ("tool_chain", json!({"code": endless})),
        ("tool_chain", json!({"code": script})),
    ];
    let running =
        rows.map(|(tool, arguments)| std::thread::spawn(move || (tool, limited(tool, &arguments))));
    for row in running {
        let (tool, (outcome, stderr)) = row.join().unwrap();
        assert_eq!(outcome["status"], "timeout", "{tool}: {outcome}");
        let shown = format!("{}{}", outcome["content"], outcome["data"]);
        assert!(shown.contains("first"), "{tool}: {outcome}");
        assert!(stderr.contains("limits.call_timeout_s"), "{tool}: {stderr}");
        assert!(
            !outcome.to_string().contains("limits."),
            "U6 {tool}: {outcome}"
        );
    }
}

#[test]
fn f4_a_script_s_call_is_bounded_by_the_script_s_limit() {
    let lab = Lab::new();
    let script = "try:\n  tools.run_command(command='echo first; exec sleep 600', timeout_s=600)\nexcept ToolError as e:\n  print(e.kind, e)\n'went on'";
    let limits = [
        "-c",
        "chain.call_timeout_s=5",
        "-c",
        "chain.approval_timeout_s=1",
    ];
    let ran = lab.run_with(
        &[&["chain", "-", "--json"][..], &ON, &limits].concat(),
        script,
    );
    let outcome = ran.json();
    assert_eq!(outcome["data"], json!({"result": "went on"}), "{outcome}");
    let text = outcome["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("timeout") && text.contains("by the time limit of each call"),
        "{text}"
    );
}

#[test]
fn f4_a_wait_for_a_task_ends_before_its_call_and_the_task_goes_on() {
    let lab = Lab::new();
    let script = "t = tools.run_command(command='echo first; exec sleep 600', background=True).data['task']\nr = tools.await_command(task=t)\n[r.status, 'task' in r.data, r.data['stdout']]";
    let limits = [
        "-c",
        "chain.call_timeout_s=5",
        "-c",
        "chain.approval_timeout_s=1",
    ];
    let ran = lab.run_with(
        &[&["chain", "-", "--json"][..], &ON, &limits].concat(),
        script,
    );
    let outcome = ran.json();
    assert_eq!(
        outcome["data"],
        json!({"result": ["ok", true, "first\n"]}),
        "{outcome}"
    );
}

#[test]
fn j12_a_signal_keeps_the_output_so_far() {
    let command = "echo first; echo second >&2; touch started; exec sleep 600";
    let script = "print('first')\nprint('second')\ntools.write_file(path='started', content='')\nwhile True: pass";
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if stays_ignored(signal) {
            println!(
                "SKIPPED: {signal:?} is ignored here, as under nohup, and so by what is started"
            );
            continue;
        }
        let command = json!({"command": command, "timeout_s": 600});
        for (tool, arguments, changes) in [
            ("run_command", &command, "sandbox.changes=copy"),
            ("run_command", &command, "sandbox.changes=direct"),
            (
                "tool_chain",
                &json!({"code": script}),
                "sandbox.changes=copy",
            ),
        ] {
            let lab = Lab::new();
            let arguments = arguments.to_string();
            let call = ["call", tool, "--args", &arguments, "--json"];
            let child = lab
                .command(&[&call[..], &ON, &["-c", changes]].concat())
                .spawn()
                .unwrap();
            started(&lab);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let ran = ended(child);
            assert_eq!(ran.code, 130, "{tool}: {}{}", ran.stdout, ran.stderr);
            let outcome = ran.json();
            assert_eq!(outcome["status"], "cancelled", "{outcome}");
            let shown = format!("{}{}", outcome["content"], outcome["data"]);
            assert!(
                shown.contains("first") && shown.contains("second"),
                "{tool}: {outcome}"
            );
            let runs = lab.run(&["runs", "list", "--json"]).json();
            assert_eq!(runs[0]["state"], "closed", "{runs}");
        }
    }
}

//! Outputs of any length: every byte once, start and end in the reply, the whole as an artifact.

use serde_json::{Value, json};

use crate::harness::Lab;

const ON: [&str; 4] = ["--profile", "trusted", "-c", "tools.enable=[\"commands\"]"];

/// Returns whether to use the numbers of the review, which take minutes.
fn soak() -> bool {
    std::env::var_os("HAFT_SOAK").is_some_and(|value| value == "1")
}

fn call(lab: &Lab, tool: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let call = ["call", tool, "--args", &arguments, "--json"];
    lab.run(&[&call[..], &ON].concat()).json()
}

/// Returns the whole of the outcome's nth artifact.
fn whole(lab: &Lab, outcome: &Value, nth: usize) -> String {
    let artifact = &outcome["artifacts"][nth];
    let reference = artifact["ref"]
        .as_str()
        .unwrap_or_else(|| panic!("{outcome}"));
    let got = lab.run(&["artifacts", "get", reference]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert_eq!(artifact["bytes"], json!(got.stdout.len()), "{artifact}");
    got.stdout
}

/// Checks a shown text: its beginning, a line that says what is missing, its end.
fn check_shown(shown: &str, whole: &str, reference: &Value) {
    let (head, rest) = shown
        .split_once("\n… ")
        .unwrap_or_else(|| panic!("{shown}"));
    let (notice, tail) = rest.split_once(" …\n").unwrap();
    assert!(whole.starts_with(head) && whole.ends_with(tail), "{notice}");
    assert!(head.len() > 1_000 && tail.len() > 1_000, "{notice}");
    let left = whole.len() - head.len() - tail.len();
    assert!(notice.starts_with(&format!("{left} bytes")), "{notice}");
    assert!(notice.contains(reference.as_str().unwrap()), "{notice}");
}

fn lines(count: u64) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for n in 1..=count {
        writeln!(text, "{n}").unwrap();
    }
    text
}

#[test]
fn f2_what_a_script_prints_is_kept_whole() {
    let mut rows = vec![2_000, 20_000];
    if soak() {
        rows.push(2_900_000);
    }
    for count in rows {
        let lab = Lab::new();
        let code = format!("for n in range(1, {count} + 1): print(n)\n'done'");
        let outcome = call(&lab, "tool_chain", &json!({"code": code}));
        assert_eq!(outcome["status"], "ok", "{outcome}");
        assert_eq!(outcome["data"], json!({"result": "done"}));
        let text = outcome["content"][0]["text"].as_str().unwrap();
        let expect = lines(count);
        if expect.len() < 12_000 {
            assert_eq!(text, expect);
            assert!(outcome.get("artifacts").is_none(), "{outcome}");
            continue;
        }
        let kept = whole(&lab, &outcome, 0);
        assert!(kept == expect, "{} of {}", kept.len(), expect.len());
        check_shown(text, &kept, &outcome["artifacts"][0]["ref"]);
        assert_eq!(outcome["artifacts"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn f2_a_failing_script_keeps_its_output_and_its_traceback() {
    let lab = Lab::new();
    let code = "for n in range(1, 20001): print(n)\nprint('ü' * 70001)\n1/0";
    let outcome = call(&lab, "tool_chain", &json!({"code": code}));
    assert_eq!(outcome["status"], "error", "{outcome}");
    let text = outcome["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("1\n2\n") && text.contains("script.py"),
        "{text}"
    );
    // No character was split on the way, though each is two bytes and the frames have an even size.
    let expect = lines(20_000) + &"ü".repeat(70_001) + "\n";
    let kept = whole(&lab, &outcome, 0);
    assert!(kept == expect, "{} of {}", kept.len(), expect.len());
}

#[test]
fn f3_what_a_command_says_is_kept_whole() {
    let rows: &[u64] = if soak() {
        &[1_000, 16_500, 330_000, 12_000_000]
    } else {
        &[1_000, 16_500, 330_000]
    };
    for count in rows {
        let lab = Lab::new();
        let command = format!("seq {count}; seq 5 >&2; exit 3");
        let outcome = call(&lab, "run_command", &json!({"command": command}));
        assert_eq!(outcome["error"]["kind"], "failed", "{outcome}");
        let (data, expect) = (&outcome["data"], lines(*count));
        let stdout = data["stdout"].as_str().unwrap();
        assert_eq!(data["stderr"], "1\n2\n3\n4\n5\n");
        assert_eq!(data["stdout_bytes"], json!(expect.len()));
        assert_eq!(data["truncated"], false);
        if expect.len() < 5_000 {
            assert_eq!(stdout, expect);
            assert!(outcome.get("artifacts").is_none(), "{outcome}");
            continue;
        }
        let kept = whole(&lab, &outcome, 0);
        assert!(kept == expect, "{} of {}", kept.len(), expect.len());
        check_shown(stdout, &kept, &outcome["artifacts"][0]["ref"]);
    }
}

#[test]
fn f3_each_wait_for_a_task_gives_what_is_new_whole() {
    let lab = Lab::new();
    // The task continues only after the first half was returned.
    let code = r"
import re
def output(r, name):
    shown = r.data[name]
    kept = re.search(r'sha256-[0-9a-f]{64}', shown)
    return next(a.read() for a in r.artifacts if a.ref == kept[0]) if kept else shown
started = tools.run_command(command='seq 40000; echo half >&2; until [ -e go ]; do sleep 0.05; done; seq 40001 80000', background=True)
task = started.data['task']
first = tools.await_command(task=task, pattern='half')
tools.write_file(path='go', content='')
last = tools.await_command(task=task)
[len(output(started, 'stdout') + output(first, 'stdout') + output(last, 'stdout')),
 output(started, 'stdout') + output(first, 'stdout') + output(last, 'stdout') == ''.join(f'{n}\n' for n in range(1, 80001)),
 last.data['exit_code']]
";
    let outcome = call(&lab, "tool_chain", &json!({"code": code}));
    assert_eq!(
        outcome["data"],
        json!({"result": [lines(80_000).len(), true, 0]}),
        "{outcome}"
    );
}

#[test]
fn j14_all_artifacts_together_stay_below_their_bound() {
    let lab = Lab::new();
    let bound = ["-c", "artifacts.max_bytes=1000000"];
    let run = |command: &str| {
        let arguments = json!({ "command": command }).to_string();
        let call = ["call", "run_command", "--args", &arguments, "--json"];
        lab.run(&[&call[..], &ON, &bound].concat()).json()
    };
    let mut newest = Value::Null;
    for n in 0..6 {
        newest = run(&format!("seq {n} 50000"));
        assert_eq!(newest["artifacts"].as_array().unwrap().len(), 1, "{newest}");
    }
    let all = lab.run(&["artifacts", "list", "--json"]).json();
    let all = all.as_array().unwrap();
    let sum: u64 = all.iter().map(|one| one["bytes"].as_u64().unwrap()).sum();
    assert!((500_000..=1_000_000).contains(&sum), "{sum}");
    let refs: Vec<_> = all.iter().map(|one| &one["ref"]).collect();
    assert!(refs.contains(&&newest["artifacts"][0]["ref"]));
    // Output that fits nowhere is cut, and the reason is given.
    let large = run("seq 200000");
    assert!(large.get("artifacts").is_none(), "{large}");
    let shown = large["data"]["stdout"].as_str().unwrap();
    assert!(
        shown.contains("not stored") && shown.contains("of the quota"),
        "{shown}"
    );
    assert!(!large.to_string().contains("artifacts.max_bytes"), "U6");
    assert!(shown.ends_with("\n200000\n"));
    let doctor = lab.run(&[&["doctor", "--json"][..], &bound].concat());
    assert!(
        doctor.stdout.contains("of 976.6 KiB (artifacts.max_bytes)"),
        "{}",
        doctor.stdout
    );
}

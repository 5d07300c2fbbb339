//! A server that is killed at random points of its calls: every run stays sound, and calls that may have run are reported.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::harness::Lab;

/// The number of calls per round; after a random number of answers the server is killed.
const CALLS: usize = 50;

/// Runs a server until it has given `answers` answers, then kills it with calls in progress.
fn round(lab: &Lab, answers: usize) {
    let mut server = lab
        .command(&["serve", "--stdio", "--profile", "trusted"])
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let info = json!({"name": "kill", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let mut all = format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    );
    for id in 1..=CALLS {
        let path = format!("f{}.txt", id % 7);
        let (tool, arguments) = match id % 3 {
            0 => ("read_file", json!({"path": path})),
            1 => (
                "write_file",
                json!({"path": path, "content": "x", "mode": "append"}),
            ),
            _ => ("list_files", json!({})),
        };
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        all.push_str(&message.to_string());
        all.push('\n');
    }
    input.write_all(all.as_bytes()).unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    for _ in 0..=answers {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Returns the number of calls that a run's record shows as started but not ended.
fn started_not_ended(lab: &Lab, run: &str) -> usize {
    let record = lab.home().join("runs").join(run).join("events.jsonl");
    let record = std::fs::read_to_string(record).unwrap();
    let whole = record.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let count = |kind: &str| whole.lines().filter(|line| line.contains(kind)).count();
    count("\"type\":\"call_started\"") - count("\"type\":\"call_ended\"")
}

#[test]
fn runs_killed_at_random_points_are_open_and_sound_and_name_what_may_have_run() {
    let lab = Lab::new();
    // A fixed sequence with early, middle and late points. Before its first call there is no run.
    let points = (0..20).map(|round: usize| 1 + (round * 17 + round * round) % CALLS);
    for answers in points {
        round(&lab, answers);
    }
    let runs = lab.run(&["runs", "list", "--json"]).json();
    let runs = runs.as_array().unwrap().clone();
    assert_eq!(runs.len(), 20);
    for run in &runs {
        let id = run["run"].as_str().unwrap();
        assert_eq!(run["state"], "open", "{run}");
        let verified = lab.run(&["runs", "verify", id, "--json"]);
        let report: Value = verified.json();
        assert_eq!(verified.code, 0, "{report}");
        assert_eq!(
            (&report["state"], &report["ok"]),
            (&json!("open"), &json!(true)),
            "{report}"
        );
        let doubtful = report["in_doubt"].as_array().map_or(0, Vec::len);
        assert_eq!(doubtful, started_not_ended(&lab, id), "{report}");
        if doubtful > 0 {
            let said = lab.run(&["runs", "verify", id]);
            assert!(
                format!("{}{}", said.stdout, said.stderr).contains("may have run"),
                "{}",
                said.stdout
            );
        }
    }
}

#[test]
fn f6_a_call_that_was_running_when_its_server_was_killed_may_have_run() {
    let lab = Lab::new();
    let args = [
        "serve",
        "--stdio",
        "--profile",
        "trusted",
        "-c",
        "tools.enable=[\"commands\"]",
    ];
    let mut server = lab.command(&args).spawn().unwrap();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "kill", "version": "1"}});
    let start = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let params =
        json!({"name": "run_command", "arguments": {"argv": ["sleep", "60"], "timeout_s": 60}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let input = server.stdin.as_mut().unwrap();
    input
        .write_all(format!("{start}\n{call}\n").as_bytes())
        .unwrap();
    let run = loop {
        let runs = lab.home().join("runs");
        let mut found = std::fs::read_dir(runs).into_iter().flatten().flatten();
        let name = found
            .next()
            .map(|run| run.file_name().to_string_lossy().into_owned());
        match name {
            Some(name)
                if lab
                    .home()
                    .join("runs")
                    .join(&name)
                    .join("events.jsonl")
                    .exists()
                    && started_not_ended(&lab, &name) == 1 =>
            {
                break name;
            }
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    server.kill().unwrap();
    server.wait().unwrap();
    let said = lab.run(&["runs", "verify", &run]);
    assert_eq!(said.code, 0, "{}", said.stdout);
    assert!(
        said.stdout.contains("may have run") && said.stdout.contains("run_command"),
        "{}",
        said.stdout
    );
    let said = lab.run(&["runs", "resume", &run]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(
        said.stderr.contains("may have run") && said.stderr.contains("run_command"),
        "{}",
        said.stderr
    );
}

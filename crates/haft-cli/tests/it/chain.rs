//! `haft chain` from outside: its output, its exit codes, its refusals.

use std::io::BufReader;

use serde_json::json;

use crate::harness::{Lab, Ran, ended};
use crate::serve::{Server, exchange, hello, post, tool_call};

fn chain(lab: &Lab, script: &str, flags: &[&str]) -> Ran {
    lab.run_with(&[&["chain", "-"], flags].concat(), script)
}

#[test]
fn a_script_s_output_data_and_calls_are_printed() {
    let lab = Lab::new();
    lab.file("a.txt", "one\ntwo\n");
    let script = "text = tools.read_file(path='a.txt').text\nprint(text.upper())\nlen(text)";
    let ran = chain(&lab, script, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("ONE\nTWO"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("1  ok        read_file"),
        "{}",
        ran.stderr
    );
    let outcome = chain(&lab, script, &["--json"]).json();
    assert_eq!(outcome["data"], json!({"result": 8}));
    let call = &outcome["calls"][0];
    assert_eq!(
        (&call["seq"], &call["tool"], &call["status"]),
        (&json!(1), &json!("read_file"), &json!("ok"))
    );
    assert_eq!(call["args_digest"].as_str().unwrap().len(), 64);
    assert_eq!(
        (&outcome["tool"], &outcome["origin"]),
        (&json!("tool_chain"), &json!("host"))
    );
    assert!(outcome["strength"].is_string());
}

#[test]
fn how_a_script_ends_is_how_the_command_ends() {
    let lab = Lab::new();
    for (script, flags, code, says) in [
        ("print('x')", &[][..], 0, "x"),
        ("", &[], 2, "invalid arguments"),
        ("1/0", &[], 1, "ZeroDivisionError"),
        ("def f(:\n  pass", &[], 1, "line 1"),
        ("tools.raed_file(path='a')", &[], 1, "read_file"),
        ("tools.read_file()", &[], 1, "path"),
        ("while True: pass", &["--timeout", "1"], 1, "timeout"),
        ("import os\nos._exit(0)", &[], 1, "tool_chain"),
        ("raise SystemExit(0)", &[], 0, ""),
    ] {
        let ran = chain(&lab, script, flags);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, code, "{script}: {said}");
        assert!(said.contains(says), "{script}: {said}");
    }
}

#[test]
fn a_write_in_a_script_is_judged_as_a_direct_one() {
    let lab = Lab::new();
    let write = "tools.write_file(path='out.txt', content='x')";
    let nobody = ["-c", "approval.mode=deny"];
    let denied = chain(&lab, write, &["--json", nobody[0], nobody[1]]).json();
    assert_eq!(denied["calls"][0]["status"], "denied", "{denied}");
    let caught = format!("try:\n  {write}\nexcept PermissionError as e:\n  print('no:', e)");
    let ran = chain(&lab, &caught, &nobody);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("no:") && !lab.work().join("out.txt").exists());
    let ran = chain(&lab, write, &["--profile", "trusted"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(lab.work().join("out.txt").exists());
}

#[test]
fn what_is_no_script_is_refused_before_anything_runs() {
    let lab = Lab::new();
    std::fs::write(lab.work().join("latin.py"), b"print('\xe9')").unwrap();
    for (args, says) in [
        (&["chain", "latin.py"][..], "not UTF-8"),
        (&["chain", "nothing.py"], "nothing.py"),
        (&["chain", "."], "not a regular file"),
    ] {
        let ran = lab.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    let nul = chain(&lab, "print('a')\0", &[]);
    assert_eq!(nul.code, 1, "{}", nul.stderr);
}

#[test]
fn limits_of_settings_hold_in_a_script() {
    let lab = Lab::new();
    let many = "for i in range(3):\n  tools.list_files()";
    let ran = chain(&lab, many, &["-c", "chain.max_tool_calls=2", "--json"]);
    let outcome = ran.json();
    let statuses: Vec<_> = outcome["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["status"].clone())
        .collect();
    assert_eq!(statuses, ["ok", "ok", "error"], "{outcome}");
    let said = outcome["error"]["message"].as_str().unwrap();
    assert!(said.contains("budget of 2 calls is used up"), "{outcome}");
    assert!(said.contains("in another script"), "{outcome}");
    assert!(!said.contains("max_tool_calls"), "{outcome}");
    // Approvals that outlast a call make no sense: haft rejects the settings.
    let ran = chain(&lab, "1", &["-c", "chain.approval_timeout_s=60"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let ran = chain(&lab, "1", &["-c", "tools.disable=[\"tool_chain\"]"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("tools.enable"), "{}", ran.stderr);
}

#[test]
fn p12_the_budget_of_a_run_counts_the_calls_of_its_scripts() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["-c", "limits.max_calls=6"]);
    // The first script and its four calls use five of six, the second script the last.
    let body = json!({"code": "for i in range(4):\n  tools.list_files()"}).to_string();
    let mut spent = Vec::new();
    for _ in 0..2 {
        let reply = server.ask(&post("/api/v1/chains", &server.call, &body));
        let outcome = reply.json();
        let calls = outcome["calls"].as_array().unwrap();
        spent.push(calls.iter().filter(|call| call["status"] == "ok").count());
        if outcome["status"] == "error" {
            let said = outcome["error"]["message"].as_str().unwrap();
            assert!(said.contains("the run's budget of 6 calls"), "{outcome}");
        }
    }
    assert_eq!(spent, [4, 0]);
}

#[test]
fn there_is_nothing_to_resume_in_a_run_that_ended() {
    let lab = Lab::new();
    let run = chain(&lab, "1", &["--json"]).json()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    for (run, says) in [
        (run.as_str(), "nothing to resume"),
        ("none", "no run"),
        ("../x", "run id"),
    ] {
        let ran = lab.run(&["runs", "resume", run]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}

/// Ten reads, one of them of a missing file, and a write that was not approved.
const TEN: &str = "
texts = []
for i in range(9):
    texts.append(tools.read_file(path='a.txt').text)
try:
    tools.write_file(path='out.txt', content='x')
except PermissionError as refused:
    print('refused')
{'read': len(texts)}
";

#[test]
fn an_mcp_client_gets_data_text_and_trace() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let args = ["serve", "--stdio", "-c", "approval.mode=deny"];
    let mut child = lab.command(&args).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    exchange(&mut child, &mut stdout, &hello());
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let tools = exchange(&mut child, &mut stdout, &list);
    let tools = tools
        .pointer("/result/tools")
        .unwrap()
        .as_array()
        .unwrap()
        .clone();
    let chain = tools
        .iter()
        .find(|tool| tool["name"] == "tool_chain")
        .unwrap();
    let described = chain["description"].as_str().unwrap();
    assert!(described.contains("read_file(path: str"), "{described}");
    assert!(!described.contains("tool_chain("), "{described}");
    let call = tool_call(3, "tool_chain", &json!({"code": TEN}));
    let answer = exchange(&mut child, &mut stdout, &call);
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(result["structuredContent"], json!({"read": 9}));
    assert_eq!(
        result["content"][0]["text"],
        "refused\n--- data ---\n{\"read\":9}"
    );
    let calls = result["_meta"]["haft"]["calls"].as_array().unwrap();
    let statuses: Vec<_> = calls
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, [vec!["ok"; 9], vec!["denied"]].concat());
    drop(child.stdin.take());
    drop(stdout);
    let ran = ended(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(!lab.work().join("out.txt").exists());
}

#[test]
fn the_http_api_runs_scripts() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let server = Server::start(&lab, &["-c", "approval.mode=deny"]);
    let body = json!({"code": TEN}).to_string();
    let reply = server.ask(&post("/api/v1/chains", &server.call, &body));
    let outcome = reply.json();
    assert_eq!(
        (reply.status, &outcome["status"]),
        (200, &json!("ok")),
        "{outcome}"
    );
    assert_eq!(outcome["calls"].as_array().unwrap().len(), 10);
    // A script's folder survives it, within the run.
    for (code, data) in [
        (
            "open('/workspace/kept', 'w').write('here')",
            json!({"result": 4}),
        ),
        ("open('/workspace/kept').read()", json!({"result": "here"})),
        (
            "import os; sorted(os.listdir('/tmp'))",
            json!({"result": []}),
        ),
    ] {
        let body = json!({"code": code}).to_string();
        let outcome = server
            .ask(&post("/api/v1/chains", &server.call, &body))
            .json();
        assert_eq!(outcome["data"], data, "{outcome}");
    }
}

#[test]
fn the_typed_list_of_the_standard_tools_has_forty_tokens_a_tool() {
    let lab = Lab::new();
    let all = [
        "tools",
        "tool_chain",
        "--json",
        "-c",
        "tools.enable=[\"*\"]",
    ];
    let described = lab.run(&all).json();
    let described = described["description"].as_str().unwrap().to_owned();
    let (_, stub) = described.split_once("\nTools:\n").unwrap();
    let tokenizer = haft::tokens::standard();
    assert!(stub.lines().count() >= 20, "{stub}");
    for line in stub.lines() {
        assert!(tokenizer.fits(line, 40).is_some(), "{line}");
    }
}

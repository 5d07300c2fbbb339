//! Text for models: it never says how to approve a call or loosen a rule. The operator gets that on stderr.

use std::io::BufReader;

use serde_json::json;

use crate::harness::{Lab, ended};
use crate::serve::{Server, exchange, hello, post, tool_call};

/// A call that does not run, and what the operator is told.
struct Row {
    name: &'static str,
    tool: &'static str,
    arguments: &'static str,
    settings: &'static [&'static str],
    /// A part of the text for the operator; `None` if there is nothing to change.
    operator: Option<&'static str>,
}

const WRITE: &str = r#"{"path":"b","content":"x"}"#;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "a deny rule", tool: "write_file", arguments: WRITE, settings: &["-c", "policy.deny=[\"Edit(b)\"]"], operator: Some("remove or narrow the deny rule Edit(b)") },
    Row { name: "a profile that denies", tool: "write_file", arguments: WRITE, settings: &["--profile", "read-only"], operator: Some("--profile trusted") },
    Row { name: "nobody to ask", tool: "write_file", arguments: WRITE, settings: &["-c", "approval.mode=deny"], operator: Some("Edit(/b)") },
    Row { name: "a removal with nobody to ask", tool: "delete_file", arguments: r#"{"path":"e.txt"}"#, settings: &["-c", "approval.mode=deny", "-c", "tools.enable=[\"delete_file\"]"], operator: Some("approval each time") },
    Row { name: "a call that waits", tool: "write_file", arguments: WRITE, settings: &[], operator: Some("haft approvals approve ap-") },
    Row { name: "a question that waits", tool: "ask_user", arguments: r#"{"title":"Which","wait_s":1,"questions":[{"id":"q","type":"confirm","text":"Go?"}]}"#, settings: &["-c", "tools.enable=[\"ask_user\"]"], operator: Some("haft approvals answer ap-") },
    Row { name: "a tool that is off", tool: "delete_file", arguments: r#"{"path":"b"}"#, settings: &[], operator: Some("tools.enable") },
    Row { name: "a tool that lacks its settings", tool: "web_search", arguments: r#"{"query":"x"}"#, settings: &[], operator: Some("web.search.provider") },
    Row { name: "outside the workspace", tool: "write_file", arguments: r#"{"path":"/etc/b","content":"x"}"#, settings: &[], operator: None },
    Row { name: "a protected path", tool: "write_file", arguments: r#"{"path":".git/config","content":"x"}"#, settings: &[], operator: Some("no rule can override this") },
    Row { name: "a script in a script's budget", tool: "tool_chain", arguments: r#"{"code":"tools.list_files()\ntools.list_files()"}"#, settings: &["-c", "limits.max_calls=2"], operator: None },
    Row { name: "a call over its time", tool: "run_command", arguments: r#"{"command":"sleep 600","timeout_s":600}"#, settings: &["--profile", "trusted", "-c", "tools.enable=[\"commands\"]", "-c", "limits.call_timeout_s=1"], operator: Some("raise limits.call_timeout_s") },
    Row { name: "a script over its time", tool: "tool_chain", arguments: r#"{"code":"while True: pass"}"#, settings: &["-c", "chain.total_timeout_s=1"], operator: Some("raise chain.total_timeout_s") },
    Row { name: "a call of a script over its time", tool: "tool_chain", arguments: r#"{"code":"tools.run_command(command='sleep 600', timeout_s=600)"}"#, settings: &["--profile", "trusted", "-c", "tools.enable=[\"commands\"]", "-c", "chain.call_timeout_s=1"], operator: None },
    Row { name: "a script's call that is denied", tool: "tool_chain", arguments: r#"{"code":"tools.write_file(path='b', content='x')"}"#, settings: &["-c", "policy.deny=[\"Edit(b)\"]"], operator: None },
    Row { name: "an artifact over the quota", tool: "tool_chain", arguments: r#"{"code":"artifacts.put(b'x' * 100000)"}"#, settings: &["-c", "artifacts.max_bytes=1000"], operator: None },
];

/// Words for the operator: no text for a model contains any.
const OPERATORS: [&str; 14] = [
    "haft approvals",
    "haft config",
    "haft doctor",
    "haft policy",
    "haft runs",
    "--profile",
    "--workspace",
    "remove or narrow",
    "allow it with",
    "tools.enable",
    "provider",
    "artifacts.max",
    "limits.",
    "what would allow",
];

#[test]
fn u6_no_text_for_a_model_says_how_to_approve_or_loosen() {
    for row in ROWS {
        let lab = Lab::new();
        lab.file("e.txt", "x\n");
        let call = ["call", row.tool, "--args", row.arguments, "--json"];
        let ran = lab.run(&[&call, row.settings].concat());
        assert_ne!(ran.code, 0, "{}: {}", row.name, ran.stdout);
        assert!(
            !ran.stdout.contains("invalid"),
            "{}: {}",
            row.name,
            ran.stdout
        );
        for word in OPERATORS {
            assert!(!ran.stdout.contains(word), "{}: {}", row.name, ran.stdout);
        }
        let said = ran.stderr.trim();
        match row.operator {
            Some(part) => assert!(said.contains(part), "{}: {said}", row.name),
            None => assert_eq!(said, "", "{}", row.name),
        }
    }
}

#[test]
fn u6_a_served_client_is_told_no_more() {
    for row in ROWS {
        let lab = Lab::new();
        lab.file("e.txt", "x\n");
        let short = ["-c", "limits.approval_timeout_s=1"];
        let server = Server::start(&lab, &[&short, row.settings].concat());
        let arguments: serde_json::Value = serde_json::from_str(row.arguments).unwrap();
        let body = json!({"tool": row.tool, "arguments": arguments}).to_string();
        let reply = server.ask(&post("/api/v1/calls", &server.call, &body));
        let outcome = reply.json();
        let status = outcome["status"].as_str().unwrap_or_default();
        let said = match status {
            "suspended" => &outcome["content"][0]["text"],
            // A question that is not answered within its own time limit is not a failure.
            "ok" if row.tool == "ask_user" => &outcome["summary"],
            "ok" => panic!("{}: {outcome}", row.name),
            _ => &outcome["error"]["message"],
        };
        let said = said.as_str().unwrap_or_default();
        assert!(!said.is_empty(), "{}: {outcome}", row.name);
        for word in OPERATORS {
            assert!(!reply.body.contains(word), "{}: {}", row.name, reply.body);
        }
    }
}

#[test]
fn u6_an_mcp_client_is_told_no_more() {
    for row in ROWS {
        let lab = Lab::new();
        lab.file("e.txt", "x\n");
        let args = ["serve", "--stdio", "-c", "limits.approval_timeout_s=1"];
        let mut child = lab
            .command(&[&args, row.settings].concat())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let opened = exchange(&mut child, &mut stdout, &hello());
        let instructions = opened["result"]["instructions"].as_str().unwrap();
        assert!(instructions.contains("says why"), "{instructions}");
        let arguments = serde_json::from_str(row.arguments).unwrap();
        let call = tool_call(2, row.tool, &arguments);
        let answer = exchange(&mut child, &mut stdout, &call);
        let failed = answer["result"]["isError"] == true || answer["error"].is_object();
        let waits = answer["result"]["_meta"].to_string().contains("suspended");
        let stopped = failed || waits || row.tool == "ask_user";
        assert!(stopped, "{}: {answer}", row.name);
        for word in OPERATORS {
            assert!(!instructions.contains(word), "{instructions}");
            assert!(!answer.to_string().contains(word), "{}: {answer}", row.name);
        }
        drop(child.stdin.take());
        ended(child);
    }
}

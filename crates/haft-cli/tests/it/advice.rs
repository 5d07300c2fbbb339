//! Text for models: it never says how to approve a call or loosen a rule. The operator hears that on stderr.

use serde_json::json;

use crate::harness::Lab;
use crate::serve::{Server, post};

/// A call that does not run, and what the operator hears of it.
struct Row {
    name: &'static str,
    tool: &'static str,
    arguments: &'static str,
    settings: &'static [&'static str],
    operator: &'static str,
}

const WRITE: &str = r#"{"path":"b","content":"x"}"#;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "a deny rule", tool: "write_file", arguments: WRITE, settings: &["-c", "policy.deny=[\"Edit(b)\"]"], operator: "remove or narrow the deny rule Edit(b)" },
    Row { name: "a profile that denies", tool: "write_file", arguments: WRITE, settings: &["--profile", "read-only"], operator: "--profile trusted" },
    Row { name: "nobody to ask", tool: "write_file", arguments: WRITE, settings: &["-c", "approval.mode=deny"], operator: "Edit(/b)" },
    Row { name: "a call that waits", tool: "write_file", arguments: WRITE, settings: &[], operator: "haft approvals approve ap-" },
    Row { name: "a question that waits", tool: "ask_user", arguments: r#"{"title":"Which","wait_s":1,"questions":[{"id":"q","type":"confirm","text":"Go?"}]}"#, settings: &["-c", "tools.enable=[\"ask_user\"]"], operator: "haft approvals answer ap-" },
    Row { name: "a tool that is off", tool: "delete_file", arguments: r#"{"path":"b"}"#, settings: &[], operator: "tools.enable" },
    Row { name: "a tool that lacks its settings", tool: "web_search", arguments: r#"{"query":"x"}"#, settings: &[], operator: "web.search.provider" },
    Row { name: "outside the workspace", tool: "write_file", arguments: r#"{"path":"/etc/b","content":"x"}"#, settings: &[], operator: "" },
    Row { name: "a protected path", tool: "write_file", arguments: r#"{"path":".git/config","content":"x"}"#, settings: &[], operator: "no rule lifts this" },
    Row { name: "a script in a script's budget", tool: "tool_chain", arguments: r#"{"code":"tools.list_files()\ntools.list_files()"}"#, settings: &["-c", "limits.max_calls=2"], operator: "" },
];

/// Words of the operator's: no text for a model holds any.
const OPERATORS: [&str; 10] = [
    "haft approvals",
    "haft doctor",
    "haft policy",
    "--profile",
    "--workspace",
    "remove or narrow",
    "allow it with",
    "tools.enable",
    "provider",
    "limits.",
];

#[test]
fn u6_no_text_for_a_model_says_how_to_approve_or_loosen() {
    for row in ROWS {
        let lab = Lab::new();
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
        assert!(
            ran.stderr.contains(row.operator),
            "{}: {}",
            row.name,
            ran.stderr
        );
    }
}

#[test]
fn u6_a_served_client_is_told_no_more() {
    for row in ROWS {
        let lab = Lab::new();
        let short = ["-c", "limits.approval_timeout_s=1"];
        let server = Server::start(&lab, &[&short, row.settings].concat());
        let arguments: serde_json::Value = serde_json::from_str(row.arguments).unwrap();
        let body = json!({"tool": row.tool, "arguments": arguments}).to_string();
        let reply = server.ask(&post("/api/v1/calls", &server.call, &body));
        for word in OPERATORS {
            assert!(!reply.body.contains(word), "{}: {}", row.name, reply.body);
        }
    }
}

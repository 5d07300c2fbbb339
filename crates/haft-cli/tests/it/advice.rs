//! Text for models: it never says how to approve a call or loosen a rule. The operator gets that on stderr.

use std::io::BufReader;
use std::path::Path;

use serde_json::json;

use crate::harness::{Lab, Ran, ended};
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

/// Types a line that haft advised, in a shell and another folder than the workspace.
fn type_line(lab: &Lab, line: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = lab.program("sh", &["-c", line]);
    shell.env("PATH", format!("{}:{path}", program.display()));
    ended(shell.current_dir("/").spawn().unwrap())
}

/// Returns the line in a text that begins with these words: to the end of its code span, or of the text's line.
fn advised<'t>(said: &'t str, begin: &str) -> &'t str {
    let at = said
        .find(begin)
        .unwrap_or_else(|| panic!("{begin}: {said}"));
    let end = said[at..].find(['`', '\n']);
    said[at..].get(..end.unwrap_or(said.len() - at)).unwrap()
}

#[test]
fn a_question_is_answered_by_the_line_that_haft_advises() {
    let lab = Lab::new();
    let form = json!({"title": "Which", "wait_s": 1, "questions": [
        {"id": "it's \"a\"", "type": "single", "text": "?", "options": ["$(touch x)", "b"]},
        {"id": "n", "type": "number", "text": "?"},
        {"id": "l", "type": "multiple", "text": "?", "options": ["`c`"]},
    ]});
    let form = form.to_string();
    let call = [
        "call",
        "ask_user",
        "--args",
        &form,
        "-c",
        "tools.enable=[\"ask_user\"]",
    ];
    let ran = lab.run(&call);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let (_, line) = ran.stderr.split_once("looks like this: ").unwrap();
    let typed = type_line(&lab, line.lines().next().unwrap());
    assert_eq!(typed.code, 0, "{line}: {}", typed.stderr);
    let again = lab.run(&[&call[..], &["--json"]].concat());
    assert!(again.stdout.contains("$(touch x)"), "{}", again.stdout);
    let typed = type_line(&lab, advised(&ran.stderr, "haft approvals show"));
    assert_eq!(typed.code, 0, "{}", typed.stderr);
}

#[test]
fn a_request_that_cannot_be_decided_says_where_it_stands() {
    let lab = Lab::new();
    let asked = lab
        .run(&["call", "write_file", "--args", WRITE, "--json"])
        .json();
    let id = asked["approval"].as_str().unwrap();
    let unknown = lab.run(&["approvals", "deny", &format!("{id}0")]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let line = advised(&unknown.stderr, "haft approvals list --all");
    assert!(type_line(&lab, line).stdout.contains(id));
    assert_eq!(
        type_line(&lab, &format!("haft approvals deny {id}")).code,
        0
    );
    let twice = lab.run(&["approvals", "approve", id]);
    assert_eq!(twice.code, 2, "{}", twice.stderr);
    assert!(
        twice.stderr.contains("already decided: denied"),
        "{}",
        twice.stderr
    );
    let line = advised(&twice.stderr, "haft approvals show");
    let typed = type_line(&lab, line);
    assert!(
        typed.code == 0 && typed.stdout.contains("denied"),
        "{}",
        typed.stderr
    );
}

#[test]
fn a_folder_is_trusted_by_the_line_that_haft_advises_wherever_it_is_typed() {
    let lab = Lab::new();
    let skill = "---\nname: evil\ndescription: Does as it likes.\n---\nRun this.\n";
    for folder in ["plain", "it's mine $(x)"] {
        let at = lab.work().join(folder);
        lab.file(&format!("{folder}/.agents/skills/evil/SKILL.md"), skill);
        let at = at.to_str().unwrap();
        for args in [["init"].as_slice(), &["init"], &["skills", "list"]] {
            let ran = lab.run(&[&["--workspace", at], args].concat());
            let begin = if folder == "plain" {
                "haft trust /"
            } else {
                "haft trust "
            };
            let typed = type_line(&lab, advised(&ran.stderr, begin));
            assert_eq!(typed.code, 0, "{}: {}", ran.stderr, typed.stderr);
            assert!(typed.stderr.contains("is trusted"), "{}", typed.stderr);
            let removed = lab.run(&["trust", "--remove", at]);
            assert!(
                removed.stderr.contains("no longer trusted"),
                "{}",
                removed.stderr
            );
        }
    }
}

#[test]
fn settings_that_cannot_be_written_can_be_after_the_line_that_haft_advises() {
    for (name, begin) in [("hard link", "cp -p "), ("loop", "rm "), ("gone", "rm ")] {
        let lab = Lab::new();
        let folder = lab.work().join(".cursor");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("mcp.json");
        match name {
            "hard link" => {
                std::fs::write(&file, "{}").unwrap();
                std::fs::hard_link(&file, folder.join("other")).unwrap();
            }
            "loop" => std::os::unix::fs::symlink("mcp.json", &file).unwrap(),
            _ => std::os::unix::fs::symlink("nowhere", &file).unwrap(),
        }
        for args in [
            ["mcp", "install", "cursor", "--dry-run"].as_slice(),
            &["mcp", "install", "cursor"],
        ] {
            let refused = lab.run(args);
            assert_eq!(refused.code, 1, "{name}: {}", refused.stderr);
            assert!(refused.stderr.contains("mcp.json"), "{}", refused.stderr);
            assert!(
                !refused.stderr.contains("os error 40"),
                "{}",
                refused.stderr
            );
        }
        let refused = lab.run(&["mcp", "install", "cursor"]);
        let typed = type_line(&lab, advised(&refused.stderr, begin));
        assert_eq!(typed.code, 0, "{name}: {}", typed.stderr);
        let ran = lab.run(&["mcp", "install", "cursor"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    }
}

#[test]
fn links_that_lead_in_a_circle_are_said_in_words() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("loop", lab.work().join("loop")).unwrap();
    for args in [
        ["--workspace", "loop", "tools"].as_slice(),
        &["--home", "loop", "runs", "list"],
        &["--config", "loop", "runs", "list"],
        &["mcp", "import", "loop"],
        &["trust", "loop"],
        &["call", "read_file", "--args", r#"{"path":"loop"}"#],
    ] {
        let ran = lab.run(args);
        assert_ne!(ran.code, 0, "{args:?}");
        assert!(
            ran.stderr.contains("lead in a circle"),
            "{args:?}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("os error"), "{args:?}: {}", ran.stderr);
        assert!(
            !ran.stderr.contains("move the file away and"),
            "{}",
            ran.stderr
        );
    }
}

//! What an approval covers: the effects, files and conditions shown, and nothing weaker or different.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::approvals::{call_in_background, decide, only_one, show, text, wait};
use crate::harness::Lab;
use crate::serve::Server;

/// Makes commands need approval before they run.
const COMMANDS: [&str; 2] = ["-c", "policy.commands=ask"];

/// Makes a call that waits for an approval, and returns its id.
fn waiting(lab: &Lab, tool: &str, arguments: &Value, settings: &[&str]) -> String {
    let arguments = arguments.to_string();
    let call = ["call", tool, "--args", &arguments, "--json"];
    let ran = lab.run(&[&call, settings].concat());
    assert_eq!(
        ran.code, 4,
        "{tool} {arguments}: {}{}",
        ran.stdout, ran.stderr
    );
    text(&ran.json(), "approval")
}

fn show_request(lab: &Lab, id: &str) -> Value {
    lab.run(&["approvals", "show", id, "--json"]).json()
}

fn rules(lab: &Lab) -> usize {
    let folder = std::fs::read_dir(lab.home().join("rules"));
    folder.into_iter().flatten().count()
}

/// Checks that approving under these settings is refused with this message, and uses nothing up.
fn refused(lab: &Lab, id: &str, settings: &[&str], says: &str) {
    let approve = ["approvals", "approve", id, "--yes"];
    let ran = lab.run(&[&approve, settings].concat());
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!([2, 3].contains(&ran.code), "{says}: {said}");
    assert!(said.contains(says), "{said} lacks {says}");
    assert_eq!(show_request(lab, id)["status"], "pending", "{says}: {said}");
    assert_eq!(rules(lab), 0, "{says}");
}

#[test]
fn p10_an_approval_that_cannot_run_here_is_refused_and_uses_nothing_up() {
    let lab = Lab::new();
    let id = waiting(
        &lab,
        "run_command",
        &json!({"command": "touch made"}),
        &COMMANDS,
    );
    for scope in ["once", "session", "always"] {
        let without = ["--scope", scope, "-c", "tools.disable=[\"commands\"]"];
        refused(&lab, &id, &without, "run_command");
    }
    let denies = [&COMMANDS[..], &["-c", "policy.deny=[\"Bash(touch *)\"]"]].concat();
    refused(&lab, &id, &denies, "touch");
    let bound = [
        &COMMANDS[..],
        &["-c", "tools.run_command.bind={cwd=\"sub\"}"],
    ]
    .concat();
    refused(&lab, &id, &bound, "changed after it was shown");
    let reads = [&COMMANDS[..], &["--profile", "read-only"]].concat();
    refused(&lab, &id, &reads, "read-only");
    assert!(!lab.work().join("made").exists());
    let approve = ["approvals", "approve", &id, "--scope", "always"];
    let ran = lab.run(&[&approve[..], &COMMANDS].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(lab.work().join("made").exists());
    assert_eq!(rules(&lab), 1);
    assert_eq!(show_request(&lab, &id)["status"], "done");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn p9_weaker_or_other_surroundings_are_a_conflict_that_uses_nothing_up() {
    let lab = Lab::new();
    let id = waiting(
        &lab,
        "run_command",
        &json!({"command": "touch made"}),
        &COMMANDS,
    );
    let request = show_request(&lab, &id);
    assert_eq!(
        request["conditions"],
        json!([
            {"name": "sandbox", "value": "jail, at least no-proc"},
            {"name": "network", "value": "each connection is judged"},
        ])
    );
    for (setting, says) in [
        (
            &[
                "-c",
                "sandbox.backend=passthrough",
                "-c",
                "sandbox.require=none",
            ][..],
            "sandbox",
        ),
        (&["-c", "sandbox.require=none"], "sandbox"),
        (&["-c", "sandbox.network=full"], "network"),
        (
            &[
                "-c",
                "sandbox.network=allow-list",
                "-c",
                "sandbox.allow_hosts=[\"example.com\"]",
            ],
            "network",
        ),
    ] {
        refused(&lab, &id, &[&COMMANDS, setting].concat(), says);
    }
    let folder = env!("CARGO_MANIFEST_DIR");
    for (setting, says) in [
        ("sandbox.changes=review".to_owned(), "changes was shown"),
        (format!("sandbox.read=[\"{folder}\"]"), "also reads"),
        (format!("sandbox.path=[\"{folder}\"]"), "also reads"),
        ("sandbox.env={A=\"b\"}".to_owned(), "variables"),
        (
            "policy.secret_names=[\"!.env\"]".to_owned(),
            "the exemption !.env",
        ),
        (
            "policy.allow=[\"Read(.env)\"]".to_owned(),
            "the allow rule Read(.env)",
        ),
    ] {
        refused(
            &lab,
            &id,
            &[&COMMANDS[..], &["-c", &setting]].concat(),
            says,
        );
    }
    assert!(!lab.work().join("made").exists());
    let ran = lab.run(&[&["approvals", "approve", &id], &COMMANDS[..]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(lab.work().join("made").exists());
}

#[test]
fn p9_a_checker_that_settings_add_is_a_conflict() {
    let lab = Lab::new();
    let write = json!({"path": "a.py", "content": "x\n"});
    let id = waiting(&lab, "write_file", &write, &[]);
    let check = ["-c", "files.check={\"*.py\"=[\"touch\",\"pwn\"]}"];
    refused(&lab, &id, &check, "check was shown as not set");
    assert_eq!(lab.run(&["approvals", "approve", &id]).code, 0);
    assert!(!lab.work().join("pwn").exists());
}

#[test]
fn p9_a_link_that_leads_elsewhere_is_a_conflict() {
    let lab = Lab::new();
    for name in ["t1", "t2"] {
        lab.file(name, "old\n");
    }
    let link = lab.work().join("ln");
    let point = |to: &str| {
        let _ = std::fs::remove_file(&link);
        symlink(to, &link).unwrap();
    };
    point("t1");
    let id = waiting(
        &lab,
        "write_file",
        &json!({"path": "ln", "content": "new\n"}),
        &[],
    );
    let request = lab.run(&["approvals", "show", &id]).stdout;
    assert!(request.contains("ln → t1"), "{request}");
    point("t2");
    refused(&lab, &id, &[], "t2");
    point("t1");
    let ran = lab.run(&["approvals", "approve", &id]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let read = |name| std::fs::read_to_string(lab.work().join(name)).unwrap();
    assert_eq!(
        (read("t1").as_str(), read("t2").as_str()),
        ("new\n", "old\n")
    );
    // The same while the process that asked is waiting: it compares itself, and tells its client.
    point("t1");
    let server = Server::start(&lab, &[]);
    let asker = call_in_background(
        &server,
        "write_file",
        &json!({"path": "ln", "content": "more\n"}),
    );
    let id = text(&only_one(&server), "id");
    point("t2");
    assert_eq!(decide(&server, &id, "approve", &json!({})).status, 200);
    let outcome = asker.join().unwrap().unwrap().json();
    assert_eq!(outcome["error"]["kind"], "conflict", "{outcome}");
    let said = text(&outcome["error"], "message");
    assert!(said.contains("t1") && said.contains("t2"), "{said}");
    assert_eq!(
        (read("t1").as_str(), read("t2").as_str()),
        ("new\n", "old\n")
    );
    let over = wait("its end", || {
        Some(show(&server, &id)).filter(|e| e["status"] != "approved")
    });
    assert_eq!(over["status"], "withdrawn", "{over}");
}

/// A permanently approved call, and calls that another process asks about again.
struct Row {
    tool: &'static str,
    approved: Value,
    settings: &'static [&'static str],
    /// Other calls that the rule covers.
    covered: Vec<Value>,
    others: Vec<(&'static str, Value)>,
}

fn rule_rows() -> Vec<Row> {
    let commands = &COMMANDS[..];
    let external = &["-c", "memory.write_mode=external"][..];
    vec![
        Row {
            tool: "run_command",
            approved: json!({"command": "true make"}),
            settings: commands,
            covered: vec![json!({"argv": ["true", "make"]})],
            others: vec![
                (
                    "run_command",
                    json!({"command": "true make", "cwd": "evil"}),
                ),
                (
                    "run_command",
                    json!({"command": "true make", "env": {"X": "; touch pwn"}}),
                ),
                (
                    "run_command",
                    json!({"command": "true make", "background": true}),
                ),
                ("run_command", json!({"command": "true make <<'E'\nx\nE"})),
                ("run_command", json!({"command": "true make <<< x"})),
                ("run_command", json!({"command": "true make; true"})),
                ("run_command", json!({"command": "true"})),
            ],
        },
        Row {
            tool: "write_file",
            approved: json!({"path": "a.txt", "content": "one"}),
            settings: &["-c", "tools.enable=[\"delete_file\"]"],
            covered: vec![json!({"path": "a.txt", "content": "two"})],
            others: vec![
                (
                    "write_file",
                    json!({"path": "a.txt", "content": "one", "mode": "append"}),
                ),
                ("write_file", json!({"path": "b.txt", "content": "one"})),
                ("move_file", json!({"from": "a.txt", "to": "b.txt"})),
                // P18: critical, and a different action.
                ("delete_file", json!({"path": "a.txt"})),
            ],
        },
        Row {
            tool: "write_memory",
            approved: json!({"content": "fact A"}),
            settings: external,
            covered: Vec::new(),
            others: vec![
                ("write_memory", json!({"content": "fact B"})),
                ("write_memory", json!({"content": "fact A", "tags": ["x"]})),
                (
                    "write_memory",
                    json!({"content": "fact A", "scope": "user"}),
                ),
            ],
        },
    ]
}

#[test]
fn p5_a_rule_kept_for_good_covers_what_was_shown_in_every_process() {
    for row in rule_rows() {
        let lab = Lab::new();
        lab.file("evil/Makefile", "all:\n");
        let code = |tool: &str, arguments: &Value| {
            let arguments = arguments.to_string();
            let call = ["call", tool, "--args", &arguments];
            lab.run(&[&call, row.settings].concat()).code
        };
        let id = waiting(&lab, row.tool, &row.approved, row.settings);
        let approve = ["approvals", "approve", &id, "--scope", "always"];
        let ran = lab.run(&[&approve, row.settings].concat());
        assert_eq!(
            ran.code, 0,
            "{}: {}{}",
            row.approved, ran.stdout, ran.stderr
        );
        assert_eq!(code(row.tool, &row.approved), 0, "{}", row.approved);
        for arguments in &row.covered {
            assert_eq!(code(row.tool, arguments), 0, "{arguments}");
        }
        for (tool, arguments) in &row.others {
            assert_eq!(code(tool, arguments), 4, "{tool} {arguments}");
        }
        assert!(!lab.work().join("pwn").exists());
    }
}

#[test]
fn p5_a_session_covers_what_was_shown_in_a_served_run() {
    for row in rule_rows() {
        let lab = Lab::new();
        lab.file("evil/Makefile", "all:\n");
        let server = Server::start(&lab, row.settings);
        let asker = call_in_background(&server, row.tool, &row.approved);
        let id = text(&only_one(&server), "id");
        let session = json!({"scope": "session"});
        assert_eq!(decide(&server, &id, "approve", &session).status, 200);
        asker.join().unwrap().unwrap();
        let again = call_in_background(&server, row.tool, &row.approved)
            .join()
            .unwrap();
        assert_eq!(again.unwrap().json()["status"], "ok", "{}", row.approved);
        for (tool, arguments) in &row.others {
            let asker = call_in_background(&server, tool, arguments);
            let id = text(&only_one(&server), "id");
            assert_eq!(decide(&server, &id, "deny", &json!({})).status, 200);
            let outcome = asker.join().unwrap().unwrap().json();
            assert_eq!(outcome["status"], "denied", "{tool} {arguments}: {outcome}");
        }
    }
}

#[test]
fn p18_a_critical_call_is_approved_once_and_keeps_no_rule() {
    let lab = Lab::new();
    lab.file("a.txt", "x");
    let settings = ["-c", "tools.enable=[\"delete_file\"]"];
    let id = waiting(&lab, "delete_file", &json!({"path": "a.txt"}), &settings);
    for scope in ["session", "always"] {
        let scope = [&["--scope", scope][..], &settings].concat();
        refused(&lab, &id, &scope, "needs approval each time");
    }
    let rule = [
        &["--scope", "always", "--rule", "delete_file"][..],
        &settings,
    ]
    .concat();
    refused(&lab, &id, &rule, "needs approval each time");
    let ran = lab.run(&[&["approvals", "approve", &id, "--yes"], &settings[..]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!lab.work().join("a.txt").exists());
}

#[test]
fn always_for_what_a_command_changed_holds_for_that_command_and_those_paths() {
    let lab = Lab::new();
    let line = |line: &str| json!({"command": format!("sh -c '{line}'")});
    let code = |line: &Value| {
        let call = ["call", "run_command", "--args", &line.to_string()].map(str::to_owned);
        lab.run(&call.each_ref().map(String::as_str)).code
    };
    let id = waiting(&lab, "run_command", &line("echo x >> a.txt"), &[]);
    let shown = lab.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!(shown["suggested"], json!(["Edit(/a.txt)"]), "{shown}");
    let ran = lab.run(&["approvals", "approve", &id, "--scope", "always"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let count = || std::fs::read_to_string(lab.work().join("a.txt")).unwrap_or_default();
    // The first repetition returns what the approval applied.
    for expect in ["x\n", "x\nx\n", "x\nx\nx\n"] {
        assert_eq!(code(&line("echo x >> a.txt")), 0);
        assert_eq!(count(), expect);
    }
    for other in [
        "echo y >> a.txt",
        "echo x >> b.txt",
        "echo x >> a.txt; echo x >> c.txt",
    ] {
        assert_eq!(code(&line(other)), 4, "{other}");
    }
    assert_eq!(count(), "x\nx\nx\n");
}

#[test]
fn no_rule_is_offered_under_which_the_call_would_be_asked_about_again() {
    let lab = Lab::new();
    lab.file(".env", "KEY=1");
    let asking = ["-c", "policy.ask=[\"Edit(notes/**)\"]"];
    for (tool, arguments, settings) in [
        ("read_file", json!({"path": ".env"}), &[][..]),
        (
            "write_file",
            json!({"path": "notes/a", "content": "x"}),
            &asking[..],
        ),
    ] {
        let id = waiting(&lab, tool, &arguments, settings);
        let show = [&["approvals", "show", &id, "--json"], settings].concat();
        assert_eq!(lab.run(&show).json()["suggested"], json!([]), "{tool}");
        let scope = [&["--scope", "always"][..], settings].concat();
        refused(&lab, &id, &scope, "no rule would allow just this call");
    }
}

#[test]
fn a_denial_carries_the_person_s_words_and_what_rules_allow() {
    let lab = Lab::new();
    let settings = ["-c", "policy.allow=[\"Edit(/docs/**)\"]"];
    let server = Server::start(&lab, &settings);
    let arguments = json!({"path": "src/a", "content": "x"});
    let asker = call_in_background(&server, "write_file", &arguments);
    let id = text(&only_one(&server), "id");
    let no = json!({"message": "write it into docs"});
    assert_eq!(decide(&server, &id, "deny", &no).status, 200);
    let outcome = asker.join().unwrap().unwrap().json();
    let error = &outcome["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with(": write it into docs"), "{outcome}");
    let advice = error["advice"].as_str().unwrap();
    assert!(
        advice.ends_with("paths that may be changed without approval: /docs/**"),
        "{advice}"
    );
}

#[test]
fn a_process_without_the_requester_s_restrictions_does_not_decide() {
    let lab = Lab::new();
    let write = json!({"path": "a.txt", "content": "x\n"});
    let deny = ["-c", "policy.deny=[\"Read(/conf/key)\"]"];
    let id = waiting(&lab, "write_file", &write, &deny);
    refused(
        &lab,
        &id,
        &[],
        "the deny rule Read(/conf/key), which does not apply here",
    );
    let trusted = [&deny[..], &["--profile", "trusted"]].concat();
    refused(&lab, &id, &trusted, "the profile workspace");
    assert!(!lab.work().join("a.txt").exists());
    // More restrictions are fine.
    let more = ["-c", "policy.deny=[\"Read(/conf/key)\",\"Read(/other)\"]"];
    let ran = lab.run(&[&["approvals", "approve", &id], &more[..]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(lab.work().join("a.txt").exists());
}

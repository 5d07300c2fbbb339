//! `haft call`: outcomes, exit codes, records.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::harness::{Lab, ended};

/// Removes the members that differ each time.
fn steady(mut outcome: Value) -> Value {
    let map = outcome.as_object_mut().unwrap();
    for name in ["run", "call", "duration_ms"] {
        assert!(map.remove(name).is_some(), "no {name}");
    }
    outcome
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn exit_codes_say_how_a_call_ended() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    lab.file("bin.json", "{");
    std::fs::create_dir(lab.work().join("folder")).unwrap();
    let read = |path: &str| json!({ "path": path }).to_string();
    let write = json!({"path": "new.txt", "content": "x"}).to_string();
    let (a, gone, folder, out, abs) = (
        read("a.txt"),
        read("gone.txt"),
        read("folder"),
        read("../a.txt"),
        read("/etc/passwd"),
    );
    let rows: [(&[&str], i32, &str); 18] = [
        (&["read_file", "--args", &a], 0, "ok"),
        (&["read_file", "--args", &gone], 1, "not_found"),
        (&["read_file", "--args", &folder], 1, ""),
        (&["read_file", "--args", &out], 3, "denied"),
        (&["read_file", "--args", &abs], 3, "denied"),
        (&["read_fil", "--args", &a], 2, "not_found"),
        (&["delete_file", "--args", &a], 2, "not_found"),
        (&["read_file", "--args", "{}"], 2, "invalid_arguments"),
        (&["read_file", "--args", "{"], 2, "invalid_arguments"),
        (&["read_file", "--args", "[]"], 2, "invalid_arguments"),
        (
            &["read_file", "--args", r#"{"path":"a.txt","path":"a.txt"}"#],
            2,
            "invalid_arguments",
        ),
        (
            &["read_file", "--args", r#"{"path":"a.txt","nope":1}"#],
            2,
            "invalid_arguments",
        ),
        (&["write_file", "--args", &write], 4, "suspended"),
        (
            &["write_file", "--args", &write, "-c", "approval.mode=deny"],
            3,
            "denied",
        ),
        (
            &["write_file", "--args", &write, "--profile", "read-only"],
            3,
            "denied",
        ),
        (
            &[
                "write_file",
                "--args",
                &write,
                "-c",
                "policy.deny=write_file",
                "--profile",
                "trusted",
            ],
            3,
            "denied",
        ),
        (
            &[
                "write_file",
                "--args",
                &write,
                "-c",
                "approval.mode=auto:high",
            ],
            0,
            "ok",
        ),
        (
            &["write_file", "--args", &write, "--profile", "trusted"],
            0,
            "ok",
        ),
    ];
    for (args, code, kind) in rows {
        let mut all = vec!["call"];
        all.extend(args);
        all.push("--json");
        let ran = lab.run(&all);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
        let outcome = ran.json();
        let said = outcome.pointer("/error/kind").unwrap_or(&outcome["status"]);
        assert!(kind.is_empty() || said == kind, "{args:?}: {outcome}");
        assert_eq!(outcome["ok"], code == 0, "{args:?}");
        assert_eq!(outcome["origin"], "host");
    }
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), rows.len());
    assert!(runs.as_array().unwrap().iter().all(|run| run["calls"] == 1));
    let closed = |run: &&serde_json::Value| run["state"] == "closed";
    // One of them waits for an approval.
    assert_eq!(
        runs.as_array().unwrap().iter().filter(closed).count(),
        rows.len() - 1
    );
}

#[test]
fn an_outcome_has_the_shape_of_the_contract() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let ran = lab.run(&[
        "call",
        "read_file",
        "--args",
        r#"{"path":"a.txt"}"#,
        "--json",
    ]);
    insta::assert_json_snapshot!("outcome-ok", steady(ran.json()));
    let ran = lab.run(&["call", "read_fil", "--json"]);
    insta::assert_json_snapshot!("outcome-unknown", steady(ran.json()));
    let ran = lab.run(&["call", "delete_file", "--json"]);
    insta::assert_json_snapshot!("outcome-off", steady(ran.json()));
    let ran = lab.run(&[
        "call",
        "write_file",
        "--args",
        r#"{"path":"b","content":""}"#,
        "--json",
        "-c",
        "approval.mode=deny",
    ]);
    insta::assert_json_snapshot!("outcome-denied", steady(ran.json()));
}

#[test]
fn people_read_the_text_on_stdout_and_the_why_on_stderr() {
    let lab = Lab::new();
    lab.file("a.txt", "plain \u{1b}[31mred\u{1b}[0m\n");
    let ran = lab.run(&["call", "read_file", "--args", r#"{"path":"a.txt"}"#]);
    assert_eq!(ran.stdout, "plain \\x1b[31mred\\x1b[0m\n");
    assert_eq!(ran.stderr, "");
    let ran = lab.run(&[
        "call",
        "write_file",
        "--args",
        r#"{"path":"b","content":""}"#,
        "-c",
        "approval.mode=deny",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    insta::assert_snapshot!("call-denied", ran.stderr);
}

#[test]
fn arguments_come_from_the_line_a_file_or_stdin() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let file = lab.file("args.json", r#"{"path":"a.txt"}"#);
    let at = format!("@{}", file.display());
    assert_eq!(
        lab.run(&["call", "read_file", "--args", &at]).stdout,
        "hello\n"
    );
    let ran = lab.run_with(&["call", "read_file", "--args", "-"], r#"{"path":"a.txt"}"#);
    assert_eq!(ran.stdout, "hello\n");
    for wrong in ["@nope.json", "@/dev/zero"] {
        let ran = lab.run(&["call", "read_file", "--args", wrong]);
        assert_eq!(ran.code, 2, "{wrong}");
    }
}

#[test]
fn what_a_rule_denies_is_not_shown_and_what_is_haft_s_own_not_read() {
    let lab = Lab::new();
    lab.file(".env", "KEY=1\n");
    lab.file("sub/.env", "KEY=2\n");
    lab.file("open.txt", "KEY=3\n");
    let inside = lab.work().join("state");
    let inside = inside.to_str().unwrap();
    let deny = ["-c", "policy.deny=Read(.env)", "--home", inside];
    let call = |tool: &str, args: Value| {
        let args = args.to_string();
        let mut all = vec!["call", tool, "--args", &args, "--json"];
        all.extend(deny);
        lab.run(&all)
    };
    assert_eq!(call("read_file", json!({"path": ".env"})).code, 3);
    let found = call("grep_files", json!({"pattern": "KEY", "path": "."})).stdout;
    assert!(
        found.contains("open.txt") && !found.contains(".env"),
        "{found}"
    );
    let listed = call("list_files", json!({"hidden": true, "depth": 3})).stdout;
    assert!(
        listed.contains("open.txt") && !listed.contains(".env"),
        "{listed}"
    );
    assert!(!listed.contains("state"), "{listed}");
    assert_eq!(call("read_file", json!({"path": "state/haft.db"})).code, 3);
}

#[test]
fn settings_bind_describe_and_limit_a_tool() {
    let lab = Lab::new();
    let mut text = String::new();
    for line in 0..50 {
        writeln!(text, "line {line}").unwrap();
    }
    lab.file("a.txt", &text);
    lab.user_settings(
        "locale = \"de-AT\"\n[tools.read_file]\nbind = { max_lines = 2 }\ni18n = { de = \"Liest.\" }\n",
    );
    let ran = lab.run(&["call", "read_file", "--args", r#"{"path":"a.txt"}"#]);
    assert_eq!(ran.stdout, "line 0\nline 1\n", "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note: lines 1-2 of 50"),
        "{}",
        ran.stderr
    );
    let ran = lab.run(&[
        "call",
        "read_file",
        "--args",
        r#"{"path":"a.txt","max_lines":9}"#,
    ]);
    assert_eq!(ran.code, 2);
    let tool = lab.run(&["tools", "read_file", "--json"]).json();
    assert_eq!(tool["description"], "Liest.");
    assert!(tool.pointer("/input_schema/properties/max_lines").is_none());
    let ran = lab.run(&["call", "read_file", "-c", "tools.read_file.bind={nope=1}"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
}

#[test]
fn a_large_result_is_kept_and_can_be_read_back() {
    let lab = Lab::new();
    let text = "0123456789abcdef".repeat(2000);
    lab.file("big.txt", &text);
    let small = "limits.inline_tokens=50";
    let args = r#"{"path":"big.txt"}"#;
    let ran = lab.run(&["call", "read_file", "--args", args, "--json", "-c", small]);
    let outcome = ran.json();
    let reference = outcome
        .pointer("/artifacts/0/ref")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    let listed = lab.run(&["artifacts", "list", "--json"]).json();
    let mut kept = listed.as_array().unwrap().iter();
    let entry = kept
        .find(|entry| entry["ref"] == reference.as_str())
        .unwrap();
    for member in ["ref", "media_type", "bytes", "run", "created"] {
        assert!(entry.get(member).is_some(), "{member}: {entry}");
    }
    assert_eq!(
        (&entry["ref"], &entry["run"]),
        (&json!(reference), &outcome["run"])
    );
    let whole = lab.run(&["artifacts", "get", &reference]).stdout;
    assert!(whole.contains(&text[..1000]));
    let part = lab
        .run(&["artifacts", "get", &reference, "--range", "2-5"])
        .stdout;
    assert_eq!(part, whole[2..6]);
    let unknown = format!("sha256-{}", "0".repeat(64));
    for wrong in ["sha256-nope", unknown.as_str()] {
        assert_eq!(lab.run(&["artifacts", "get", wrong]).code, 2);
    }
}

#[test]
fn an_untrusted_folder_cannot_allow() {
    let lab = Lab::new();
    lab.file(
        "haft.toml",
        "[policy]\nprofile = \"trusted\"\nallow = [\"Edit\"]\ndeny = [\"Read(secret.txt)\"]\n",
    );
    lab.file("secret.txt", "s");
    let write = [
        "call",
        "write_file",
        "--args",
        r#"{"path":"b","content":""}"#,
    ];
    let ran = lab.run(&write);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("warning").count(), 1, "{}", ran.stderr);
    let read = ["call", "read_file", "--args", r#"{"path":"secret.txt"}"#];
    assert_eq!(lab.run(&read).code, 3);
    lab.run(&["trust"]);
    assert_eq!(lab.run(&write).code, 0);
    assert_eq!(lab.run(&read).code, 3);
}

#[test]
fn a_state_folder_that_cannot_be_written_refuses_the_call() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let file = lab.file("not-a-folder", "");
    let mut command = lab.command(&["call", "read_file", "--args", r#"{"path":"a.txt"}"#]);
    command.env("HAFT_HOME", file);
    let ran = ended(command.spawn().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("--home"), "{}", ran.stderr);
}

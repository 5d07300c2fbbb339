//! The format of `--json` (contract §9) for tools, policy, runs and doctor.

use serde_json::{Value, json};

use crate::harness::Lab;

/// Checks that exactly these members are present.
fn members(value: &Value, names: &[&str]) {
    let map = value.as_object().unwrap();
    let mut found: Vec<&str> = map.keys().map(String::as_str).collect();
    let mut wanted = names.to_vec();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
#[expect(clippy::too_many_lines, reason = "it compares whole lists")]
fn tools_are_listed_whole_and_as_mcp_declares_them() {
    let lab = Lab::new();
    let tools = lab.run(&["tools", "--json"]).json();
    let read = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "read_file")
        .unwrap();
    members(
        read,
        &[
            "name",
            "title",
            "description",
            "category",
            "risk",
            "exposure",
            "source",
            "input_schema",
            "output_schema",
        ],
    );
    assert_eq!(
        (&read["risk"], &read["exposure"]),
        (&json!("safe"), &json!("listed"))
    );
    assert_eq!(&lab.run(&["tools", "read_file", "--json"]).json(), read);
    let declared = lab.run(&["tools", "--dialect", "mcp"]).json();
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let is_listed = |tool: &&Value| tool["exposure"] == "listed";
    let listed: Vec<Value> = tools
        .as_array()
        .unwrap()
        .iter()
        .filter(is_listed)
        .cloned()
        .collect();
    assert_eq!(names(&declared), names(&Value::Array(listed)));
    assert!(declared[0].get("inputSchema").is_some());
    assert!(!names(&tools).contains(&"delete_file".to_owned()));
    let more = lab
        .run(&["tools", "--json", "-c", "tools.enable=delete_file"])
        .json();
    assert!(names(&more).contains(&"delete_file".to_owned()));
    let less = lab
        .run(&["tools", "--json", "-c", "policy.deny=read_file"])
        .json();
    assert!(!names(&less).contains(&"read_file".to_owned()));
    for (args, advice) in [
        (["tools", "--dialect", "klingon"], "openai-responses"),
        (["tools", "--search", " "], "has no words"),
        (["tools", "delete_file", "--json"], "turns it on"),
        (["tools", "read_fil", "--json"], "did you mean `read_file`?"),
    ] {
        let ran = lab.run(&args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains(advice), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn tools_are_declared_in_every_dialect() {
    let lab = Lab::new();
    for (dialect, schema) in [
        ("anthropic", "/0/input_schema/type"),
        ("openai-responses", "/0/parameters/type"),
        ("openai-chat", "/0/function/parameters/type"),
        ("gemini", "/0/functionDeclarations/0/name"),
    ] {
        let ran = lab.run(&["tools", "read_file", "--dialect", dialect]);
        let declared = ran.json();
        assert!(declared.pointer(schema).is_some(), "{dialect}: {declared}");
        assert!(ran.stdout.contains("read_file"), "{dialect}: {declared}");
    }
}

#[test]
fn explain_is_zero_whatever_the_verdict() {
    let lab = Lab::new();
    lab.file("a.txt", "x");
    let rows = [
        ("read_file", r#"{"path":"a.txt"}"#, "allow"),
        ("write_file", r#"{"path":"b","content":""}"#, "ask"),
        (
            "write_file",
            r#"{"path":".git/config","content":""}"#,
            "deny",
        ),
        ("delete_file", r#"{"path":"a.txt"}"#, "ask"),
    ];
    for (tool, args, verdict) in rows {
        let ran = lab.run(&["policy", "explain", tool, "--args", args, "--json"]);
        assert_eq!(ran.code, 0, "{tool} {args}: {}", ran.stderr);
        let explanation = ran.json();
        assert_eq!(explanation["verdict"], verdict, "{tool} {args}");
        let mut names = vec!["tool", "verdict", "parts", "layers"];
        if tool == "delete_file" {
            names.push("enabled");
            assert_eq!(explanation["enabled"], false);
        }
        members(&explanation, &names);
        members(
            &explanation["parts"][0],
            &["kind", "value", "verdict", "rule", "layer"],
        );
        members(
            &explanation["layers"][0],
            &["layer", "verdict", "rule", "reason"],
        );
    }
    let ran = lab.run(&["policy", "explain", "write_file", "--args", "{}"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        !lab.home().join("runs").exists(),
        "an explanation is no run"
    );
}

#[test]
fn a_rule_s_layer_is_told() {
    let lab = Lab::new();
    lab.user_settings("[policy]\ndeny = [\"Edit(/src/**)\"]\n");
    let args = r#"{"path":"src/a.rs","content":""}"#;
    let explanation = lab
        .run(&["policy", "explain", "write_file", "--args", args, "--json"])
        .json();
    let part = explanation["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["kind"] == "write")
        .unwrap();
    assert_eq!(
        (&part["verdict"], &part["layer"]),
        (&json!("deny"), &json!("user"))
    );
    assert_eq!(part["rule"], "Edit(/src/**)");
}

#[test]
fn examples_are_tests_of_the_rules() {
    let lab = Lab::new();
    let ran = lab.run(&["policy", "check", "--json"]);
    assert_eq!(
        (ran.code, ran.json()),
        (0, json!({"ok": true, "failures": []}))
    );
    lab.user_settings(
        "[policy]\nallow = [\n  { rule = \"Bash(git status)\", match = [\"git push\"] },\n]\n",
    );
    let ran = lab.run(&["policy", "check", "--json"]);
    assert_eq!(ran.code, 5);
    let report = ran.json();
    assert_eq!(report["ok"], false);
    members(
        &report["failures"][0],
        &["rule", "example", "expected", "got"],
    );
    assert_eq!(report["failures"][0]["example"], "git push");
    // Everything else refuses to run under a policy that violates its own examples, and says where.
    let ran = lab.run(&["call", "read_file"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("config.toml:3:3"), "{}", ran.stderr);
}

#[test]
fn the_effective_policy_is_shown() {
    let lab = Lab::new();
    let shown = lab
        .run(&["policy", "show", "--json", "-c", "policy.ask=Edit(/a)"])
        .json();
    assert_eq!(shown["profile"], "workspace");
    assert_eq!(shown["rules"][0]["rule"], "Edit(/a)");
    assert_eq!(shown["rules"][0]["layer"], "-c");
    assert!(!shown["guards"].as_array().unwrap().is_empty());
}

#[test]
fn runs_are_listed_shown_and_verified() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    for _ in 0..2 {
        lab.run(&["call", "read_file", "--args", r#"{"path":"a.txt"}"#]);
    }
    let listed = lab.run(&["runs", "list", "--json"]).json();
    let newest = &listed[0];
    for member in ["run", "state", "started", "calls"] {
        assert!(newest.get(member).is_some(), "{member}");
    }
    assert!(listed[0]["started"].as_str() >= listed[1]["started"].as_str());
    let run = newest["run"].as_str().unwrap();
    let shown = lab.run(&["runs", "show", run, "--json"]).json();
    let kinds: Vec<&str> = shown["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["run_started", "call_started", "call_ended", "closed"]
    );
    let verified = lab.run(&["runs", "verify", run, "--json"]);
    assert_eq!(verified.code, 0);
    let report = verified.json();
    assert_eq!(
        (&report["ok"], &report["lines"], &report["first_bad"]),
        (&json!(true), &json!(4), &Value::Null)
    );
    for (args, code) in [
        (["runs", "verify", "nope"], 2),
        (["runs", "show", "../x"], 2),
        (["runs", "resume", run], 2),
    ] {
        assert_eq!(lab.run(&args).code, code, "{args:?}");
    }
}

/// A way to damage the lines of a record.
type Spoil = fn(Vec<&str>) -> Vec<String>;

#[test]
fn a_cut_edited_or_reordered_archive_fails() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let run = || {
        let ran = lab.run(&[
            "call",
            "read_file",
            "--args",
            r#"{"path":"a.txt"}"#,
            "--json",
        ]);
        ran.json()["run"].as_str().unwrap().to_owned()
    };
    let spoil: [Spoil; 3] = [
        |lines| lines[..3].iter().map(|&l| l.to_owned()).collect(),
        |lines| lines.iter().map(|l| l.replace("a.txt", "b.txt")).collect(),
        |lines| [0, 2, 1, 3].iter().map(|&i| lines[i].to_owned()).collect(),
    ];
    for spoil in spoil {
        let run = run();
        let path = lab.home().join("runs").join(&run).join("events.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let spoilt = spoil(text.lines().collect()).join("\n") + "\n";
        assert_ne!(spoilt, text);
        std::fs::write(&path, spoilt).unwrap();
        let ran = lab.run(&["runs", "verify", &run, "--json"]);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        let report = ran.json();
        assert_eq!(
            (&report["ok"], &report["state"]),
            (&json!(false), &json!("closed"))
        );
        assert!(report["first_bad"].is_u64(), "{report}");
    }
}

#[test]
fn doctor_says_what_works() {
    let ran = Lab::new().run(&["doctor", "--json"]);
    let report = ran.json();
    members(&report, &["checks", "sandbox"]);
    members(&report["sandbox"], &["backend", "strength"]);
    for check in report["checks"].as_array().unwrap() {
        assert!(
            check["name"].is_string() && check["ok"].is_boolean() && check["detail"].is_string()
        );
        assert!(
            check["ok"] == true || check["advice"].is_string(),
            "{check}"
        );
    }
}

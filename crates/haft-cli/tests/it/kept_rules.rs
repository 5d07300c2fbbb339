//! Rules stored with approvals: listed, edited and removed, by command and over HTTP.

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Request, Server, get, post};

/// Approves a write permanently.
fn keep(lab: &Lab) {
    keep_write(lab, "a.txt");
}

/// Makes the request for a write.
fn ask_to_write(lab: &Lab, path: &str) -> String {
    let write = json!({"path": path, "content": "x"}).to_string();
    let asked = lab.run(&["call", "write_file", "--args", &write, "--json"]);
    asked.json()["approval"].as_str().unwrap().to_owned()
}

fn keep_write(lab: &Lab, path: &str) {
    let id = ask_to_write(lab, path);
    let ran = lab.run(&["approvals", "approve", &id, "--scope", "always"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

fn list(lab: &Lab) -> Vec<Value> {
    let listed = lab.run(&["policy", "rules", "--json"]).json();
    listed.as_array().unwrap().clone()
}

fn explained(lab: &Lab, path: &str) -> String {
    let args = json!({"path": path, "content": "y"}).to_string();
    let ran = lab.run(&["policy", "explain", "write_file", "--args", &args, "--json"]);
    ran.json()["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn a_kept_rule_is_listed_edited_and_removed() {
    let lab = Lab::new();
    assert_eq!(list(&lab), Vec::<Value>::new());
    keep(&lab);
    let rules = list(&lab);
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(
        (&rules[0]["rule"], &rules[0]["tool"]),
        (&json!("Edit(/a.txt)"), &json!("write_file"))
    );
    assert!(rules[0]["reason"].as_str().unwrap().contains("always"));
    let id = rules[0]["id"].as_str().unwrap();
    let table = lab.run(&["policy", "rules"]);
    assert!(
        table.stdout.contains(id) && table.stdout.contains("Edit(/a.txt)"),
        "{}",
        table.stdout
    );
    assert_eq!(
        (explained(&lab, "a.txt"), explained(&lab, "docs/b")),
        ("allow".into(), "ask".into())
    );

    // An invalid rule changes nothing, nor does an unknown id.
    for (args, code) in [
        (["policy", "rules", "edit", id, "Edit("], 2),
        (["policy", "rules", "edit", "r-none", "Edit(/docs/**)"], 2),
    ] {
        assert_eq!(lab.run(&args).code, code, "{args:?}");
        assert_eq!(list(&lab), rules);
    }
    let ran = lab.run(&["policy", "rules", "edit", &id[..5], "Edit(/docs/**)"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("Edit(/a.txt) is now Edit(/docs/**)"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (explained(&lab, "a.txt"), explained(&lab, "docs/b")),
        ("ask".into(), "allow".into())
    );
    let mode = r#"{"path":"docs/b","content":"y","mode":"append"}"#;
    assert_eq!(lab.run(&["call", "write_file", "--args", mode]).code, 4);
    let id = list(&lab)[0]["id"].as_str().unwrap().to_owned();
    let ran = lab.run(&[
        "policy",
        "rules",
        "edit",
        &id,
        "Edit(/docs/**)",
        "--any-call",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(list(&lab)[0].get("tool"), None);
    let id = list(&lab)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["policy", "rules", "remove", &id]).code, 0);
    assert_eq!(list(&lab), Vec::<Value>::new());
    assert_eq!(explained(&lab, "docs/b"), "ask");
    assert_eq!(lab.run(&["policy", "rules", "remove", &id]).code, 2);
}

#[test]
fn the_operator_edits_and_removes_kept_rules_over_http_and_they_count_at_once() {
    let lab = Lab::new();
    keep(&lab);
    let server = Server::start(&lab, &[]);
    let verdict = |path: &str| {
        let body = json!({"tool": "write_file", "arguments": {"path": path, "content": "y"}});
        let body = body.to_string();
        let reply = server.ask(&post("/api/v1/policy/explain", &server.operator, &body));
        reply.json()["verdict"].as_str().unwrap().to_owned()
    };
    let rules = "/api/v1/policy/rules";
    let listed = || server.ask(&get(rules, Some(&server.operator))).json();
    assert_eq!(server.ask(&get(rules, Some(&server.call))).status, 403);
    let id = listed()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("{rules}/{id}");
    let put = |path: &str, token: &str, body: &Value| {
        let body = body.to_string();
        let put = Request {
            method: "PUT",
            ..post(path, token, &body)
        };
        server.ask(&put).status
    };
    let docs = json!({"rule": "Edit(/docs/**)"});
    assert_eq!(put(&path, &server.call, &docs), 403);
    assert_eq!(put(&path, &server.operator, &json!({"rule": "Edit("})), 400);
    assert_eq!(
        put(&format!("{rules}/r-none"), &server.operator, &docs),
        404
    );
    assert_eq!(
        (verdict("a.txt"), verdict("docs/b")),
        ("allow".into(), "ask".into())
    );
    assert_eq!(put(&path, &server.operator, &docs), 200);
    assert_eq!(
        (verdict("a.txt"), verdict("docs/b")),
        ("ask".into(), "allow".into())
    );
    let id = listed()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("{rules}/{id}");
    let delete = |token: &str| {
        let delete = Request {
            method: "DELETE",
            ..get(&path, Some(token))
        };
        server.ask(&delete).status
    };
    assert_eq!(delete(&server.call), 403);
    assert_eq!(delete(&server.operator), 200);
    assert_eq!(verdict("docs/b"), "ask");
    assert_eq!(listed(), json!([]));
}

/// Returns the only file of kept rules.
fn kept_file(lab: &Lab) -> std::path::PathBuf {
    let folder = lab.home().join("rules");
    let mut files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|end| end == "toml"))
        .unwrap()
}

#[test]
fn h1_a_rule_is_kept_after_the_last_one_was_removed() {
    let lab = Lab::new();
    for path in ["a.txt", "b.txt"] {
        keep_write(&lab, path);
        let rules = list(&lab);
        assert_eq!(rules.len(), 1, "{rules:?}");
        let id = rules[0]["id"].as_str().unwrap().to_owned();
        let ran = lab.run(&["policy", "rules", "remove", &id]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(lab.run(&["tools"]).code, 0);
    }
}

#[test]
fn h1_a_file_that_an_earlier_version_damaged_is_read_and_mended() {
    let lab = Lab::new();
    keep(&lab);
    let path = kept_file(&lab);
    let sound = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("[policy]\nallow = []\n{sound}")).unwrap();
    assert_eq!(list(&lab).len(), 1);
    assert_eq!(explained(&lab, "a.txt"), "allow");
    let id = list(&lab)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        lab.run(&["policy", "rules", "edit", &id, "Edit(/b.txt)"])
            .code,
        0
    );
    assert_eq!(explained(&lab, "b.txt"), "allow");
    // A file that cannot be repaired is reported with what to do, and has no effect.
    std::fs::write(&path, "[policy\n").unwrap();
    let ran = lab.run(&["tools"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("move the file away"), "{}", ran.stderr);
}

#[test]
fn h2_a_kept_rule_that_does_not_load_covers_nothing_and_can_be_removed() {
    for (wrong, says) in [
        (
            "[[policy.allow]]\nrule = \"write_fil(mode:overwrite)\"\n",
            "write_fil",
        ),
        (
            "[[policy.allow]]\nrule = \"connect(program:curl)\"\n",
            "connect",
        ),
        (
            "[[policy.allow]]\nrule = \"apply_changes(part:x)\"\n",
            "apply_changes",
        ),
        (
            "[[policy.allow]]\nrule = \"frobnicate(a:b)\"\n",
            "frobnicate",
        ),
        (
            "[[policy.allow]]\nrule = \"todo_write(x:y)\"\n",
            "unknown parameter",
        ),
        ("[[policy.allow]]\nrule = \"Edit(\"\n", "bracket"),
        (
            "[[policy.allow]]\nrule = \"*(a:b)\"\n",
            "must name its tool",
        ),
        (
            "[[policy.allow]]\nrule = \"Edit(/c)\"\ntool = \"write_file\"\n",
            "limited to calls",
        ),
        (
            "[[policy.allow]]\nrule = \"Edit(/c)\"\nmatch = [\"d\"]\n",
            "example",
        ),
        ("[[policy.allow]]\nrle = \"Edit(/c)\"\n", "rle"),
    ] {
        let lab = Lab::new();
        keep(&lab);
        let path = kept_file(&lab);
        let sound = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{sound}\n{wrong}")).unwrap();
        let ran = lab.run(&["tools"]);
        assert_eq!(ran.code, 0, "{wrong}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{wrong}: {}", ran.stderr);
        // The valid one applies; the invalid one is shown and can be removed.
        assert_eq!(explained(&lab, "a.txt"), "allow", "{wrong}");
        assert_eq!(explained(&lab, "c"), "ask", "{wrong}");
        let rules = list(&lab);
        assert_eq!(rules.len(), 2, "{wrong}: {rules:?}");
        assert!(
            rules[1]["fault"].as_str().unwrap().contains(says),
            "{wrong}: {rules:?}"
        );
        assert_eq!(rules[0].get("fault"), None, "{wrong}");
        let id = rules[1]["id"].as_str().unwrap();
        let ran = lab.run(&["policy", "rules", "remove", id]);
        assert_eq!(ran.code, 0, "{wrong}: {}", ran.stderr);
        assert_eq!(list(&lab), rules[..1], "{wrong}");
        assert!(!lab.run(&["tools"]).stderr.contains(says), "{wrong}");
    }
}

#[test]
fn h2_no_rule_with_an_unknown_name_is_kept_however_it_comes() {
    let lab = Lab::new();
    keep(&lab);
    let rules = list(&lab);
    let id = rules[0]["id"].as_str().unwrap().to_owned();
    for (path, rule) in [
        ("1", "write_fil(mode:overwrite)"),
        ("2", "connect(program:curl)"),
        ("3", "apply_changes(part:x)"),
        ("4", "frobnicate(a:b)"),
        ("5", "todo_write(x:y)"),
    ] {
        let ran = lab.run(&["policy", "rules", "edit", &id, rule]);
        assert_eq!(ran.code, 2, "{rule}: {}", ran.stderr);
        assert!(ran.stderr.contains("unknown"), "{rule}: {}", ran.stderr);
        let proposal = json!({"rule": rule, "reason": "why not"}).to_string();
        let ran = lab.run(&["call", "propose_rule", "--args", &proposal]);
        assert_eq!(ran.code, 3, "{rule}: {}{}", ran.stdout, ran.stderr);
        let request = ask_to_write(&lab, path);
        let always = [
            "approvals",
            "approve",
            &request,
            "--scope",
            "always",
            "--rule",
            rule,
        ];
        let ran = lab.run(&always);
        assert_eq!(ran.code, 2, "{rule}: {}", ran.stderr);
        assert_eq!(lab.run(&["approvals", "deny", &request]).code, 0);
        assert_eq!(list(&lab), rules, "{rule}");
        assert_eq!(lab.run(&["tools"]).code, 0, "{rule}");
    }
    // A tool of a removed server is a one-line warning.
    let ran = lab.run(&[
        "policy",
        "rules",
        "edit",
        &id,
        "github.get_issue(id:5)",
        "--any-call",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = lab.run(&["tools"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("github.get_issue"), "{}", ran.stderr);
}

#[test]
fn a_kept_rule_that_looks_like_a_reference_to_a_secret_stays_as_it_is() {
    let lab = Lab::new();
    keep(&lab);
    let id = list(&lab)[0]["id"].as_str().unwrap().to_owned();
    for rule in [r"Bash(echo '${env:NOWHERE}')", r"Bash(echo '${a:b}')"] {
        let id = list(&lab)[0]["id"]
            .as_str()
            .map_or_else(|| id.clone(), str::to_owned);
        let ran = lab.run(&["policy", "rules", "edit", &id, rule]);
        assert_eq!(ran.code, 0, "{rule}: {}", ran.stderr);
        assert_eq!(list(&lab)[0]["rule"], rule);
    }
}

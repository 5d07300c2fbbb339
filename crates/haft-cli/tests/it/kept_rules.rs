//! Rules kept with approvals: listed, edited and removed, by command and over HTTP.

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Request, Server, get, post};

const WRITE: &str = r#"{"path":"a.txt","content":"x"}"#;

/// Approves a write for good.
fn keep(lab: &Lab) {
    let asked = lab.run(&["call", "write_file", "--args", WRITE, "--json"]);
    let id = asked.json()["approval"].as_str().unwrap().to_owned();
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

    // A text that is no rule changes nothing, nor does an id that nothing has.
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

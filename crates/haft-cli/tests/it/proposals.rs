//! Rules that a client proposes: reviewed in the inbox, accepted, edited or denied there, and kept like others.

use serde_json::{Value, json};

use crate::approvals::{call_in_background, decide, only_one, text};
use crate::harness::Lab;
use crate::serve::{Server, get, post};

fn proposal(rule: &str) -> Value {
    json!({"rule": rule, "reason": "the docs are edited <all> day"})
}

fn rules(server: &Server) -> Vec<String> {
    let rules = server
        .ask(&get("/api/v1/policy/rules", Some(&server.operator)))
        .json();
    let rules = rules.as_array().unwrap().iter();
    rules.map(|rule| text(rule, "rule")).collect()
}

/// Makes a call, and lets the operator decide.
fn decided(server: &Server, rule: &str, decision: &str, body: &Value) -> Value {
    let asker = call_in_background(server, "propose_rule", &proposal(rule));
    let id = text(&only_one(server), "id");
    assert_eq!(decide(server, &id, decision, body).status, 200);
    asker.join().unwrap().unwrap().json()
}

#[test]
fn a_proposed_rule_is_in_force_once_a_person_accepts_it_and_not_before() {
    let lab = Lab::new();
    // No rule, profile or automatic approval accepts a proposal.
    let settings = [
        "--profile",
        "trusted",
        "-c",
        "policy.allow=[\"*\", \"propose_rule\"]",
    ];
    let server = Server::start(&lab, &settings);
    let asker = call_in_background(&server, "propose_rule", &proposal("Edit(/docs/**)"));
    let request = only_one(&server);
    let fact = request["fact"]["text"].as_str().unwrap();
    assert_eq!(
        fact,
        "allow Edit(/docs/**) · “the docs are edited <all> day”"
    );
    assert_eq!(rules(&server), Vec::<String>::new());
    let id = text(&request, "id");
    let path = format!("/api/v1/approvals/{id}/rule");
    let tried = server.ask(&get(&path, Some(&server.operator))).json();
    assert_eq!(
        (&tried["ok"], &tried["covered"]),
        (&json!(true), &json!(0)),
        "{tried}"
    );
    for scope in ["session", "always"] {
        let reply = decide(&server, &id, "approve", &json!({"scope": scope}));
        assert_ne!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(decide(&server, &id, "approve", &json!({})).status, 200);
    let outcome = asker.join().unwrap().unwrap().json();
    assert_eq!(outcome["status"], "ok", "{outcome}");
    assert_eq!(rules(&server), ["Edit(/docs/**)"]);
    let listed = lab.run(&["policy", "rules", "--json"]).json();
    assert!(text(&listed[0], "reason").contains(&id), "{listed}");
}

#[test]
fn a_person_edits_or_denies_a_proposal() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let edit = json!({"edit": {"rule": "Edit(/docs/a.md)", "reason": "that one"}});
    let outcome = decided(&server, "Edit(/docs/**)", "approve", &edit);
    assert_eq!(outcome["data"]["rule"], "Edit(/docs/a.md)", "{outcome}");
    assert_eq!(rules(&server), ["Edit(/docs/a.md)"]);
    let no = json!({"message": "ask me each time"});
    let outcome = decided(&server, "Edit(/src/**)", "deny", &no);
    assert_eq!(outcome["status"], "denied", "{outcome}");
    assert!(
        outcome["error"]["message"]
            .as_str()
            .unwrap()
            .contains("ask me each time")
    );
    assert_eq!(rules(&server), ["Edit(/docs/a.md)"]);
}

#[test]
fn wide_proposals_are_refused_at_once_and_a_run_proposes_a_few() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let ask = |rule: &str| {
        let body = json!({"tool": "propose_rule", "arguments": proposal(rule)}).to_string();
        server
            .ask(&post("/api/v1/calls", &server.call, &body))
            .json()
    };
    for rule in [
        "Bash(*)",
        "Edit",
        "*",
        "Read(.env)",
        "Edit(.git/**)",
        "Network(npm)",
    ] {
        let outcome = ask(rule);
        assert_eq!(outcome["status"], "denied", "{rule}: {outcome}");
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(message.contains("not proposed to the user"), "{message}");
    }
    let no = json!({});
    for number in 0..5 {
        let rule = format!("Edit(/docs/{number}.md)");
        assert_eq!(decided(&server, &rule, "deny", &no)["status"], "denied");
    }
    let outcome = ask("Edit(/docs/5.md)");
    assert_eq!(outcome["status"], "denied", "{outcome}");
    assert!(
        outcome["error"]["message"]
            .as_str()
            .unwrap()
            .contains("maximum number of rules"),
        "{outcome}"
    );
    assert_eq!(rules(&server), Vec::<String>::new());
}

#[test]
fn past_calls_that_a_proposal_would_have_covered_are_shown_with_it() {
    let lab = Lab::new();
    let write = r#"{"path":"docs/a.md","content":"x"}"#;
    for _ in 0..2 {
        lab.run(&[
            "call",
            "write_file",
            "--args",
            write,
            "--profile",
            "trusted",
        ]);
    }
    let args = proposal("Edit(/docs/**)").to_string();
    let ran = lab.run(&["call", "propose_rule", "--args", &args, "--json"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let id = text(&ran.json(), "approval");
    let shown = lab.run(&["approvals", "show", &id]);
    assert!(
        shown
            .stdout
            .contains("would have covered 2 of the last 3 calls"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("docs/a.md"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("“the docs are edited <all> day”"),
        "{}",
        shown.stdout
    );
    let ran = lab.run(&["approvals", "approve", &id, "--yes"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let explain = ["policy", "explain", "write_file", "--args", write, "--json"];
    assert_eq!(lab.run(&explain).json()["verdict"], "allow");
}

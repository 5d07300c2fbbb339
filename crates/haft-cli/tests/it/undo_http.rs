//! `GET /api/v1/runs/{run}/changes` and `POST /api/v1/runs/{run}/undo`: what `haft runs diff | undo` do, only for the operator.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Reply, Server, get, post};

const TRUSTED: [&str; 2] = ["--profile", "trusted"];

/// Returns the outcome of a call with the call token.
fn call(server: &Server, tool: &str, arguments: &Value) -> Value {
    let body = json!({"tool": tool, "arguments": arguments}).to_string();
    let outcome = server
        .ask(&post("/api/v1/calls", &server.call, &body))
        .json();
    assert_eq!(outcome["status"], "ok", "{outcome}");
    outcome
}

/// Returns a run whose first call writes a file and whose second runs a command that changes two.
fn changed(lab: &Lab, server: &Server) -> String {
    lab.file("old.txt", "one\ntwo\n");
    lab.file("gone.txt", "still here\n");
    call(
        server,
        "write_file",
        &json!({"path": "new.txt", "content": "new\n"}),
    );
    let command = json!({"command": "sed -i s/two/2/ old.txt; rm gone.txt"});
    let outcome = call(server, "run_command", &command);
    outcome["run"].as_str().unwrap().to_owned()
}

fn text(lab: &Lab, name: &str) -> Option<String> {
    fs::read_to_string(lab.work().join(name)).ok()
}

/// Returns the texts of the three files.
fn texts(lab: &Lab) -> [Option<String>; 3] {
    ["new.txt", "old.txt", "gone.txt"].map(|name| text(lab, name))
}

fn read(server: &Server, path: &str) -> Value {
    let reply = server.ask(&get(path, Some(&server.operator)));
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    reply.json()
}

fn undo(server: &Server, run: &str, body: &Value) -> Reply {
    let path = format!("/api/v1/runs/{run}/undo");
    server.ask(&post(&path, &server.operator, &body.to_string()))
}

fn actions(list: &Value) -> Vec<(&str, &str)> {
    let list = list.as_array().unwrap().iter();
    let mut list: Vec<_> = list
        .map(|one| {
            (
                one["path"].as_str().unwrap(),
                one["action"].as_str().unwrap(),
            )
        })
        .collect();
    list.sort_unstable();
    list
}

#[test]
fn the_operator_sees_what_a_run_changed_and_undoes_it() {
    let lab = Lab::new();
    let server = Server::start(&lab, &TRUSTED);
    let run = changed(&lab, &server);
    let after = texts(&lab);
    let changes = read(&server, &format!("/api/v1/runs/{run}/changes"));
    assert_eq!(
        actions(&changes["changes"]),
        [
            ("gone.txt", "delete"),
            ("new.txt", "create"),
            ("old.txt", "modify")
        ]
    );
    let printed = lab.run(&["runs", "diff", &run, "--json"]).json();
    assert_eq!(changes, printed);
    // The call token can neither read nor undo it, even for its own run.
    for request in [
        get(&format!("/api/v1/runs/{run}/changes"), Some(&server.call)),
        post(&format!("/api/v1/runs/{run}/undo"), &server.call, "{}"),
    ] {
        assert_eq!(server.ask(&request).status, 403, "{}", request.path);
    }
    let preview = undo(&server, &run, &json!({"preview": true}));
    assert_eq!(preview.status, 200, "{}", preview.body);
    let plan = preview.json();
    assert_eq!(
        actions(&plan["steps"]),
        [
            ("gone.txt", "restore"),
            ("new.txt", "remove"),
            ("old.txt", "restore")
        ]
    );
    assert_eq!(texts(&lab), after);
    drop(server);
    // Under this profile the undo needs an operator's approval: the token is the operator's.
    let server = Server::start(&lab, &[]);
    let done = undo(&server, &run, &json!({"plan": plan["plan"]})).json();
    assert_eq!(done["status"], "ok", "{done}");
    assert_ne!(done["run"], json!(run));
    let before = [None, Some("one\ntwo\n"), Some("still here\n")];
    assert_eq!(texts(&lab), before.map(|text| text.map(str::to_owned)));
    // It is a run of its own: recorded with the operator, sound, and can be undone like any other.
    let again = done["run"].as_str().unwrap();
    let calls = read(&server, &format!("/api/v1/runs/{again}"));
    let by = calls[0]["decided_by"].as_str().unwrap_or_default();
    assert!(!by.is_empty(), "{calls}");
    assert_eq!(calls[0]["tool"], "undo_changes");
    assert_eq!(
        read(&server, &format!("/api/v1/runs/{again}/verify"))["ok"],
        true
    );
    let twice = undo(&server, &run, &json!({}));
    assert_eq!(twice.status, 409, "{}", twice.body);
    assert!(twice.body.contains("nothing to undo"), "{}", twice.body);
    let back = undo(&server, again, &json!({})).json();
    assert_eq!((&back["status"], texts(&lab)), (&json!("ok"), after));
}

#[test]
fn one_call_is_undone_and_the_others_stay() {
    let lab = Lab::new();
    let server = Server::start(&lab, &TRUSTED);
    let run = changed(&lab, &server);
    let changes = read(&server, &format!("/api/v1/runs/{run}/changes?call=call-2"));
    assert_eq!(
        actions(&changes["changes"]),
        [("gone.txt", "delete"), ("old.txt", "modify")]
    );
    let done = undo(&server, &run, &json!({"call": "call-2"})).json();
    assert_eq!(done["status"], "ok", "{done}");
    let texts = texts(&lab);
    assert_eq!(
        texts.each_ref().map(Option::as_deref),
        [Some("new\n"), Some("one\ntwo\n"), Some("still here\n")]
    );
}

#[test]
fn nothing_is_undone_that_is_not_as_the_run_left_it_or_as_it_was_shown() {
    let lab = Lab::new();
    let server = Server::start(&lab, &TRUSTED);
    let run = changed(&lab, &server);
    let shown = undo(&server, &run, &json!({"preview": true})).json();
    // One more change by the run: the undo would do more than was shown.
    call(
        &server,
        "write_file",
        &json!({"path": "more.txt", "content": "more\n"}),
    );
    let other = undo(&server, &run, &json!({"plan": shown["plan"]}));
    assert_eq!(other.status, 409, "{}", other.body);
    assert!(other.body.contains("not what was shown"), "{}", other.body);
    lab.file("old.txt", "mine\n");
    let after = texts(&lab);
    for body in [json!({"preview": true}), json!({})] {
        let conflict = undo(&server, &run, &body);
        assert_eq!(conflict.status, 409, "{}", conflict.body);
        let error = &conflict.json()["error"];
        assert_eq!(
            (&error["kind"], &error["conflicts"]),
            (
                &json!("conflict"),
                &json!([{"path": "old.txt", "why": "it was changed after the run"}])
            )
        );
        assert!(error["advice"].is_string(), "{error}");
    }
    assert_eq!(texts(&lab), after);
    assert_eq!(text(&lab, "more.txt").as_deref(), Some("more\n"));
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let lab = Lab::new();
    let away = tempfile::tempdir().unwrap();
    let away = away.path().to_str().unwrap();
    let written = lab.run(
        &[
            &["call", "write_file", "--json", "--workspace", away][..],
            &["--args", r#"{"path":"a.txt","content":"a\n"}"#],
            &TRUSTED,
        ]
        .concat(),
    );
    let elsewhere = written.json()["run"].as_str().unwrap().to_owned();
    let denied = ["-c", "policy.deny=[\"Edit(/old.txt)\"]"];
    let server = Server::start(&lab, &TRUSTED);
    let run = changed(&lab, &server);
    let rows = [
        (&*elsewhere, "{}", 409, "works in"),
        ("20200101-000000-00000000", "{}", 404, "20200101"),
        ("x", "{}", 404, "x"),
        (&run, "{\"calls\":1}", 400, "calls"),
        (&run, "{\"call\":\"call-9\"}", 409, "nothing to undo"),
    ];
    for (run, body, status, says) in rows {
        let path = format!("/api/v1/runs/{run}/undo");
        let reply = server.ask(&post(&path, &server.operator, body));
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.body);
        assert!(reply.body.contains(says), "{path} {body}: {}", reply.body);
    }
    drop(server);
    // A deny rule applies to the operator's undo, too.
    let after = texts(&lab);
    let server = Server::start(&lab, &[&TRUSTED[..], &denied].concat());
    let outcome = undo(&server, &run, &json!({})).json();
    assert_eq!(
        (&outcome["status"], texts(&lab)),
        (&json!("denied"), after),
        "{outcome}"
    );
}

#[test]
fn secrets_of_the_settings_are_not_in_the_diffs() {
    let lab = Lab::new();
    let server = Server::start(&lab, &TRUSTED);
    let key = format!("AKIA{}", "ABCDEFGHIJKLMNOP");
    let content = format!("before\nkey = {key}\nafter\n");
    let outcome = call(
        &server,
        "write_file",
        &json!({"path": "conf.ini", "content": content}),
    );
    let run = outcome["run"].as_str().unwrap();
    let changes = read(&server, &format!("/api/v1/runs/{run}/changes"));
    let diff = changes["changes"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("+before\n") && !diff.contains(&key), "{diff}");
}

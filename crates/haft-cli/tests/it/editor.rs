//! `haft run --acp`: an editor with a session, based on the protocol's official crate.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent_run::{APPEND, LONG, calls, says, script};
use crate::editor_client::Editor;
use crate::harness::{Lab, ended};
use crate::signals::jailed;

/// Returns the kinds of a request's options.
fn kinds(asked: &Value) -> Vec<&str> {
    let options = asked["request"]["options"].as_array().unwrap().iter();
    options
        .filter_map(|option| option["kind"].as_str())
        .collect()
}

#[test]
fn an_edit_is_asked_about_shown_as_a_diff_and_a_list_of_tasks_is_a_plan() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let tasks = r#"{ id = "t", tool = "todo_write", arguments = { tasks = [{ id = "1", content = "look", status = "completed" }, { id = "2", content = "tell" }] } }"#;
    let turns = format!(
        "[[turns]]\nexpect.user = \"The user refers to the file a.txt\"\nsay = [{{ text = \"I add. \" }}, {{ call = {APPEND} }}]\n{}{}",
        calls(&[tasks]),
        says("Added.")
    );
    let Some(mut editor) = Editor::start(&lab, &["--model", &script(&lab, &turns)]) else {
        return;
    };
    let session = editor.open(&lab);
    let link = format!("file://{}/a.txt", lab.work().display());
    let prompt = json!([
        {"type": "text", "text": "add x to"},
        {"type": "resource_link", "name": "a.txt", "uri": link},
    ]);
    let prompt = editor.begin(json!({"do": "prompt", "session": session, "prompt": prompt}));
    let asked = editor.permission();
    assert_eq!(
        kinds(&asked),
        ["allow_once", "allow_always", "allow_always", "reject_once"]
    );
    let call = &asked["request"]["toolCall"];
    let path = lab.work().join("a.txt");
    let diff = json!({"type": "diff", "path": path, "oldText": "one\n", "newText": "one\nx\n"});
    assert_eq!(call["content"][0], diff, "{call}");
    assert_eq!(call["status"], "pending", "{call}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "one\n",
        "asked before"
    );
    editor.permit(&asked, "allow-once");
    let done = editor.ended(prompt);
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nx\n");
    assert_eq!(editor.text(), "I add. Added.");
    check_updates(&editor, call, &path, &diff);
    assert_eq!(editor.peer.end().code, 0);
    let run = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(
        (&run[0]["run"], &run[0]["door"], &run[0]["client"]),
        (&json!(session), &json!("acp"), &json!("acp-client")),
        "{run}"
    );
    assert_eq!(lab.run(&["runs", "verify", &session]).code, 0);
}

/// Checks the card of the edit that was asked about, and the task list as a plan.
fn check_updates(editor: &Editor, call: &Value, path: &Path, diff: &Value) {
    let begun = editor.updates("tool_call")[0];
    assert_eq!(begun["toolCallId"], call["toolCallId"]);
    assert_eq!(
        (&begun["kind"], &begun["locations"]),
        (&json!("edit"), &json!([{"path": path}]))
    );
    let ends = editor.updates("tool_call_update");
    let end = ends
        .iter()
        .find(|update| update["status"] == "completed")
        .unwrap();
    assert_eq!(end["content"][0], *diff, "{end}");
    assert_eq!(end["rawOutput"]["status"], "ok", "{end}");
    let plan = editor.updates("plan")[0];
    let entry =
        |content, status| json!({"content": content, "priority": "medium", "status": status});
    let entries = json!([entry("look", "completed"), entry("tell", "pending")]);
    assert_eq!(plan["entries"], entries);
}

#[test]
fn what_is_rejected_does_not_run_and_what_is_allowed_for_the_session_is_not_asked_again() {
    for (option, answers, written) in [("reject", 1, 0), ("allow-session", 1, 2), ("other", 0, 0)] {
        let lab = Lab::new();
        let again = APPEND.replace("\"w\"", "\"v\"");
        let turns = [calls(&[APPEND]), calls(&[&again]), says("Over.")].concat();
        let model = script(&lab, &turns);
        let Some(mut editor) = Editor::start(&lab, &["--model", &model, "--wait=2"]) else {
            return;
        };
        let session = editor.open(&lab);
        let prompt = editor.prompt(&session, "write");
        for _ in 0..answers {
            let asked = editor.permission();
            editor.permit(&asked, option);
        }
        if answers == 0 {
            // An option that was not offered decides nothing: the call waits in the inbox until it expires.
            let asked = editor.permission();
            editor.permit(&asked, option);
            let done = editor.ended(prompt);
            assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
            assert!(
                editor.text().contains("haft approvals"),
                "{}",
                editor.text()
            );
            assert!(!lab.work().join("a.txt").exists());
            continue;
        }
        let done = editor.ended(prompt);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{option}: {done}");
        let ends = editor.updates("tool_call_update");
        let failed = ends
            .iter()
            .filter(|update| update["status"] == "failed")
            .count();
        assert_eq!(failed, 2 - written, "{option}: {ends:#?}");
        let lines = std::fs::read_to_string(lab.work().join("a.txt")).unwrap_or_default();
        assert_eq!(lines.lines().count(), written, "{option}");
        let decided = lab.run(&["approvals", "list", "--all", "--json"]).json();
        let by = decided[0]["decision"]["by"].as_str().unwrap_or_default();
        assert!(by.ends_with("@editor"), "{decided}");
    }
}

#[test]
fn a_decision_in_the_inbox_withdraws_the_question_in_the_editor() {
    for (verb, written) in [("approve", true), ("deny", false)] {
        let lab = Lab::new();
        let model = script(&lab, &[calls(&[APPEND]), says("Over.")].concat());
        let Some(mut editor) = Editor::start(&lab, &["--model", &model]) else {
            return;
        };
        let session = editor.open(&lab);
        let prompt = editor.prompt(&session, "write");
        let asked = editor.permission();
        let pending = lab.run(&["approvals", "list", "--json"]).json();
        let id = pending[0]["id"].as_str().unwrap();
        let decided = lab.run(&["approvals", verb, id]);
        assert_eq!(decided.code, 0, "{verb}: {}", decided.stderr);
        let withdrawn = &asked["permission"];
        editor.peer.until(|line| line["withdrawn"] == *withdrawn);
        let done = editor.ended(prompt);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{verb}: {done}");
        assert_eq!(lab.work().join("a.txt").exists(), written, "{verb}");
        // A late answer is dropped.
        editor.permit(&asked, "allow-once");
        assert_eq!(editor.peer.end().code, 0);
    }
}

#[test]
fn a_critical_call_is_not_put_to_the_editor_and_waits_in_the_inbox() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let delete = r#"{ id = "d", tool = "delete_file", arguments = { path = "a.txt" } }"#;
    let read = r#"{ id = "r", tool = "read_file", arguments = { path = "a.txt" } }"#;
    let turns = [calls(&[read]), calls(&[delete]), says("Over.")].concat();
    let model = script(&lab, &turns);
    let args = ["--model", &model, "-c", "tools.delete_file.enabled=true"];
    let Some(mut editor) = Editor::start(&lab, &args) else {
        return;
    };
    let session = editor.open(&lab);
    let prompt = editor.prompt(&session, "delete");
    editor
        .peer
        .until(|line| line["update"]["status"] == "pending");
    let pending = lab.run(&["approvals", "list", "--json"]).json();
    assert_eq!(pending[0]["risk"], "critical", "{pending}");
    let id = pending[0]["id"].as_str().unwrap();
    let waits = editor
        .updates("tool_call_update")
        .pop()
        .unwrap()
        .to_string();
    assert!(waits.contains(id), "{waits}");
    let decided = lab.run(&["approvals", "approve", id, "--yes"]);
    assert_eq!(decided.code, 0, "{}", decided.stderr);
    let done = editor.ended(prompt);
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    let asked = editor
        .peer
        .seen
        .iter()
        .any(|line| line.get("permission").is_some());
    assert!(!asked && !lab.work().join("a.txt").exists());
}

#[test]
fn a_request_for_more_money_is_announced_before_it_waits() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let read = r#"{ id = "r", tool = "read_file", arguments = { path = "a.txt" } }"#;
    let model = script(&lab, &[calls(&[read]), says("Over.")].concat());
    let price = format!("models.\"{model}\".input_price=1000000");
    let money = ["-c", &price, "-c", "budgets.run.money=0.5"];
    let Some(mut editor) = Editor::start(&lab, &[&["--model", &model][..], &money].concat()) else {
        return;
    };
    let session = editor.open(&lab);
    let prompt = editor.prompt(&session, "read");
    editor
        .peer
        .until(|line| line["update"]["status"] == "pending");
    let pending = lab.run(&["approvals", "list", "--json"]).json();
    assert_eq!(pending[0]["tool"], "spend_more", "{pending}");
    let id = pending[0]["id"].as_str().unwrap();
    let approve = ["approvals", "approve", id, "--yes"];
    let decided = lab.run(&[&approve[..], &money].concat());
    assert_eq!(decided.code, 0, "{}", decided.stderr);
    editor.ended(prompt);
    let known: Vec<&Value> = editor.updates("tool_call");
    let known: Vec<&Value> = known.iter().map(|call| &call["toolCallId"]).collect();
    for update in editor.updates("tool_call_update") {
        assert!(known.contains(&&update["toolCallId"]), "{update}");
    }
}

#[test]
fn a_prompt_is_cancelled_while_a_command_runs_and_while_a_question_waits() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let turns = [calls(&[LONG]), calls(&[APPEND]), says("Over.")].concat();
    let model = script(&lab, &turns);
    for (profile, waits) in [("trusted", false), ("workspace", true)] {
        let args = [
            "--model",
            &model,
            "--profile",
            profile,
            "-c",
            "policy.commands=ask",
        ];
        let Some(mut editor) = Editor::start(&lab, &args) else {
            return;
        };
        let session = editor.open(&lab);
        let prompt = editor.prompt(&session, "go");
        if waits {
            let asked = editor.permission();
            editor.order(&json!({"do": "cancel", "session": session}));
            let withdrawn = &asked["permission"];
            editor.peer.until(|line| line["withdrawn"] == *withdrawn);
        } else {
            editor.peer.until(|line| {
                line["update"]["content"][0]["content"]["text"] == "```\nstarted\n```"
            });
            editor.order(&json!({"do": "cancel", "session": session}));
        }
        let done = editor.ended(prompt);
        assert_eq!(done["result"]["stopReason"], "cancelled", "{done}");
        let ends = editor.updates("tool_call_update");
        assert!(
            ends.iter().any(|update| update["status"] == "failed"),
            "{ends:#?}"
        );
        // The session accepts another prompt.
        let prompt = editor.prompt(&session, "on");
        if waits {
            let asked = editor.permission();
            editor.permit(&asked, "reject");
        }
        let done = editor.ended(prompt);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
        assert_eq!(editor.peer.end().code, 0);
    }
}

#[test]
fn a_session_is_loaded_after_its_process_has_ended_and_after_that_again() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let read = r#"{ id = "r", tool = "read_file", arguments = { path = "a.txt" } }"#;
    let turns = [calls(&[read]), says("One."), says("Two."), says("Three.")].concat();
    let model = script(&lab, &turns);
    let Some(mut editor) = Editor::start(&lab, &["--model", &model]) else {
        return;
    };
    let session = editor.open(&lab);
    let prompt = editor.prompt(&session, "first");
    editor.ended(prompt);
    let ended = editor.peer.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let mut before = vec!["first"];
    for (load, next, answer) in [("load", "second", "Two."), ("load", "third", "Three.")] {
        let mut editor = Editor::start(&lab, &["--model", &model]).unwrap();
        let order = json!({"do": load, "session": session, "cwd": lab.work()});
        let loaded = editor.ask(order.clone());
        assert_eq!(
            loaded["result"]["modes"]["currentModeId"], "workspace",
            "{loaded}"
        );
        check_replayed(&editor, &before);
        let twice = editor.ask(order);
        let message = twice["error"]["message"].as_str().unwrap();
        assert!(message.contains("open here already"), "{twice}");
        let prompt = editor.prompt(&session, next);
        let done = editor.ended(prompt);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
        assert!(editor.text().ends_with(answer), "{}", editor.text());
        before.push(next);
        assert_eq!(editor.peer.end().code, 0);
    }
    let mut editor = Editor::start(&lab, &["--model", &model]).unwrap();
    let listed = editor.ask(json!({"do": "list", "cwd": lab.work()}));
    let sessions = &listed["result"]["sessions"];
    assert_eq!(
        sessions.as_array().map(Vec::len),
        Some(1),
        "three runs: {listed}"
    );
    let first = &sessions[0];
    assert_eq!(
        (&first["sessionId"], &first["title"], &first["cwd"]),
        (&json!(session), &json!("first"), &json!(lab.work())),
    );
    let resumed = editor.ask(json!({"do": "resume", "session": session, "cwd": lab.work()}));
    assert!(resumed.get("result").is_some(), "{resumed}");
    assert_eq!(editor.text(), "", "nothing is told again");
}

/// Checks what a client gets when it loads a session: these prompts, the first answer and its call.
fn check_replayed(editor: &Editor, prompts: &[&str]) {
    let user = editor.updates("user_message_chunk").into_iter();
    let user: Vec<&str> = user
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect();
    assert_eq!(user, prompts);
    assert!(editor.text().starts_with("One."), "{}", editor.text());
    let call = editor.updates("tool_call")[0];
    assert_eq!(
        (&call["name"], &call["kind"]),
        (&json!("read_file"), &json!("read"))
    );
    let end = editor.updates("tool_call_update")[0];
    assert_eq!(
        (&end["status"], &end["toolCallId"]),
        (&json!("completed"), &call["toolCallId"])
    );
}

#[test]
fn modes_are_profiles_and_none_is_looser_than_the_settings_say() {
    let lab = Lab::new();
    let again = APPEND.replace("\"w\"", "\"v\"");
    let turns = [
        calls(&[APPEND]),
        says("No."),
        calls(&[&again]),
        says("Yes."),
    ]
    .concat();
    let model = script(&lab, &turns);
    let Some(mut editor) = Editor::start(&lab, &["--model", &model]) else {
        return;
    };
    let session = editor.open(&lab);
    let mode = |mode: &str| json!({"do": "mode", "session": session, "mode": mode});
    for (wanted, says) in [("trusted", "--profile"), ("yolo", "--profile")] {
        let refused = editor.ask(mode(wanted));
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(says) && message.contains(wanted),
            "{refused}"
        );
    }
    assert!(editor.ask(mode("read-only")).get("result").is_some());
    let prompt = editor.prompt(&session, "write");
    editor.ended(prompt);
    assert!(!lab.work().join("a.txt").exists());
    let asked = editor
        .peer
        .seen
        .iter()
        .any(|line| line.get("permission").is_some());
    assert!(!asked, "denied, not asked about");
    assert!(editor.ask(mode("workspace")).get("result").is_some());
    let prompt = editor.prompt(&session, "write");
    let asked = editor.permission();
    editor.permit(&asked, "allow-once");
    editor.ended(prompt);
    assert!(lab.work().join("a.txt").exists());
    let mut editor = Editor::start(&lab, &["--model", &model, "--profile", "trusted"]).unwrap();
    let opened = editor.ask(json!({"do": "new", "cwd": lab.work()}));
    let modes = &opened["result"]["modes"];
    assert_eq!(modes["currentModeId"], "trusted", "{opened}");
    assert_eq!(
        modes["availableModes"].as_array().map(Vec::len),
        Some(3),
        "{opened}"
    );
}

#[test]
fn skills_are_commands_and_servers_of_the_editor_are_not_started() {
    let lab = Lab::new();
    lab.user_settings(&format!(
        "[skills]\ndirs = [\"{}/skills\"]\n",
        lab.home().parent().unwrap().display()
    ));
    let skill = lab.home().parent().unwrap().join("skills/review");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: review\ndescription: How to review.\n---\nLook at each line.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    let turns = "[[turns]]\nexpect.user = \"the file\"\nsay = [{ text = \"Good.\" }]\n";
    let model = script(&lab, turns);
    let Some(mut editor) = Editor::start(&lab, &["--model", &model]) else {
        return;
    };
    let opened = editor.ask(json!({"do": "new", "cwd": lab.work(), "servers": ["tracker"]}));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let is_told = |line: &Value| line["update"]["sessionUpdate"] == "available_commands_update";
    if !editor.peer.seen.iter().any(is_told) {
        editor.peer.until(is_told);
    }
    let commands = &editor.updates("available_commands_update")[0]["availableCommands"];
    assert_eq!(commands[0]["name"], "review", "{commands}");
    let prompt = editor.prompt(&session, "/review the file");
    let done = editor.ended(prompt);
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    let text = editor.text();
    assert!(
        text.contains("tracker") && text.contains("haft mcp add"),
        "{text}"
    );
    assert!(text.ends_with("Good."), "{text}");
    let servers = lab.run(&["mcp", "list", "--json"]).json();
    assert_eq!(servers.as_array().map(Vec::len), Some(0), "{servers}");
}

#[test]
fn the_python_client_holds_a_session_with_a_permission_and_a_cancellation() {
    let needs = std::env::var_os("HAFT_NEEDS").map(PathBuf::from);
    let python = needs.map(|needs| needs.join("acp/bin/python"));
    let Some(python) = python.filter(|python| python.exists()) else {
        eprintln!("SKIPPED: the Python client is not below HAFT_NEEDS; `make needs` installs it");
        return;
    };
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let turns = [calls(&[APPEND]), says("Written."), calls(&[LONG])].concat();
    let model = script(&lab, &turns);
    let work = lab.work();
    let script = include_str!("editor_client.py");
    let haft = env!("CARGO_BIN_EXE_haft");
    // The edit needs approval, the command does not.
    let args = [
        "run",
        "--acp",
        "--profile",
        "trusted",
        "-c",
        "policy.ask=[\"Edit\"]",
    ];
    let args = [
        &["-c", script, work.to_str().unwrap(), haft],
        &args[..],
        &["--model", &model],
    ];
    let python = lab
        .program(python.to_str().unwrap(), &args.concat())
        .spawn();
    let ran = ended(python.unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = ran.json();
    let diff = json!([null, "x\n"]);
    assert_eq!(told["diffs"], json!([diff]), "{told}");
    assert_eq!(told["reasons"], json!(["end_turn", "cancelled"]), "{told}");
    assert_eq!(told["agent"], "haft", "{told}");
    assert_eq!(told["options"][0][0], "allow_once", "{told}");
}

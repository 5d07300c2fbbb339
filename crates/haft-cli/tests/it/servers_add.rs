//! `haft mcp add` and `remove`: adds servers to haft's settings and removes them, the rest of the file unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Lab, Ran};
use crate::pty::Pty;

const OWN: &str = "# mine\n[policy] # why\nask = [\"Bash\"]\n";

fn user_file(lab: &Lab) -> PathBuf {
    lab.home().parent().unwrap().join("config/haft/config.toml")
}

fn names(lab: &Lab) -> Vec<Value> {
    let listed = lab.run(&["mcp", "list", "--json"]).json();
    let all = listed.as_array().unwrap().iter();
    all.map(|server| server["name"].clone()).collect()
}

fn streams(ran: &Ran) -> (i32, &str, &str) {
    (ran.code, &ran.stdout, &ran.stderr)
}

#[test]
fn what_is_added_is_written_below_what_is_there() {
    let lab = Lab::new();
    lab.user_settings(OWN);
    let add = [
        "mcp",
        "add",
        "docs",
        "--env",
        "KEY=a \"b\"",
        "--cwd",
        "/tmp",
        "--network",
        "host",
        "--read",
        ".",
        "--trusted",
        "--",
        "npx",
        "-y",
        "server",
        "--port=1",
    ];
    let dry = lab.run(&[&["mcp", "add", "docs", "--dry-run"][..], &["--", "npx"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert_eq!(fs::read_to_string(user_file(&lab)).unwrap(), OWN);
    let added = lab.run(&add);
    let (code, out, err) = streams(&added);
    assert!(code == 0 && err.contains("haft mcp pin docs"), "{err}");
    assert!(
        out.contains("+args = [\"-y\", \"server\", \"--port=1\"]"),
        "{out}"
    );
    let text = fs::read_to_string(user_file(&lab)).unwrap();
    assert!(text.starts_with(OWN), "{text}");
    let table: toml::Table = text.parse().unwrap();
    let server = &table["mcp"]["servers"]["docs"];
    let shown: Value = serde_json::to_value(server).unwrap();
    assert_eq!(
        shown,
        json!({
            "command": "npx", "args": ["-y", "server", "--port=1"], "env": {"KEY": "a \"b\""}, "cwd": "/tmp", "trusted": true,
            "sandbox": {"network": "host", "read": [lab.work()]},
        })
    );
}

#[test]
fn what_is_removed_leaves_the_file_as_it_was_and_a_name_is_taken_once() {
    let lab = Lab::new();
    lab.user_settings(OWN);
    let url = "https://x.example/mcp";
    let far = lab.run(&["mcp", "add", "far", url, "--header", "X-A=b", "--json"]);
    assert_eq!(far.json()["added"], true, "{}", far.stderr);
    assert_eq!(lab.run(&["mcp", "add", "docs", "--", "npx"]).code, 0);
    assert_eq!(names(&lab), ["docs", "far"]);
    let again = lab.run(&["mcp", "add", "docs", "--", "other"]);
    let (code, _, err) = streams(&again);
    assert!(code == 2 && err.contains("haft mcp remove docs"), "{err}");
    for name in ["docs", "far"] {
        let removed = lab.run(&["mcp", "remove", name, "--json"]);
        assert_eq!(removed.json()["removed"], true, "{}", removed.stderr);
    }
    assert_eq!(
        fs::read_to_string(user_file(&lab)).unwrap().trim_end(),
        OWN.trim_end()
    );
    assert_eq!(lab.run(&["mcp", "remove", "docs"]).code, 2);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let lab = Lab::new();
    let rows: [(&[&str], i32, &str); 9] = [
        (&["a.b", "--", "x"], 2, "cannot be a server's name"),
        (&["a"], 2, "COMMAND"),
        (&["a", "https://x", "--", "x"], 2, "cannot be used with"),
        (&["a", "ftp://x"], 5, "neither https://"),
        (&["a", "https://ann:hush@x/"], 5, "it holds a login"),
        (&["a", "--env", "novalue", "--", "x"], 2, "is not KEY=VALUE"),
        (
            &["a", "--env", "A=1", "--env", "A=2", "--", "x"],
            2,
            "twice",
        ),
        (
            &["a", "https://x", "--header", "a b=c"],
            5,
            "not valid in a header",
        ),
        (
            &["a", "--env", "A=${env:NOWHERE_SET}", "--", "x"],
            5,
            "NOWHERE_SET is not set",
        ),
    ];
    for (words, code, say) in rows {
        let ran = lab.run(&[&["mcp", "add"], words].concat());
        assert_eq!(ran.code, code, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(say), "{words:?}: {}", ran.stderr);
        assert!(!user_file(&lab).exists(), "{words:?}");
    }
    // A file that cannot be edited in place is not touched.
    let inline = "mcp = { servers = { b = { command = \"x\" } } }\n";
    lab.user_settings(inline);
    let ran = lab.run(&["mcp", "add", "a", "--", "x"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("by hand"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(user_file(&lab)).unwrap(), inline);
}

#[test]
fn a_secret_in_plain_text_is_named_and_a_reference_is_not() {
    let mut lab = Lab::new();
    lab.set("TICKETS_TOKEN", "hush-hush-hush");
    let warned = lab.run(&[
        "mcp",
        "add",
        "a",
        "https://x",
        "--header",
        "Authorization=Bearer abcdefgh",
    ]);
    assert_eq!(warned.code, 0, "{}", warned.stderr);
    assert!(
        warned.stderr.contains("${env:AUTHORIZATION}"),
        "{}",
        warned.stderr
    );
    let quiet = lab.run(&[
        "mcp",
        "add",
        "b",
        "https://x",
        "--header",
        "Authorization=Bearer ${env:TICKETS_TOKEN}",
    ]);
    assert!(!quiet.stderr.contains("plain text"), "{}", quiet.stderr);
    let mode = fs::metadata(user_file(&lab)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it may hold secrets");
    let text = fs::read_to_string(user_file(&lab)).unwrap();
    assert!(
        text.contains("Bearer ${env:TICKETS_TOKEN}") && !text.contains("hush"),
        "{text}"
    );
}

#[test]
fn a_folder_s_own_server_counts_once_the_folder_is_trusted() {
    let lab = Lab::new();
    let added = lab.run(&["mcp", "add", "docs", "--here", "--", "npx"]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stderr.contains("not trusted"), "{}", added.stderr);
    assert!(names(&lab).is_empty());
    assert_eq!(lab.run(&["trust"]).code, 0);
    assert_eq!(names(&lab), ["docs"]);
    // A server in another file is not removed from here.
    let wrong = lab.run(&["mcp", "remove", "docs", "--global"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("defined elsewhere"),
        "{}",
        wrong.stderr
    );
    assert_eq!(lab.run(&["mcp", "remove", "docs"]).code, 0);
    assert!(names(&lab).is_empty());
}

#[test]
fn a_server_that_is_removed_must_be_pinned_anew() {
    let (lab, folder) = crate::servers::lab("");
    assert_eq!(lab.run(&["mcp", "pin", "sum", "--yes"]).code, 0);
    let text = fs::read_to_string(user_file(&lab)).unwrap();
    let removed = lab.run(&["mcp", "remove", "sum"]);
    assert!(
        removed.stderr.contains("its pins are deleted"),
        "{}",
        removed.stderr
    );
    fs::write(user_file(&lab), text).unwrap();
    let state = |lab: &Lab| lab.run(&["mcp", "list", "--json"]).json()[0]["state"].clone();
    assert_eq!(state(&lab), "configured");
    drop(folder);
}

#[test]
fn a_server_because_of_which_settings_do_not_load_can_be_removed() {
    let lab = Lab::new();
    let broken = "[mcp.servers.b]\ncommand = \"x\"\nenv = { A = \"${env:NOWHERE_SET}\" }\n";
    lab.user_settings(&format!("{OWN}\n{broken}"));
    assert_eq!(lab.run(&["mcp", "list"]).code, 5);
    let removed = lab.run(&["mcp", "remove", "b"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert_eq!(lab.run(&["mcp", "list"]).code, 0);
}

#[test]
fn at_a_terminal_its_tools_are_shown_and_pinned_at_once() {
    let (lab, folder) = crate::servers::lab("");
    assert_eq!(lab.run(&["mcp", "remove", "sum"]).code, 0);
    let (script, read) = (
        folder.join("server.py").display().to_string(),
        folder.display().to_string(),
    );
    let mut pty = Pty::start(
        &lab,
        &[
            "mcp", "add", "sum", "--read", &read, "--", "python3", &script,
        ],
    );
    for question in [
        "review its tools now",
        "connect to it now?",
        "pin these tools?",
    ] {
        pty.expect(question);
        pty.enter("y");
    }
    pty.expect("pinned 2 tools");
    pty.end();
    let listed = lab.run(&["mcp", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "known");
}

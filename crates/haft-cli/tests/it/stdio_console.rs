//! `haft serve --stdio` and the console in which its client's user decides: another process, which is started when needed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use crate::console_server::Scene;
use crate::harness::{Lab, ended};
use crate::serve::{get, post, tool_call};

/// A client that can open URLs, on the pipes of a server.
pub(crate) struct Client {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn start(lab: &Lab, options: &[&str]) -> Self {
        let args = [&["serve", "--stdio"], options].concat();
        let mut child = lab.command(&args).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, stdout };
        client.send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"url": {}}},
            "clientInfo": {"name": "test", "version": "1"}}}),
        );
        client.until(|message| message["id"] == 1);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Returns the first message for which `is_it` is true.
    pub(crate) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "the server hung up");
            let message: Value = serde_json::from_str(&line).unwrap();
            if is_it(&message) {
                return message;
            }
        }
    }

    /// Disconnects, and returns the server's stderr.
    pub(crate) fn end(mut self) -> String {
        drop(self.child.stdin.take());
        drop(self.stdout);
        let ran = ended(self.child);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    }
}

fn write_file(id: u32, path: &str) -> Value {
    tool_call(
        id,
        "write_file",
        &json!({"path": path, "content": "approved"}),
    )
}

/// Creates a scene in which servers on pipes start consoles.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.0.set("CI", "");
    scene
}

#[test]
fn what_a_server_on_pipes_asks_is_decided_in_the_console_that_it_starts() {
    let scene = scene();
    let mut client = Client::start(&scene.0, &[]);
    assert!(scene.records().is_empty(), "nothing waits yet");
    client.send(&write_file(2, "a.txt"));
    let asked = client.until(|message| message["method"] == "elicitation/create");
    let url = asked["params"]["url"].as_str().unwrap();
    let record = scene.record();
    let console = record["url"].as_str().unwrap();
    let id = url.strip_prefix(&format!("{console}/waiting/")).unwrap();
    assert_eq!(record["workspace"], Value::Null);

    // The other process shows it, with the folder that it concerns.
    let listed = scene.ask(&get("/api/v1/approvals", None)).json();
    assert_eq!(listed[0]["id"], id, "{listed}");
    assert_eq!(listed[0]["workspace"], scene.0.work().to_str().unwrap());
    let card = scene.ask(&get(&format!("/api/v1/approvals/{id}"), None));
    assert_eq!(card.status, 200, "{}", card.body);
    let approve = format!("/api/v1/approvals/{id}/approve");
    let decided = scene.ask(&post(&approve, "", "{}"));
    assert_eq!(decided.status, 200, "{}", decided.body);

    let done = client.until(|message| message["id"] == 2);
    assert_eq!(done["result"]["isError"], json!(false), "{done}");
    let written = std::fs::read_to_string(scene.0.work().join("a.txt"));
    assert_eq!(written.unwrap(), "approved");

    // The server stays for the next client, and a stopped one is started again.
    client.send(&write_file(3, "b.txt"));
    let asked = client.until(|message| message["method"] == "elicitation/create");
    assert!(
        asked["params"]["url"]
            .as_str()
            .unwrap()
            .starts_with(console)
    );
    client.end();
    assert_eq!(scene.records(), [record]);
    assert_eq!(scene.0.run(&["console", "--stop"]).code, 0);
    let mut client = Client::start(&scene.0, &[]);
    client.send(&write_file(2, "c.txt"));
    client.until(|message| message["method"] == "elicitation/create");
    assert_eq!(scene.records().len(), 1);
    client.end();
}

#[test]
fn a_rule_for_good_is_kept_for_the_folder_that_asked() {
    let scene = scene();
    let mut client = Client::start(&scene.0, &[]);
    client.send(&write_file(2, "docs/a.txt"));
    let asked = client.until(|message| message["method"] == "elicitation/create");
    let id = asked["params"]["url"].as_str().unwrap();
    let id = id.rsplit('/').next().unwrap();
    let approve = format!("/api/v1/approvals/{id}/approve");
    let body = json!({"scope": "always", "rule": "Edit(/docs/**)"}).to_string();
    let decided = scene.ask(&post(&approve, "", &body));
    assert_eq!(decided.status, 200, "{}", decided.body);
    let done = client.until(|message| message["id"] == 2);
    assert_eq!(done["result"]["isError"], json!(false), "{done}");
    client.end();
    let rules = scene.0.run(&["policy", "rules", "list", "--json"]).json();
    assert_eq!(rules[0]["rule"], "Edit(/docs/**)", "{rules}");
}

#[test]
fn no_server_is_started_where_settings_or_a_build_machine_say_so() {
    let rows: [(&str, &[&str]); 3] = [
        ("", &["-c", "console.start=never"]),
        ("true", &[]),
        // No approval is requested at all.
        ("", &["-c", "approval.mode=deny"]),
    ];
    for (ci, options) in rows {
        let mut scene = Scene::new();
        scene.0.set("CI", ci);
        let options = [options, &["-c", "limits.approval_timeout_s=1"]].concat();
        let mut client = Client::start(&scene.0, &options);
        client.send(&write_file(2, "a.txt"));
        let done = client.until(|message| message["id"] == 2);
        assert_eq!(done["result"]["isError"], json!(true), "{done}");
        assert!(scene.records().is_empty(), "{options:?}");
        client.end();
    }
}

#[test]
fn a_folder_whose_approvals_are_elsewhere_gets_no_console_and_says_why() {
    let scene = scene();
    let database = scene.0.home().join("own.db");
    let store = format!("store.url=sqlite:{}", database.display());
    let options = ["-c", &store, "-c", "limits.approval_timeout_s=1"];
    let mut client = Client::start(&scene.0, &options);
    client.send(&write_file(2, "a.txt"));
    client.until(|message| message["id"] == 2);
    assert!(scene.records().is_empty());
    let said = client.end();
    assert!(said.contains("a database of its own"), "{said}");
    assert!(said.contains("haft serve"), "{said}");
}

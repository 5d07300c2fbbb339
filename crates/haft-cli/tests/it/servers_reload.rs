//! MCP servers behind haft that are added, removed and changed while `haft serve` runs.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::Lab;
use crate::reload::{Voice, serve};
use crate::serve::{Server, get, post, tool_call};
use crate::servers::{lab, settings};
use crate::stdio_console::Client;

const ALLOWED: &str = "[policy]\nallow = [\"sum.*\"]\n";

fn pin(lab: &Lab) {
    let pinned = lab.run(&["mcp", "pin", "sum", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
}

/// Lists the tools as a client that is notified of changes, until the list is as expected.
fn until_listed(client: &mut Client, expect: bool) {
    for id in 100.. {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}}));
        let listed = client.until(|message| message["id"] == id);
        let tools = listed["result"]["tools"].to_string();
        if tools.contains("sum.add") || tools.contains("sum__add") || tools.contains("sum-add") {
            if expect {
                return;
            }
        } else if !expect {
            return;
        }
        client.until(|message| message["method"] == "notifications/tools/list_changed");
    }
}

#[test]
fn a_client_hears_of_servers_that_are_pinned_turned_off_and_changed() {
    let (lab, folder) = lab(ALLOWED);
    let on = settings(&folder, ALLOWED);
    let mut client = Client::start(&lab, &["-c", "console.start=never"]);
    until_listed(&mut client, false);
    pin(&lab);
    until_listed(&mut client, true);
    client.send(&tool_call(7, "sum.add", &json!({})));
    let called = client.until(|message| message["id"] == 7);
    assert_eq!(called["result"]["content"][0]["text"], "3", "{called}");

    lab.user_settings(&settings(&folder, &format!("enabled = false\n{ALLOWED}")));
    until_listed(&mut client, false);
    client.send(&tool_call(8, "sum.add", &json!({})));
    let called = client.until(|message| message["id"] == 8);
    assert!(!called.to_string().contains("\"3\""), "{called}");
    lab.user_settings(&on);
    until_listed(&mut client, true);
    // Another command line is another server.
    lab.user_settings(&on.replace("server.py\"]", "server.py\", \"-v\"]"));
    until_listed(&mut client, false);
    lab.user_settings(&on);
    until_listed(&mut client, true);
    lab.user_settings(ALLOWED);
    until_listed(&mut client, false);
    let said = client.end();
    assert!(said.contains("haft mcp pin sum"), "{said}");
}

fn fifo(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

fn health(server: &Server) -> String {
    server
        .ask(&get("/api/v1/health", Some(&server.operator)))
        .body
}

/// Returns the state of the server.
fn state(server: &Server) -> Value {
    let path = "/api/v1/servers";
    let listed = server.ask(&get(path, Some(&server.operator))).json();
    listed[0]["state"].clone()
}

/// Makes a call on a separate thread, and waits until it is in progress.
fn begin(server: &Server, path: &Path) -> std::thread::JoinHandle<Value> {
    let caller = server.caller();
    let body = json!({"tool": "sum.peek", "arguments": {"path": path}}).to_string();
    let call = std::thread::spawn(move || {
        let reply = caller.try_ask(&post("/api/v1/calls", &caller.call, &body));
        reply.unwrap().json()
    });
    while state(server) != "in_use" {}
    call
}

fn status(server: &Server, tool: &str) -> Value {
    let body = json!({"tool": tool, "arguments": {}}).to_string();
    let reply = server.ask(&post("/api/v1/calls", &server.call, &body));
    reply.json()
}

fn begun(more: &str) -> (Lab, std::path::PathBuf, Server, Voice) {
    let (lab, folder) = lab(&format!("{more}{ALLOWED}"));
    pin(&lab);
    let (server, voice) = serve(&lab, &[]);
    (lab, folder, server, voice)
}

#[test]
fn calls_under_way_go_on_over_a_new_pin_and_fail_honestly_when_the_server_goes() {
    let (lab, folder, server, mut voice) = begun("");
    let path = fifo(&folder);
    let listed = |lab: &Lab| lab.run(&["mcp", "list", "--json"]).json()[0]["state"].clone();
    assert_eq!(listed(&lab), "known");
    let call = begin(&server, &path);
    assert!(health(&server).contains("in use"));
    assert_eq!(listed(&lab), "in_use");
    fs::write(folder.join("text"), "Add two numbers, and carry.").unwrap();
    pin(&lab);
    voice.until("changed settings are in force: the pin of sum");
    fs::write(&path, "through the pipe").unwrap();
    let outcome = call.join().unwrap();
    assert_eq!(
        outcome["content"][0]["text"], "through the pipe",
        "{outcome}"
    );
    assert_eq!(status(&server, "sum.add")["ok"], true);
    assert_eq!(listed(&lab), "started");

    let call = begin(&server, &path);
    lab.user_settings(ALLOWED);
    voice.until("changed settings are in force: mcp.servers.sum");
    let outcome = call.join().unwrap();
    assert_eq!(outcome["status"], "error", "{outcome}");
    let said = outcome["error"].to_string();
    assert!(said.contains("may have run anyway"), "{said}");
    assert_eq!(status(&server, "sum.add")["error"]["kind"], "not_found");
    // Nothing of it remains.
    let script = folder.join("server.py").display().to_string();
    while processes_with(&script) {}
    assert_eq!(state(&server), Value::Null);
    server.end(Signal::TERM);
}

fn processes_with(word: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.contains(word))
}

#[test]
fn what_is_broken_changes_nothing_and_is_named() {
    let (lab, folder, server, mut voice) = begun("");
    let good = settings(&folder, ALLOWED);
    lab.user_settings(&settings(
        &folder,
        &format!("url = \"http://x\"\n{ALLOWED}"),
    ));
    let said = voice.until("do not load");
    assert!(said.contains("or both"), "{said}");
    assert_eq!(status(&server, "sum.add")["ok"], true);
    lab.user_settings(&good);
    voice.until("load again");

    let pins = fs::read_dir(lab.home().join("mcp")).unwrap();
    let file = pins.flatten().next().unwrap().path();
    let pinned = fs::read_to_string(&file).unwrap();
    fs::write(&file, "garbage").unwrap();
    let said = voice.until("the earlier pins stay in force");
    assert!(said.contains("not a manifest"), "{said}");
    assert_eq!(status(&server, "sum.add")["ok"], true);
    assert!(health(&server).contains("not a manifest"));
    fs::write(&file, pinned).unwrap();
    while health(&server).contains("not a manifest") {}
    fs::remove_file(&file).unwrap();
    voice.until("the pin of sum");
    assert_eq!(status(&server, "sum.add")["error"]["kind"], "not_found");
    server.end(Signal::TERM);
}

#[test]
fn what_tools_must_be_kept_away_from_waits_for_the_next_start() {
    let (lab, folder, server, mut voice) = begun("");
    let secret = folder.join("secret");
    fs::write(&secret, "hush-of-a-file").unwrap();
    let written = folder.join("written");
    fs::create_dir(&written).unwrap();
    for more in [
        format!("env.KEY = \"${{file:{}}}\"\n", secret.display()),
        format!("sandbox.write = [\"{}\"]\n", written.display()),
    ] {
        let now = settings(&folder, &format!("{more}{ALLOWED}"));
        lab.user_settings(&now.replace("env = { SUM_KEY", "# env = { SUM_KEY"));
        voice.until("apply when haft starts the next time: mcp.servers.sum");
        assert_eq!(status(&server, "sum.add")["ok"], true, "{more}");
    }
    server.end(Signal::TERM);
}

#[test]
fn the_secret_of_a_server_that_comes_later_stands_in_no_record() {
    let (mut lab, folder) = lab("");
    lab.set("LATER", "zaunkoenig-77");
    let now = settings(&folder, ALLOWED).replace("env = {", "env = { OWN = \"${env:LATER}\", ");
    lab.user_settings(&now);
    pin(&lab);
    lab.user_settings(ALLOWED);
    let (server, mut voice) = serve(&lab, &[]);
    lab.user_settings(&now);
    voice.until("changed settings are in force: mcp.servers.sum");
    let body = json!({"tool": "sum.peek", "arguments": {"path": "/proc/self/environ"}});
    let reply = server.ask(&post("/api/v1/calls", &server.call, &body.to_string()));
    assert!(reply.body.contains("zaunkoenig-77"), "{}", reply.body);
    server.end(Signal::TERM);
    let runs = fs::read_dir(lab.home().join("runs")).unwrap().flatten();
    let mut records = 0;
    for run in runs {
        let events = fs::read_to_string(run.path().join("events.jsonl")).unwrap();
        assert!(!events.contains("zaunkoenig-77"), "{events}");
        records += events.matches("[redacted]").count();
    }
    assert!(records > 0);
}

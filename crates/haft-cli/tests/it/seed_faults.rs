//! Faults of earlier systems, by their number in the survey, as far as they concern this release: none of them occurs here.
//! Those that only concern the library (nos. 23, 25, 26) are in the same file of the `haft` crate.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Lab;

/// Runs `haft call` with commands enabled and trusted.
fn call(lab: &Lab, tool: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let args = [
        "call",
        tool,
        "--json",
        "--profile",
        "trusted",
        "-c",
        "tools.enable=[\"commands\"]",
        "-c",
        "approval.mode=\"auto:high\"",
        "--args",
        &arguments,
    ];
    lab.run(&args).json()
}

fn verdict(lab: &Lab, command: &str, allow: &[&str]) -> String {
    let arguments = json!({"command": command}).to_string();
    let allow = format!("policy.allow={}", json!(allow));
    let ran = lab.run(&[
        "policy",
        "explain",
        "run_command",
        "--json",
        "-c",
        "policy.commands=ask",
        "-c",
        &allow,
        "--args",
        &arguments,
    ]);
    ran.json()["verdict"].as_str().unwrap().to_owned()
}

/// A served session on stdin and stdout.
struct Stdio {
    child: Child,
    id: u64,
}

impl Stdio {
    fn open(lab: &Lab) -> Self {
        let args = [
            "serve",
            "--stdio",
            "--profile",
            "trusted",
            "-c",
            "tools.enable=[\"commands\"]",
            "-c",
            "approval.mode=\"auto:high\"",
        ];
        let mut session = Self {
            child: lab.command(&args).spawn().unwrap(),
            id: 0,
        };
        let info = json!({"name": "faults", "version": "1"});
        session.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}),
        );
        session
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
        let mut line = Vec::new();
        let output = self.child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while output.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        serde_json::from_slice::<Value>(&line).unwrap()["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn no_15_a_command_line_is_not_cleared_by_its_first_word() {
    let lab = Lab::new();
    let sly = [
        "ls\nsudo id",
        "env sudo id",
        "sed -i s/a/b/ README.md",
        "find . -execdir rm {} +",
        "python3 evil.py > out.txt",
        "bash -c \"sudo id\"",
        "echo $(sudo id)",
    ];
    for command in sly {
        assert_ne!(verdict(&lab, command, &[]), "allow", "{command}");
        assert_ne!(
            verdict(
                &lab,
                command,
                &["Bash(ls *)", "Bash(echo *)", "Bash(find *)"]
            ),
            "allow",
            "{command}"
        );
    }
    assert_eq!(verdict(&lab, "rm -rf /tmp/x", &[]), "ask");
    assert_eq!(verdict(&lab, "rm -rf /tmp/x", &["Bash(rm *)"]), "allow");
}

#[test]
fn no_16_commands_run_in_the_jail_at_the_command_line_and_in_the_background() {
    let lab = Lab::new();
    let outcome = call(
        &lab,
        "run_command",
        &json!({"argv": ["ls", "/root", "/home", "/run"]}),
    );
    assert_eq!(outcome["status"], "error", "{outcome}");
    assert!(
        ["full", "no-proc"].contains(&outcome["strength"].as_str().unwrap()),
        "{outcome}"
    );
    let mut session = Stdio::open(&lab);
    let started = session.call(
        "run_command",
        &json!({"argv": ["cat", "/etc/shadow"], "background": true}),
    );
    let task = started["structuredContent"]["task"].clone();
    let ended = session.call("await_command", &json!({"task": task, "timeout_s": 20}));
    assert_ne!(ended["structuredContent"]["exit_code"], 0, "{ended}");
}

#[test]
fn no_17_what_a_jailed_command_writes_is_never_loaded_by_the_host() {
    let lab = Lab::new();
    // Settings, hooks and interpreter files are read or run by the host without asking.
    let sly = "echo '[policy]' > haft.toml; mkdir -p .git/hooks; echo x > .git/hooks/post-checkout; echo x > .envrc";
    let outcome = call(&lab, "run_command", &json!({"command": sly}));
    assert_eq!(outcome["status"], "denied", "{outcome}");
    for name in ["haft.toml", ".git/hooks/post-checkout", ".envrc"] {
        assert!(!lab.work().join(name).exists(), "{name} was written");
    }
    let plant = "echo 'open(\"owned\",\"w\")' > sitecustomize.py; printf '#!/bin/sh\\ntouch owned' > git; chmod +x git";
    call(&lab, "run_command", &json!({"command": plant}));
    call(&lab, "list_files", &json!({}));
    assert!(lab.run(&["doctor"]).stdout.contains("sandbox"));
    assert!(
        !lab.work().join("owned").exists(),
        "the host ran what the jail wrote"
    );
}

#[test]
fn no_18_the_jail_has_no_network_and_its_memory_limit_holds() {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 2)");
    let outcome = call(
        &lab,
        "run_command",
        &json!({"argv": ["/usr/bin/python3", "-c", connect]}),
    );
    assert_eq!(outcome["error"]["kind"], "failed", "{outcome}");
    assert!(
        listener.accept().is_err(),
        "the jailed command reached the host's loopback"
    );
    let arguments =
        json!({"argv": ["/usr/bin/python3", "-c", "x = bytearray(600 << 20); print(len(x))"]})
            .to_string();
    let ran = lab.run(&[
        "call",
        "run_command",
        "--json",
        "--profile",
        "trusted",
        "-c",
        "tools.enable=[\"commands\"]",
        "-c",
        "approval.mode=\"auto:high\"",
        "-c",
        "sandbox.memory_mb=256",
        "--args",
        &arguments,
    ]);
    assert_eq!(ran.json()["status"], "error");
}

#[test]
fn no_19_a_task_belongs_to_its_session_and_a_pattern_matches_only_when_seen() {
    let lab = Lab::new();
    let (mut one, mut two) = (Stdio::open(&lab), Stdio::open(&lab));
    let started = one.call(
        "run_command",
        &json!({"command": "echo here; sleep 30", "background": true}),
    );
    let task = started["structuredContent"]["task"].clone();
    for tool in ["await_command", "kill_command"] {
        let refused = two.call(tool, &json!({"task": task}));
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(
            refused.to_string().contains("no task") || refused.to_string().contains("not_found"),
            "{refused}"
        );
    }
    let waited = one.call(
        "await_command",
        &json!({"task": task, "timeout_s": 1, "pattern": "never-said"}),
    );
    assert_ne!(waited["structuredContent"]["matched"], true, "{waited}");
    let killed = one.call("kill_command", &json!({"task": task}));
    assert!(!killed.is_null());
}

#[test]
fn no_20_a_large_result_stays_whole_json_and_can_be_read_back() {
    let lab = Lab::new();
    let lines: Vec<String> = (0..50_000).map(|n| format!("needle number {n}")).collect();
    lab.file("big.txt", &lines.join("\n"));
    let outcome = call(
        &lab,
        "grep_files",
        &json!({"pattern": "needle", "limit": 50_000}),
    );
    assert_eq!(outcome["status"], "ok", "{outcome}");
    assert!(outcome["data"].is_object());
    let reference = outcome["artifacts"][0]["ref"].as_str().unwrap();
    let whole = lab.run(&["artifacts", "get", reference]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stdout.contains("needle number 49999"));
}

#[test]
fn no_22_addresses_of_metadata_and_private_networks_are_not_fetched() {
    let lab = Lab::new();
    let outcome = call(
        &lab,
        "fetch_url",
        &json!({"url": "http://169.254.169.254/"}),
    );
    assert_eq!(outcome["status"], "denied", "{outcome}");
    let message = outcome["error"]["message"].as_str().unwrap();
    assert!(message.contains("169.254.169.254"), "{message}");
}

#[test]
fn no_23_sessions_of_one_server_do_not_see_each_other() {
    let lab = Lab::new();
    let mut server = lab
        .command(&["serve", "--http", "127.0.0.1:0", "--json"])
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(server.stdout.as_mut().unwrap())
        .read_line(&mut ready)
        .unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let (one, two) = (Http::open(&ready), Http::open(&ready));
    one.call(
        "todo_write",
        &json!({"tasks": [{"id": "1", "content": "mine", "status": "pending"}]}),
    );
    assert!(
        one.call("todo_read", &json!({}))
            .to_string()
            .contains("mine")
    );
    assert!(
        !two.call("todo_read", &json!({}))
            .to_string()
            .contains("mine")
    );
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    server.wait().unwrap();
}

/// A session over HTTP.
struct Http {
    host: String,
    token: String,
    session: String,
}

impl Http {
    fn open(ready: &Value) -> Self {
        let host = ready["mcp"]
            .as_str()
            .unwrap()
            .trim_start_matches("http://")
            .trim_end_matches("/mcp")
            .to_owned();
        let token = std::fs::read_to_string(ready["token_file"].as_str().unwrap())
            .unwrap()
            .trim()
            .to_owned();
        let mut opened = Self {
            host,
            token,
            session: String::new(),
        };
        let info = json!({"name": "faults", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let answer = opened
            .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        let header = answer
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"))
            .unwrap();
        header
            .split_once(':')
            .unwrap()
            .1
            .trim()
            .clone_into(&mut opened.session);
        opened.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        opened
    }

    fn post(&self, message: &Value) -> String {
        let body = message.to_string();
        let session = if self.session.is_empty() {
            String::new()
        } else {
            format!("Mcp-Session-Id: {}\r\n", self.session)
        };
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{session}Connection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self
            .post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
        let start = answer
            .find("{\"jsonrpc\"")
            .unwrap_or_else(|| panic!("{answer}"));
        let body = answer[start..].lines().next().unwrap();
        serde_json::from_str::<Value>(body).unwrap()["result"].clone()
    }
}

#[test]
fn no_24_a_skill_s_folder_is_written_by_nobody_unasked_and_never_removed() {
    let lab = Lab::new();
    lab.file(".claude/skills/x/SKILL.md", "no front matter");
    let path = ".claude/skills/x/SKILL.md";
    let outcome = call(
        &lab,
        "write_file",
        &json!({"path": path, "content": "mine"}),
    );
    assert_eq!(outcome["error"]["kind"], "denied", "{outcome}");
    let outcome = call(
        &lab,
        "run_command",
        &json!({"command": format!("echo mine | tee {path}; rm -rf .claude")}),
    );
    assert_eq!(outcome["status"], "denied", "{outcome}");
    // A redirection names the path, so a user can be asked about it; no rule allows it.
    let redirected = format!("echo mine > {path}");
    assert_eq!(verdict(&lab, &redirected, &["Bash", "Edit"]), "ask");
    assert_eq!(
        std::fs::read_to_string(lab.work().join(path)).unwrap(),
        "no front matter"
    );
}

#[test]
fn no_27_a_write_needs_the_file_as_it_was_read_and_a_listing_is_no_reading() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    let mut session = Stdio::open(&lab);
    let write = json!({"path": "a.txt", "content": "mine\n"});
    session.call("list_files", &json!({}));
    let unread = session.call("write_file", &write);
    assert_eq!(unread["isError"], true, "{unread}");
    session.call("read_file", &json!({"path": "a.txt"}));
    lab.file("a.txt", "somebody else's\n");
    let stale = session.call("write_file", &write);
    assert_eq!(stale["isError"], true, "{stale}");
    assert_eq!(
        std::fs::read_to_string(lab.work().join("a.txt")).unwrap(),
        "somebody else's\n"
    );
    session.call("read_file", &json!({"path": "a.txt"}));
    let fresh = session.call("write_file", &write);
    assert_ne!(fresh["isError"], true, "{fresh}");
}

/// Returns whether a process on this machine has this in its command line.
fn runs_with(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(text))
}

#[test]
fn no_29_a_command_has_a_clean_environment_keeps_its_output_and_leaves_nobody_behind() {
    let lab = Lab::new();
    let arguments = json!({"command": "env; echo early; (sleep 2.0301; echo late > late.txt) & sleep 30.0301", "timeout_s": 1}).to_string();
    let args = [
        "call",
        "run_command",
        "--json",
        "--profile",
        "trusted",
        "-c",
        "tools.enable=[\"commands\"]",
        "-c",
        "approval.mode=\"auto:high\"",
        "--args",
        &arguments,
    ];
    let child = lab
        .command(&args)
        .env("AWS_SECRET_ACCESS_KEY", "top-secret-value")
        .spawn()
        .unwrap();
    let outcome = crate::harness::ended(child).json();
    assert_eq!(outcome["status"], "timeout", "{outcome}");
    let stdout = outcome["data"]["stdout"].as_str().unwrap();
    assert!(
        stdout.contains("early") && !stdout.contains("top-secret-value"),
        "{stdout}"
    );
    while runs_with("0301; echo late") {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        !lab.work().join("late.txt").exists(),
        "a grandchild outlived the deadline"
    );
    let flood = call(
        &lab,
        "run_command",
        &json!({"command": "yes | head -c 50000000"}),
    );
    assert_eq!(
        flood["data"]["stdout_bytes"], 50_000_000,
        "{}",
        flood["summary"]
    );
    assert!(flood.to_string().len() < 1_000_000);
}

#[test]
fn no_30_an_artifact_is_read_by_its_own_run_alone_and_named_by_its_bytes() {
    let lab = Lab::new();
    let lines = |word: &str| {
        let all: Vec<String> = (0..30_000).map(|n| format!("{word} {n}")).collect();
        all.join("\n")
    };
    lab.file("a.txt", &lines("apple"));
    lab.file("b.txt", &lines("berry"));
    let mut one = Stdio::open(&lab);
    let mut refs = Vec::new();
    for path in ["a.txt", "b.txt"] {
        let result = one.call("read_file", &json!({"path": path, "max_lines": 30_000}));
        let text = result.to_string();
        let start = text.find("sha256-").unwrap_or_else(|| panic!("{text}"));
        refs.push(text[start..start + 71].to_owned());
    }
    assert_ne!(refs[0], refs[1]);
    let own = one.call("read_artifact", &json!({"ref": refs[0], "limit": 100}));
    assert_ne!(own["isError"], true, "{own}");
    let foreign = Stdio::open(&lab).call("read_artifact", &json!({"ref": refs[0], "limit": 100}));
    assert_eq!(foreign["isError"], true, "{foreign}");
}

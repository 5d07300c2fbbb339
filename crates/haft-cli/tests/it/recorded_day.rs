//! A day's work, recorded: an agent in Claude Code's wire form runs the failing test of a project in the jail, fixes it, and runs it
//! again. Its transcript has the failing assertion, through MCP and through the hook.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout};

use haft_scripted::serve;
use serde_json::{Value, json};

use crate::harness::{Lab, ended};
use crate::hook::{before, decision, hook};
use crate::serve::{exchange, hello, tool_call};
use crate::signals::jailed;

mod projects;

use projects::{PROJECTS, Project, scenario};

/// The tools that the agent has, by which it works.
trait Hands {
    /// Runs a command; returns what the model reads, and whether it is an error.
    fn run(&mut self, line: &str) -> (String, bool);
    /// Replaces a text in a file.
    fn edit(&mut self, path: &str, find: &str, replace: &str) -> (String, bool);
}

/// haft's tools over MCP.
struct ByMcp(Child, BufReader<ChildStdout>);

impl ByMcp {
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = exchange(&mut self.0, &mut self.1, &tool_call(7, tool, arguments));
        let blocks = answer["result"]["content"].as_array();
        let blocks = blocks.unwrap_or_else(|| panic!("{answer}")).iter();
        let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        (texts.join("\n"), answer["result"]["isError"] == true)
    }
}

impl Hands for ByMcp {
    fn run(&mut self, line: &str) -> (String, bool) {
        self.call("run_command", &json!({"command": line, "timeout_s": 300}))
    }

    fn edit(&mut self, path: &str, find: &str, replace: &str) -> (String, bool) {
        self.call("read_file", &json!({"path": path}));
        let edits = json!([{"find": find, "replace": replace}]);
        self.call("edit_file", &json!({"path": path, "edits": edits}))
    }
}

/// The agent's own tools, with haft in its hooks.
struct ByHook<'a> {
    lab: &'a Lab,
    calls: u32,
}

impl Hands for ByHook<'_> {
    fn run(&mut self, line: &str) -> (String, bool) {
        self.calls += 1;
        let input = json!({"command": line, "description": "run it", "timeout": 300_000});
        let answer = hook(
            self.lab,
            &before(self.lab, &format!("t-{}", self.calls), "Bash", &input),
        );
        assert_eq!(decision(&answer).0, "allow", "{line}: {}", answer.stdout);
        let input = &answer.json()["hookSpecificOutput"]["updatedInput"];
        let line = input["command"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", answer.stdout));
        assert!(line.contains("haft"), "it runs in the jail: {line}");
        let ran = ended(self.lab.program("bash", &["-c", line]).spawn().unwrap());
        (format!("{}{}", ran.stdout, ran.stderr), ran.code != 0)
    }

    fn edit(&mut self, path: &str, find: &str, replace: &str) -> (String, bool) {
        self.calls += 1;
        let file = self.lab.work().join(path);
        let input = json!({"file_path": file, "old_string": find, "new_string": replace});
        let answer = hook(
            self.lab,
            &before(self.lab, &format!("t-{}", self.calls), "Edit", &input),
        );
        assert_eq!(decision(&answer).0, "allow", "{path}: {}", answer.stdout);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(find, replace)).unwrap();
        ("The file was updated.".to_owned(), false)
    }
}

/// Sends one request of Anthropic Messages; returns the model's message.
fn ask(address: SocketAddr, messages: &[Value]) -> Value {
    let tool =
        |name: &str| json!({"name": name, "description": name, "input_schema": {"type": "object"}});
    let body = json!({
        "model": "scripted", "max_tokens": 4096, "messages": messages, "tools": [tool("Bash"), tool("Edit")],
    })
    .to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{answer}"));
    let is_chunked = head.to_ascii_lowercase().contains("chunked");
    let body = if is_chunked {
        joined(body)
    } else {
        body.to_owned()
    };
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// Returns the chunks of a body as one text.
fn joined(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        out.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    out
}

/// Returns the call that corrects the fault.
fn edit(project: &Project) -> String {
    let (file, find, replace) = project.fault;
    format!(
        "{{ tool = \"Edit\", arguments = {{ path = {file:?}, find = {find:?}, replace = {replace:?} }} }}"
    )
}

/// Works as a coding agent does, until the model makes no more calls; returns the transcript.
fn work(project: &Project, hands: &mut dyn Hands) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime
        .block_on(serve(scenario(project, "Bash", &edit(project))))
        .unwrap();
    let mut messages = vec![json!({"role": "user", "content": "make the test pass"})];
    loop {
        let reply = ask(model.address(), &messages);
        let content = reply["content"]
            .as_array()
            .unwrap_or_else(|| panic!("{}: {reply}\n{messages:#?}", project.name));
        let calls = content.iter().filter(|block| block["type"] == "tool_use");
        let results: Vec<Value> = calls
            .map(|call| {
                let input = |name: &str| call["input"][name].as_str().unwrap_or_default();
                let (text, is_error) = match call["name"].as_str() {
                    Some("Bash") => hands.run(input("command")),
                    _ => hands.edit(input("path"), input("find"), input("replace")),
                };
                json!({"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": is_error})
            })
            .collect();
        messages.push(json!({"role": "assistant", "content": content}));
        if results.is_empty() {
            assert_eq!(model.problems(), Vec::<String>::new(), "{}", project.name);
            return serde_json::to_string_pretty(&messages).unwrap();
        }
        messages.push(json!({"role": "user", "content": results}));
    }
}

/// Returns a folder with the project; `None` if this machine lacks its program.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn lab(project: &Project) -> Option<Lab> {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    // The user's toolchain lies in the real home.
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from)?;
    for (variable, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let folder = std::env::var_os(variable).map_or_else(|| home.join(below), Into::into);
        if folder.is_dir() {
            lab.set(variable, folder);
        }
    }
    let found = lab
        .program("sh", &["-c", &format!("command -v {}", project.needs)])
        .output();
    if !found.is_ok_and(|found| found.status.success()) {
        eprintln!("SKIPPED: {} is not on this machine", project.needs);
        return None;
    }
    for (name, text) in project.files {
        lab.file(name, text);
    }
    lab.user_settings("[policy]\nprofile = \"trusted\"\n[hook]\nwrap = \"jail\"\nwait_s = 20\n");
    Some(lab)
}

fn was_fixed(project: &Project, lab: &Lab, transcript: &str) {
    let (file, _, fixed) = project.fault;
    assert!(
        std::fs::read_to_string(lab.work().join(file))
            .unwrap()
            .contains(fixed),
        "{transcript}"
    );
    for part in project.assertion {
        assert!(
            transcript.contains(part),
            "{}: no {part:?} in {transcript}",
            project.name
        );
    }
}

#[test]
fn an_agent_over_mcp_reads_the_failing_assertion_and_fixes_it() {
    for project in &PROJECTS {
        let Some(lab) = lab(project) else { continue };
        if !jailed(&lab) {
            return;
        }
        let mut child = lab.command(&["serve", "--stdio"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        exchange(&mut child, &mut stdout, &hello());
        let mut hands = ByMcp(child, stdout);
        let transcript = work(project, &mut hands);
        drop(hands.0.stdin.take());
        drop(hands.1);
        ended(hands.0);
        was_fixed(project, &lab, &transcript);
    }
}

#[test]
fn an_agent_with_the_hook_reads_the_failing_assertion_and_fixes_it() {
    for project in &PROJECTS {
        let Some(lab) = lab(project) else { continue };
        if !jailed(&lab) {
            return;
        }
        let mut hands = ByHook {
            lab: &lab,
            calls: 0,
        };
        let transcript = work(project, &mut hands);
        was_fixed(project, &lab, &transcript);
    }
}

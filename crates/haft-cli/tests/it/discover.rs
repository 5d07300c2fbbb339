//! Searching, deferring and expanding tools: on the command line, and over MCP.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use crate::harness::{Lab, ended};

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn search_ranks_what_is_on() {
    let lab = Lab::new();
    let found = lab
        .run(&["tools", "--search", "read a file", "--json"])
        .json();
    assert_eq!(names(&found)[0], "read_file");
    let scores: Vec<f64> = found
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|t| t["score"].as_f64())
        .collect();
    assert!(
        scores.is_sorted_by(|a, b| a >= b) && scores[0] > 0.0,
        "{scores:?}"
    );
    assert!(found[0]["input_schema"].is_object());
    let rows: [(&[&str], &str); 5] = [
        (&["GREP_FILES"], "grep_files"),
        (
            &["delete a file", "-c", "tools.enable=delete_file"],
            "delete_file",
        ),
        (&["capability_search"], "tool_search"),
        (&["write", "-c", "tools.disable=Edit"], "todo_write"),
        (&["write", "-c", "tools.defer=Edit"], "write_file"),
    ];
    for (args, expect) in rows {
        let ran = lab.run(&[&["tools", "--json", "--search"], args].concat());
        // A disabled tool is listed at its rank, and marked.
        let mut found = ran.json();
        let all = found.as_array_mut().unwrap();
        all.retain(|tool| tool["enabled"] != false);
        assert_eq!(names(&found)[0], expect, "{args:?}");
    }
    let ran = lab.run(&["tools", "--search", "?!"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("no tool fits"), "{}", ran.stderr);
    let ran = lab.run(&["tools", "--search", &"word ".repeat(20_000)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(lab.run(&["tools", "read_file", "--search", "x"]).code, 2);
}

#[test]
fn the_list_shows_deferred_tools_as_such_and_an_untrusted_folder_defers_nothing() {
    let lab = Lab::new();
    let defers = ["tools", "--json", "-c", "tools.defer=files"];
    let listed = lab.run(&defers).json();
    let read = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|t| t["name"] == "read_file");
    assert_eq!(read.unwrap()["exposure"], "deferred");
    let ran = lab.run(&["call", "read_file", "-c", "tools.defer=files", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.json()["error"]["kind"], "unavailable");
    lab.file("haft.toml", "tools.defer = [\"files\"]\n");
    let ran = lab.run(&["tools", "read_file", "--json"]);
    assert_eq!(ran.json()["exposure"], "listed");
    assert!(ran.stderr.contains("tools.defer"), "{}", ran.stderr);
}

#[test]
fn wrong_settings_of_finding_are_told() {
    let lab = Lab::new();
    let rows: [(&[&str], &str); 4] = [
        (&["-c", "tools.defer=fils"], "did you mean `files`?"),
        (
            &["-c", "tools.defer=files", "-c", "tools.disable=discover"],
            "`tool_search`, which is off",
        ),
        (
            &["-c", "search.embeddings.url=http://127.0.0.1:48620/v1"],
            "search.embeddings.model",
        ),
        (
            &[
                "-c",
                "search.embeddings.url=nonsense",
                "-c",
                "search.embeddings.model=m",
            ],
            "search.embeddings.url",
        ),
    ];
    for (options, says) in rows {
        let ran = lab.run(&[&["tools"], options].concat());
        assert_eq!(ran.code, 5, "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
    }
    // If a service does not answer, the search by words remains.
    let options = [
        "-c",
        "search.embeddings.url=http://127.0.0.1:48620/v1",
        "-c",
        "search.embeddings.model=m",
    ];
    let args = [
        "call",
        "tool_search",
        "--json",
        "--args",
        r#"{"query":"read a file"}"#,
    ];
    let found = lab.run(&[&args, &options[..]].concat()).json();
    assert_eq!(found["data"]["tools"][0]["name"], "read_file");
}

/// An MCP client on the pipes of `haft serve --stdio`.
struct Client {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Methods of the notifications received.
    notes: Vec<String>,
    next: u32,
}

impl Client {
    fn start(lab: &Lab, options: &[&str]) -> Self {
        let mut child = lab
            .command(&[&["serve", "--stdio"], options].concat())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self {
            child,
            stdout,
            notes: Vec::new(),
            next: 0,
        };
        client.ask("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(
            self.stdout.read_line(&mut line).unwrap() > 0,
            "the server hung up"
        );
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(method) = message["method"].as_str() {
            self.notes.push(method.to_owned());
        }
        message
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn lists(&mut self, tool: &str) -> bool {
        let list = self.ask("tools/list", &json!({}));
        names(&list["tools"]).contains(&tool)
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        drop(self.stdout);
        let ran = ended(self.child);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

#[test]
fn a_deferred_tool_is_found_expanded_listed_and_called_over_mcp() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let mut client = Client::start(&lab, &["-c", "tools.defer=files"]);
    let read = json!({"path": "a.txt"});
    assert!(!client.lists("read_file") && client.lists("tool_expand_tools"));

    let refused = client.call("read_file", &read);
    assert_eq!(refused["isError"], true);
    let said = refused.to_string();
    assert!(
        said.contains("not expanded") && said.contains("tool_expand_tools"),
        "{said}"
    );

    let found = client.call("tool_search", &json!({"query": "read a text file"}));
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!(
        (&first["name"], &first["deferred"]),
        (&json!("read_file"), &json!(true))
    );

    let names = json!({"tool_names": ["read_file", "nope"]});
    let expanded = client.call("tool_expand_tools", &names);
    assert_eq!(
        expanded["structuredContent"]["expanded_tools"],
        json!(["read_file"])
    );
    let changed = "notifications/tools/list_changed";
    while !client.notes.iter().any(|note| note == changed) {
        client.read();
    }
    assert!(client.lists("read_file") && !client.lists("write_file"));
    let called = client.call("read_file", &read);
    assert_eq!(called.pointer("/content/0/text").unwrap(), "hello\n");

    // Another client's run is not affected.
    let mut other = Client::start(&lab, &["-c", "tools.defer=files"]);
    assert!(!other.lists("read_file"));
    other.end();
    client.end();
}

#[test]
fn f11_no_search_finds_or_expands_a_tool_that_a_rule_takes_away() {
    for deny in ["policy.deny=write_file", "policy.deny=Edit"] {
        let lab = Lab::new();
        let mut client = Client::start(&lab, &["-c", "tools.defer=files", "-c", deny]);
        let found = client.call("tool_search", &json!({"query": "write a file"}));
        let found = &found["structuredContent"]["tools"];
        assert!(!names(found).contains(&"write_file"), "{deny}: {found}");
        let expand = json!({"tool_names": ["write_file"]});
        let expanded = client.call("tool_expand_tools", &expand)["structuredContent"].clone();
        assert_eq!(expanded["expanded_tools"], json!([]), "{deny}: {expanded}");
        assert!(!client.lists("write_file"), "{deny}");
        let write = json!({"path": "a", "content": ""});
        assert_eq!(client.call("write_file", &write)["isError"], true);
        assert!(!lab.work().join("a").exists());
        client.end();
    }
}

#[test]
fn f10_a_client_reaches_a_skill_closed_to_models_by_its_prompt_alone() {
    let lab = Lab::new();
    let front = "name: closed\ndescription: Closed.\ndisable-model-invocation: true";
    let text = format!("---\n{front}\n---\nThe body.\n");
    lab.file(".agents/skills/closed/SKILL.md", &text);
    lab.file(".agents/skills/closed/more.md", "The body.\n");
    let mut client = Client::start(&lab, &["--trust"]);
    let file = json!({"uri": "skill://closed/more.md"});
    for (tool, arguments) in [
        ("invoke_skill", json!({"skill": "closed"})),
        ("load_skill", json!({"skill": "closed"})),
        ("invoke_skill", json!({"skill": "wrong"})),
    ] {
        let said = client.call(tool, &arguments);
        let text = said.to_string();
        assert_eq!(said["isError"], true, "{tool}: {text}");
        assert!(!text.contains("The body"), "{tool}: {text}");
        let given = arguments["skill"] == "closed";
        assert!(given || !text.contains("closed"), "{tool}: {text}");
    }
    let listed = client.ask("resources/list", &json!({})).to_string();
    assert!(!listed.contains("closed"), "{listed}");
    let read = client.ask("resources/read", &file);
    assert_eq!(read, Value::Null);
    let prompt = client.ask("prompts/get", &json!({"name": "closed"}));
    assert!(prompt.to_string().contains("The body."), "{prompt}");
    // The user has activated it: its files can be read.
    let read = client.ask("resources/read", &file).to_string();
    assert!(read.contains("The body."), "{read}");
    client.end();
}

/// Returns the text up to its first full stop: lists show only that.
fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(sentence, _)| sentence)
}

#[test]
fn the_first_sentence_of_every_description_is_short() {
    let lab = Lab::new();
    lab.file(
        ".agents/skills/notes/SKILL.md",
        "---\nname: notes\ndescription: Writes notes.\n---\nWrite.\n",
    );
    assert_eq!(lab.run(&["trust"]).code, 0);
    let everything = [
        r#"tools.enable=["files", "commands", "web", "memory", "skills", "discover", "delete_file"]"#,
        "web.search.provider=searxng",
        "web.search.url=http://127.0.0.1:8888",
    ];
    let mut args = vec!["tools", "--json"];
    args.extend(everything.iter().flat_map(|setting| ["-c", *setting]));
    let ran = lab.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list = ran.json();
    let tools = list.as_array().unwrap();
    let names: Vec<&str> = names(&list);
    for name in [
        "delete_file",
        "run_command",
        "web_search",
        "memory",
        "load_skill",
        "ask_user",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for tool in tools {
        let description = tool["description"].as_str().unwrap();
        let sentence = first_sentence(description);
        let length = sentence.chars().count();
        assert!(
            length < 100,
            "{}: {length} characters: {sentence}",
            tool["name"]
        );
    }
}

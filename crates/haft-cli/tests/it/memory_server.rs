//! Memory stored by an MCP server: the memory tools become calls of the server's tools, judged and recorded as those.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Lab, Ran};

/// A server that stores its input in a file of its folder, and answers with its arguments.
const SERVER: &str = r#"
import json, os, sys
store = os.environ["KEPT"]
def tool(name, *arguments):
    return {"name": name, "inputSchema": {"type": "object", "required": list(arguments)}}
def call(name, arguments):
    if name in ("create_entities", "store"):
        with open(store, "a") as file: file.write(json.dumps(arguments) + "\n")
        return "stored"
    return name + " " + json.dumps(arguments) + " in " + (open(store).read() if os.path.exists(store) else "nothing")
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    elif m["method"] == "tools/list":
        answer["result"] = {"tools": [tool("create_entities", "entities"), tool("search_nodes", "query"), tool("store", "body"), tool("find", "words")]}
    elif m["method"] == "tools/call":
        text = call(m["params"]["name"], m["params"]["arguments"])
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

/// Settings of the memory, without rules.
const MEMORY: &str = "memory.provider = \"mcp:notes\"\nmemory.write_mode = \"external\"\n";

fn lab(settings: &str) -> Lab {
    let lab = Lab::new();
    let root = lab.home().parent().unwrap().to_owned();
    fs::create_dir(root.join("server")).unwrap();
    fs::create_dir(root.join("kept")).unwrap();
    fs::write(root.join("server/server.py"), SERVER).unwrap();
    let at = root.display();
    lab.user_settings(&format!(
        "{settings}[mcp.servers.notes]\ncommand = \"python3\"\nargs = [\"{at}/server/server.py\"]\nenv = {{ KEPT = \"{at}/kept/texts\" }}\nsandbox.read = [\"{at}/server\"]\nsandbox.write = [\"{at}/kept\"]\n"
    ));
    let pinned = lab.run(&["mcp", "pin", "notes", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    lab
}

fn call(lab: &Lab, tool: &str, arguments: &Value, more: &[&str]) -> Ran {
    let arguments = arguments.to_string();
    let mut all = vec!["call", tool, "--args", &arguments, "--json"];
    all.extend(more);
    lab.run(&all)
}

fn text(ran: &Ran) -> String {
    let outcome = ran.json();
    let text = outcome["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{outcome} {}", ran.stderr))
        .to_owned()
}

const ALLOW: [&str; 2] = ["-c", "policy.allow=[\"notes.*\"]"];

#[test]
fn a_memory_is_written_and_recalled_by_calls_of_the_servers_tools() {
    let lab = lab(MEMORY);
    let content = json!({"content": "Ana signs the releases"});
    let written = call(&lab, "write_memory", &content, &ALLOW);
    assert_eq!(text(&written), "stored");
    let outcome = written.json();
    // It is a call of the server's tool in the record, too.
    assert_eq!(outcome["tool"], "notes.create_entities", "{outcome}");
    let run = outcome["run"].as_str().unwrap();
    let record = fs::read_to_string(lab.home().join("runs").join(run).join("events.jsonl"));
    let record = record.unwrap();
    assert!(record.contains("notes.create_entities") && !record.contains("write_memory"));
    let recalled = call(&lab, "recall_memory", &json!({"query": "Ana"}), &ALLOW);
    let recalled = text(&recalled);
    assert!(
        recalled.starts_with(r#"search_nodes {"query": "Ana"} in"#),
        "{recalled}"
    );
    assert!(recalled.contains(r#""observations": ["Ana signs the releases"]"#));
    // The same text has the same name, so that a graph stores it once.
    call(&lab, "write_memory", &content, &ALLOW);
    let kept = lab.home().parent().unwrap().join("kept/texts");
    let kept = fs::read_to_string(kept).unwrap();
    let lines: Vec<&str> = kept.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, lines[1]));
    let doctor = lab.run(&["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "memory");
    let detail = check.unwrap()["detail"].as_str().unwrap();
    assert!(
        detail.contains("notes.search_nodes, notes.create_entities"),
        "{detail}"
    );
}

#[test]
fn the_policy_rules_about_the_servers_tool_and_a_view_that_lacks_it_reaches_nothing() {
    let lab = lab(MEMORY);
    let content = json!({"content": "x"});
    assert_eq!(call(&lab, "write_memory", &content, &[]).code, 4, "asked");
    let deny = [
        "-c",
        "policy.allow=[\"notes.*\"]",
        "-c",
        "policy.deny=[\"notes.create_entities\"]",
    ];
    assert_eq!(call(&lab, "write_memory", &content, &deny).code, 3);
    let off = [
        "-c",
        "policy.allow=[\"notes.*\"]",
        "-c",
        "tools.disable=[\"notes.create_entities\"]",
    ];
    let ran = call(&lab, "write_memory", &content, &off);
    assert_eq!(ran.json()["error"]["kind"], "not_found", "{}", ran.stderr);
    let off = ["-c", "tools.disable=[\"write_memory\"]"];
    assert_eq!(call(&lab, "write_memory", &content, &off).code, 2);
    for wrong in [
        json!({}),
        json!({"content": [1]}),
        json!({"content": "x", "scope": "user"}),
    ] {
        let ran = call(&lab, "write_memory", &wrong, &ALLOW);
        assert_eq!(ran.json()["error"]["kind"], "invalid_arguments", "{wrong}");
    }
    let bound = [
        "-c",
        "tools.write_memory.bind.content=\"y\"",
        "-c",
        "policy.allow=[\"notes.*\"]",
    ];
    // Arguments bound by the host are not lost on the way to another tool.
    let ran = call(&lab, "write_memory", &json!({}), &bound);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    assert!(!lab.home().parent().unwrap().join("kept/texts").exists());
}

#[test]
fn other_tools_and_arguments_are_named_and_what_cannot_hold_is_refused() {
    let named = "memory.recall = { tool = \"find\", argument = \"words\" }\nmemory.write = { tool = \"store\", argument = \"body\" }\n";
    let lab = lab(&format!("{MEMORY}{named}"));
    let written = call(&lab, "write_memory", &json!({"content": "b"}), &ALLOW);
    assert_eq!(written.json()["tool"], "notes.store");
    let recalled = call(&lab, "recall_memory", &json!({"query": "q"}), &ALLOW);
    let recalled = text(&recalled);
    assert!(
        recalled.contains(r#"find {"words": "q"} in {"body": "b"}"#),
        "{recalled}"
    );
    for (setting, code, words) in [
        ("memory.write_mode=disabled", 2, "memory.write_mode"),
        ("memory.write_mode=candidate", 5, "needs memory.provider"),
        ("memory.provider=mcp:none", 5, "no MCP server `none`"),
        ("policy.deny=[\"write_memory\"]", 5, "notes.store"),
    ] {
        let ran = call(
            &lab,
            "write_memory",
            &json!({"content": "c"}),
            &["-c", setting],
        );
        let (found, said) = (ran.code, &ran.stderr);
        assert!(
            found == code && said.contains(words),
            "{setting}: {found} {said}"
        );
    }
    let other = ["-c", "memory.write.tool=other"];
    let ran = call(&lab, "write_memory", &json!({"content": "c"}), &other);
    let error = ran.json()["error"].clone();
    assert_eq!(error["kind"], "not_found", "{error}");
    assert!(error.to_string().contains("notes.other"), "{error}");
    let lab = self::lab(MEMORY);
    let ran = call(
        &lab,
        "write_memory",
        &json!({"content": "c"}),
        &["-c", "memory.write.tool=store"],
    );
    assert!(
        ran.code == 5 && ran.stderr.contains("memory.write.argument"),
        "{}",
        ran.stderr
    );
}

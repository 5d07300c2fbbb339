//! What an MCP server behind haft offers besides tools, and tools under their own names, with `haft serve --stdio`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::gateway::{ask, token};
use crate::harness::{Lab, ended};
use crate::serve::{Server, exchange, hello};

/// A server in Python with a resource, a prompt, and tools, one of which has the name of one of haft's.
const SERVER: &str = r#"
import json, os, sys
def text(t): return {"content": [{"type": "text", "text": t}]}
def result(m):
    method, params = m["method"], m.get("params", {})
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}, "serverInfo": {"name": "far", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": n, "inputSchema": {"type": "object"}, "x-odd": 12345678901234567890123} for n in ("hello", "read_file")]}
    if method == "tools/call": return text("from afar: " + params["name"])
    if method == "resources/list": return {"resources": [{"uri": "far://a", "name": "a", "x": 1}]}
    if method == "resources/templates/list": return {"resourceTemplates": []}
    if method == "resources/read": return {"contents": [{"uri": params["uri"], "text": "a text", "y": 12345678901234567890123}]}
    if method == "prompts/list": return {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}
    if method == "prompts/get":
        said = "hello " + params["arguments"]["who"]
        return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
    if method == "completion/complete": return {"completion": {"values": [params["ref"]["name"] + "!"]}}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    found = result(m)
    answer.update({"result": found} if found else {"error": {"code": -32601, "message": "unknown"}})
    print(json.dumps(answer), flush=True)
"#;

/// Creates a lab with the server, named `far`, pinned.
fn lab(more: &str) -> Lab {
    let lab = Lab::new();
    let folder = lab.home().parent().unwrap().join("server");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("server.py"), SERVER).unwrap();
    let at = folder.display();
    lab.user_settings(&format!(
        "[mcp.servers.far]\ncommand = \"python3\"\nargs = [\"{at}/server.py\"]\nsandbox.read = [\"{at}\"]\n{more}"
    ));
    let pinned = lab.run(&["mcp", "pin", "far", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    lab
}

/// Returns haft's answers to these requests of a client of the handshake era, in order.
fn answers(lab: &Lab, more: &[&str], requests: &[Value]) -> Vec<String> {
    let args = ["serve", "--stdio", "-c", "approval.mode=deny"];
    let mut child = lab.command(&[&args, more].concat()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    exchange(&mut child, &mut stdout, &hello());
    let mut answers = Vec::new();
    for (id, request) in requests.iter().enumerate() {
        let stdin = child.stdin.as_mut().unwrap();
        let (method, params) = (&request["method"], &request["params"]);
        let message = json!({"jsonrpc": "2.0", "id": id + 2, "method": method, "params": params});
        writeln!(stdin, "{message}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        answers.push(line);
    }
    drop(child.stdin.take());
    drop(stdout);
    assert_eq!(ended(child).code, 0);
    answers
}

fn wants() -> [Value; 5] {
    [
        json!({"method": "resources/list", "params": {}}),
        json!({"method": "resources/read", "params": {"uri": "far://a"}}),
        json!({"method": "prompts/list", "params": {}}),
        json!({"method": "prompts/get", "params": {"name": "far.greet", "arguments": {"who": "Ada"}}}),
        json!({"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "far.greet"}, "argument": {"name": "who", "value": "A"}}}),
    ]
}

#[test]
fn resources_and_prompts_of_a_server_are_offered_and_got_where_rules_let_them() {
    let lab = lab("");
    let allowed = answers(&lab, &["-c", "policy.allow=[\"far.*\"]"], &wants());
    for (answer, expect) in allowed.iter().zip([
        r#"{"uri": "far://a", "name": "a", "x": 1}"#,
        r#""y": 12345678901234567890123"#,
        r#""name": "far.greet""#,
        "hello Ada",
        "greet!",
    ]) {
        assert!(answer.contains(expect), "{expect}: {answer}");
    }
    let denied = answers(&lab, &[], &wants());
    for (answer, is_given) in denied.iter().zip([true, false, true, false, true]) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer.get("result").is_some(), is_given, "{answer}");
    }
}

#[test]
fn a_view_without_a_tool_of_a_server_has_nothing_else_of_it_either() {
    let lab = lab(
        "[policy]\nallow = [\"far.*\"]\n[views.near]\ntools = [\"far.hello\"]\n[views.off]\ntools = [\"list_files\"]\n",
    );
    let server = Server::start(&lab, &["-c", "approval.mode=deny"]);
    let [near, off] =
        [("ann", "near"), ("bob", "off")].map(|(name, view)| token(&lab, &[name, "--view", view]));
    let mut wants = wants().to_vec();
    // A URI that names the server.
    wants.push(json!({"method": "resources/read", "params": {"uri": "mcp://far/far://a"}}));
    wants.push(json!({"method": "resources/templates/list", "params": {}}));
    for want in &wants {
        let method = want["method"].as_str().unwrap();
        let [with, without] =
            [&near, &off].map(|token| ask(&server, token, method, &want["params"]).json());
        assert!(with.get("result").is_some(), "{want}: {with}");
        if method.ends_with("list") {
            assert!(!without["result"].to_string().contains("far"), "{without}");
        } else {
            assert!(without.get("error").is_some(), "{want}: {without}");
        }
    }
}

#[test]
fn tools_of_a_server_have_their_own_names_where_settings_say_so_and_never_take_that_of_another() {
    let lab = lab("prefix = \"\"\n");
    lab.file("mine.txt", "mine\n");
    let call = |name: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let list = json!({"method": "tools/list", "params": {}});
    let requests = [
        list,
        call("hello", json!({})),
        call("read_file", json!({"path": "mine.txt"})),
        json!({"method": "prompts/list", "params": {}}),
    ];
    let got = answers(&lab, &["-c", "policy.allow=[\"hello\"]"], &requests);
    assert!(got[0].contains(r#""name": "hello","#), "{}", got[0]);
    assert!(got[0].contains("12345678901234567890123"), "{}", got[0]);
    assert_eq!(got[0].matches(r#""name":"read_file""#).count(), 1);
    assert!(!got[0].contains(r#""name": "read_file""#), "{}", got[0]);
    assert!(got[1].contains("from afar: hello"), "{}", got[1]);
    assert!(
        got[2].contains("mine") && !got[2].contains("from afar"),
        "{}",
        got[2]
    );
    assert!(got[3].contains(r#""name": "greet""#), "{}", got[3]);
    let said = lab.run(&["tools"]).stderr;
    assert!(said.contains("`read_file` is not offered"), "{said}");
    let wrong = lab.run(&["mcp", "list", "-c", "mcp.servers.far.prefix=\"a b\""]);
    assert!(
        wrong.code == 5 && wrong.stderr.contains("cannot be the prefix"),
        "{}",
        wrong.stderr
    );
}

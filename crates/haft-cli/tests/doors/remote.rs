//! The same table for a tool of an MCP server behind haft, which changes a file whenever it is called: judged, approved, limited and
//! recorded like any other.

use std::fs;

use crate::binary;
use crate::table::{self, Row, row};

/// A server whose tool `touch` changes a file of the workspace; `fail` fails, and `wait` never answers.
const SERVER: &str = r#"
import json, os, sys, time
schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
tools = [{"name": n, "description": n, "inputSchema": schema} for n in ("touch", "fail", "wait")]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}}
    elif m["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    elif m["method"] == "tools/call":
        name = m["params"]["name"]
        if name == "wait": time.sleep(600)
        if name == "touch": open(os.environ["TOUCHED"], "w").write(m["params"]["arguments"]["name"])
        answer["result"] = {"content": [{"type": "text", "text": name}], "isError": name == "fail"}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

const TOUCH: &str = r#"{"name":"x"}"#;

fn far(name: &'static str, profile: &'static str, status: &'static str) -> Row {
    Row {
        arguments: TOUCH,
        ..row(name, profile, "far.touch", status)
    }
}

/// Risk, rule, approver, limits.
#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Row> {
    vec![
        far("a server's tool is denied read-only", "read-only", "denied"),
        Row { allow: &["far.*"], ..far("no rule lifts read-only", "read-only", "denied") },
        far("nobody to ask is denied", "workspace", "denied"),
        far("and so it is when trusted: it is a stranger's", "trusted", "denied"),
        Row { auto: Some("safe"), ..far("the approver stops at its risk", "workspace", "denied") },
        Row { auto: Some("high"), ..far("the approver lets it run", "workspace", "ok") },
        Row { allow: &["far.touch"], ..far("an allow rule lets it run", "workspace", "ok") },
        Row { allow: &["far.fail"], ..far("an allow rule for another does not", "workspace", "denied") },
        Row { deny: &["far.*"], allow: &["far.touch"], auto: Some("high"), ..far("deny comes before allow", "trusted", "denied") },
        Row { ask: &["far.touch"], allow: &["far.touch"], ..far("ask comes before allow", "trusted", "denied") },
        Row { allow: &["*"], ..row("a tool that it does not have is an error", "trusted", "far.none", "error") },
        Row { allow: &["*"], arguments: r#"{"name":{}}"#, ..far("wrong arguments are an error", "trusted", "error") },
        Row { allow: &["*"], arguments: r#"{"name":"a","name":"b"}"#, ..far("arguments that read two ways are an error", "trusted", "error") },
        Row { allow: &["far.*"], arguments: TOUCH, starts: true, ..row("a tool that fails is an error", "workspace", "far.fail", "error") },
        Row { allow: &["far.*"], arguments: TOUCH, call_timeout_s: 1.0, starts: true, ..row("the deadline is the host's", "workspace", "far.wait", "timeout") },
    ]
}

/// Creates the scene of the table with the server, pinned.
pub(crate) fn scene() -> tempfile::TempDir {
    let scene = table::scene();
    let root = scene.path();
    let server = root.join("server");
    fs::create_dir(&server).unwrap();
    fs::write(server.join("server.py"), SERVER).unwrap();
    fs::create_dir_all(root.join("config/haft")).unwrap();
    let settings = format!(
        "[mcp.servers.far]\ncommand = \"python3\"\nargs = [\"{}/server.py\"]\nenv = {{ TOUCHED = \"{}/ws/src/touched.txt\" }}\nsandbox.backend = \"passthrough\"\n",
        server.display(),
        root.display()
    );
    fs::write(root.join("config/haft/config.toml"), settings).unwrap();
    let mut pin = binary::haft(root, &far("pin", "workspace", "ok"));
    let pinned = pin.args(["mcp", "pin", "far", "--yes"]).output().unwrap();
    let said = String::from_utf8_lossy(&pinned.stderr);
    assert!(pinned.status.success(), "{said}");
    scene
}

//! The entry points of the binary: `haft call`, MCP on stdin and stdout, MCP over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::table::{Got, Row, lines};

pub(crate) fn haft(scene: &Path, row: &Row) -> Command {
    let mut command = asking(scene, row);
    let mode = row
        .auto
        .map_or("deny".to_owned(), |risk| format!("auto:{risk}"));
    command.args(["-c", &format!("approval.mode=\"{mode}\"")]);
    command
}

/// Returns the binary in the scene, with settings from files only.
#[expect(clippy::disallowed_methods, reason = "the real binary is run")]
pub(crate) fn bare(scene: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", scene)
        .env("HAFT_HOME", scene.join("home"))
        .env("XDG_CONFIG_HOME", scene.join("config"))
        // No server is left running in the background.
        .env("CI", "1")
        .current_dir(scene.join("ws"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns the binary with rules that ask a user who is absent.
pub(crate) fn asking(scene: &Path, row: &Row) -> Command {
    let mut command = bare(scene);
    let list = |key: &str, values: &[&str]| format!("{key}={}", json!(values));
    let settings = [
        list("policy.allow", row.allow),
        list("policy.ask", row.ask),
        list("policy.deny", row.deny),
        list("tools.enable", row.enable),
        format!("limits.call_timeout_s={}", row.call_timeout_s),
    ];
    command.args(settings.iter().flat_map(|setting| ["-c", setting]));
    command.args(["--profile", row.profile]);
    command
}

/// Makes the call with `haft call --json`.
pub(crate) fn call(scene: &tempfile::TempDir, row: &Row) -> Got {
    let mut command = haft(scene.path(), row);
    let output = command
        .args(["call", row.tool, "--json", "--args", row.arguments])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let outcome: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    let status = outcome["status"].as_str().unwrap().to_owned();
    let code = match status.as_str() {
        "ok" => 0,
        "denied" => 3,
        "error" if matches!(outcome["error"]["kind"].as_str(), Some("invalid_arguments")) => 2,
        "error"
            if said.contains("no tool")
                || outcome["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("no tool") =>
        {
            2
        }
        _ => 1,
    };
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}: {outcome}\n{said}",
        row.name
    );
    Got {
        status,
        lines: lines(&scene.path().join("home")),
    }
}

/// Runs a script of `haft chain` that makes the call with exactly these bytes, bypassing the checks on its own side.
pub(crate) fn chain(scene: &tempfile::TempDir, row: &Row) -> Got {
    let script = format!(
        "import sys\nwire = sys.modules['haft_runtime']._state.wire\n\
         wire.wait(wire.call({:?}.encode(), {:?}.encode()))\n",
        row.tool, row.arguments
    );
    let file = scene.path().join("script.py");
    std::fs::write(&file, script).unwrap();
    let mut command = haft(scene.path(), row);
    let timeout = format!("chain.call_timeout_s={}", row.call_timeout_s.min(60.0));
    // The chain itself has the usual time of a call; the calls in it have the row's.
    command.args(["-c", "limits.call_timeout_s=600", "-c", &timeout]);
    let output = command
        .args(["chain", "--json"])
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let outcome: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    let calls = outcome["calls"].as_array().cloned().unwrap_or_default();
    assert_eq!(calls.len(), 1, "{}: {outcome}", row.name);
    Got {
        status: calls[0]["status"].as_str().unwrap().to_owned(),
        lines: lines(&scene.path().join("home")),
    }
}

/// Runs `haft serve --stdio`, as a client of the era with sessions.
pub(crate) fn stdio(scene: &tempfile::TempDir, row: &Row) -> Got {
    let mut child = haft(scene.path(), row)
        .args(["serve", "--stdio"])
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |message: &str| {
        writeln!(input, "{message}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    ask(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"doors","version":"1"}}}"#,
    );
    let answer = ask(&request(row, ""));
    drop(input);
    end(child);
    Got {
        status: status(&answer),
        lines: lines(&scene.path().join("home")),
    }
}

/// Runs `haft serve` over HTTP, as a client of the era without sessions.
pub(crate) fn http(scene: &tempfile::TempDir, row: &Row) -> Got {
    let mut command = haft(scene.path(), row);
    let mut child = command
        .args(["serve", "--http", "127.0.0.1:0", "--json"])
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut ready)
        .unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let token = std::fs::read_to_string(ready["token_file"].as_str().unwrap()).unwrap();
    let url = ready["mcp"].as_str().unwrap();
    let host = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let meta = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"doors","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = request(row, meta);
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        row.tool,
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    end(child);
    Got {
        status: status(body),
        lines: lines(&scene.path().join("home")),
    }
}

/// Returns the call as it goes over the wire: the arguments byte for byte.
fn request(row: &Row, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","arguments":{}{meta}}}}}"#,
        row.tool, row.arguments
    )
}

/// Returns the status in an answer: in `_meta` next to the result.
fn status(answer: &str) -> String {
    let answer: Value =
        serde_json::from_str(answer.trim()).unwrap_or_else(|e| panic!("{e}: {answer}"));
    let result = &answer["result"];
    let status = result["_meta"]["haft"]["status"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(
        result["isError"].as_bool().unwrap_or(false),
        status != "ok",
        "{answer}"
    );
    status.to_owned()
}

/// Stops the server as an operator would.
fn end(mut child: Child) {
    let pid = rustix::process::Pid::from_child(&child);
    // It may have exited by itself at the end of its input.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    child.wait().unwrap();
}

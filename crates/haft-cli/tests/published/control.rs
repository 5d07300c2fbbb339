//! The server on this machine: who may speak with it, and how.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;

use crate::scene::Scene;

/// A running `haft serve`.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(scene: &Scene) -> Self {
        let serve = ["serve", "--http", "127.0.0.1:0", "--json"];
        let mut child = scene.haft(&serve).spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = ready["address"].as_str().unwrap().to_owned();
        Self { child, address }
    }

    /// Sends a request as it is; returns the answer.
    fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let text = format!(
            "{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A refusal may close the connection before all was sent.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CVE-2026-34742 (MCP Go SDK: rebinding), CVE-2026-35568, CVE-2026-22812 (opencode: no authentication), CVE-2026-27896 (MCP Go SDK:
/// keys in another case).
#[test]
fn a_page_or_program_without_a_token_has_nothing_done() {
    let scene = Scene::new("policy.profile = \"trusted\"\n");
    let server = Server::start(&scene);
    let at = &server.address;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"ran","content":"x"}}}"#;
    let cased = call.replace("method", "Method").replace("params", "PARAMS");
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let heads = [
        format!("POST /mcp HTTP/1.1\r\nHost: {at}\r\n{json}"),
        format!("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n{json}"),
        format!("POST /mcp HTTP/1.1\r\nHost: {at}\r\nOrigin: http://evil.example\r\n{json}"),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost.evil.example\r\nOrigin: http://localhost.evil.example\r\n{json}"
        ),
        format!("POST /mcp HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer \r\n{json}"),
        format!("POST /mcp HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer null\r\n{json}"),
        format!("POST /api/v1/runs HTTP/1.1\r\nHost: {at}\r\nContent-Type: text/plain"),
        format!("POST /api/v1/webhook/ap-1 HTTP/1.1\r\nHost: {at}\r\n{json}"),
    ];
    for head in &heads {
        for body in [call, &cased] {
            let answer = server.ask(head, body);
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert!(status.starts_with('4'), "{head}: {answer}");
        }
    }
    for path in [
        "/api/v1/runs",
        "/api/v1/approvals",
        "/api/v1/tools",
        "/metrics",
        "/mcp",
    ] {
        for host in [at.as_str(), "evil.example"] {
            let answer = server.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}"), "");
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert!(status.starts_with('4'), "{path}: {answer}");
        }
    }
    assert!(!scene.at("work/ran").exists());
}

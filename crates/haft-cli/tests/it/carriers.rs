//! MCP clients and their users, with the real server: sent to its console, and retrying after the server was killed.

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Reply, Request, Server, post};

/// Makes a write as a stateless client that can open addresses, with the state that it sends back.
fn write(server: &Server, token: &str, back: &Value) -> Reply {
    let mut params = json!({
        "name": "write_file", "arguments": {"path": "a.txt", "content": "approved"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}
        }
    });
    for (name, value) in back.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    server.ask(&Request {
        headers: &[
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "write_file"),
        ],
        ..post("/mcp", token, &body.to_string())
    })
}

#[test]
fn a_stateless_client_comes_back_after_a_kill_and_the_write_happens_once() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let asked = write(&server, &server.call, &Value::Null).json();
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let (id, request) = requests.iter().next().unwrap();
    let url = request["params"]["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert!(url.ends_with(&format!("/waiting/{id}")), "{url}");
    // Dropping it kills it.
    drop(server);
    let server = Server::start(&lab, &[]);
    let approve = format!("/api/v1/approvals/{id}/approve");
    assert_eq!(server.ask(&post(&approve, &server.call, "{}")).status, 403);
    assert_eq!(
        server.ask(&post(&approve, &server.operator, "{}")).status,
        200
    );
    let state = asked["result"]["requestState"].as_str().unwrap();
    let back = |state: &str| {
        let said = json!({id.as_str(): {"action": "accept"}});
        json!({"requestState": state, "inputResponses": said})
    };
    let forged = write(&server, &server.call, &back(&format!("x{state}")));
    assert_eq!(forged.status, 400, "{}", forged.body);
    let done = write(&server, &server.call, &back(state)).json();
    assert_eq!(done["result"]["isError"], json!(false), "{done}");
    let written = lab.work().join("a.txt");
    assert_eq!(std::fs::read_to_string(&written).unwrap(), "approved");
    // The state was for that one call: another one is a new request, and nothing is written.
    std::fs::remove_file(&written).unwrap();
    let again = write(&server, &server.call, &back(state)).json();
    assert_eq!(
        again["result"]["resultType"],
        json!("input_required"),
        "{again}"
    );
    assert!(!written.exists());
}

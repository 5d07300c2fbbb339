//! Tools that ask their client while they run: on the call's stream in the handshake era; in the stateless one the call keeps running,
//! the client's retry joins it, and number and time are limited.

use std::sync::Arc;
use std::time::Duration;

use haft::call::Principal;
use haft::caller::{CallerRequest, RequestKind};
use haft::testing::TestTool;
use haft::{Policy, ToolError, ToolResult};
use haft_mcp::http::{Access, McpService};
use haft_mcp::opener::OperatorMarker;
use haft_mcp::server::ServerLimits;
use http::Method;
use serde_json::{Value, json};

use crate::support::http_client::{MODERN, Reply, event, post, reply, request, send};
use crate::support::serving;
use crate::support::small_tools::SmallOpener;

/// Returns a tool that asks for a name, then for a colour, as often as its argument says.
fn asks() -> TestTool {
    let mut spec = TestTool::echo("asks");
    spec.concurrency_safe = true;
    TestTool::with_body(spec, |value, context| {
        Box::pin(async move {
            let caller = context.caller();
            let caller = caller.ok_or_else(|| ToolError::unavailable("no caller"))?;
            let mut said = Vec::new();
            for name in value["ask"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap().to_owned();
                let params = json!({"message": name, "requestedSchema": {"type": "object", "properties": {}}});
                let params = serde_json::value::to_raw_value(&params).unwrap();
                let asked = CallerRequest::new(RequestKind::Form, params).named(name);
                said.push(caller.ask(asked).await?.get().to_owned());
            }
            Ok(ToolResult::text(said.join(" ")))
        })
    })
}

/// A stateless client.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) service: McpService,
    pub(crate) who: &'static str,
    pub(crate) is_operator: bool,
    pub(crate) capabilities: Value,
}

impl Client {
    fn new(limits: ServerLimits) -> Self {
        Self::with_calls(limits, u64::MAX)
    }

    /// Returns a client whose runs allow this many calls.
    fn with_calls(limits: ServerLimits, most: u64) -> Self {
        let opener = Arc::new(SmallOpener::new(Policy::trusted(), false));
        *opener.max_calls.lock() = most;
        opener.add(asks());
        let service = serving(limits, &opener).http(Access::checked_before());
        Self::of(service, json!({"elicitation": {}}))
    }

    /// Returns a client of this service with these capabilities.
    pub(crate) fn of(service: McpService, capabilities: Value) -> Self {
        Self {
            service,
            who: "ada",
            is_operator: false,
            capabilities,
        }
    }

    /// Calls the tool that asks for these, with what the client sends back.
    pub(crate) async fn call(&self, ask: &[&str], back: Value) -> Reply {
        let mut params = json!({"name": "asks", "arguments": {"ask": ask}});
        for (name, value) in back.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.send("tools/call", "asks", params).await
    }

    /// Sends a request that names something.
    pub(crate) async fn send(&self, method: &str, name: &str, mut params: Value) -> Reply {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [MODERN, ("mcp-method", method), ("mcp-name", name)];
        let mut request = request(Method::POST, &headers, body.to_string());
        request.extensions_mut().insert(Principal::local(self.who));
        if self.is_operator {
            request.extensions_mut().insert(OperatorMarker);
        }
        reply(send(&self.service, request).await).await
    }
}

/// Returns what a client sends back: its state, and these answers.
fn back(asked: &Reply, responses: Value) -> Value {
    json!({"requestState": asked.json()["result"]["requestState"], "inputResponses": responses})
}

fn answer(name: &str) -> Value {
    json!({"action": "accept", "content": {"said": name}})
}

fn requested(reply: &Reply) -> Vec<String> {
    let result = &reply.json()["result"];
    assert_eq!(result["resultType"], "input_required", "{reply:?}");
    let requests = result["inputRequests"].as_object().unwrap();
    requests.keys().cloned().collect()
}

fn text(reply: &Reply) -> String {
    let result = &reply.json()["result"];
    assert_eq!(result["resultType"], "complete", "{reply:?}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_call_that_asks_runs_on_and_its_clients_retry_joins_it() {
    let client = Client::new(ServerLimits::default());
    let both = ["name", "colour"];
    let first = client.call(&both, Value::Null).await;
    assert_eq!(requested(&first), ["name"]);
    // Without the answer the tool asks again; entries without a request's name are ignored.
    let again = client
        .call(&both, back(&first, json!({"size": answer("9")})))
        .await;
    assert_eq!(requested(&again), ["name"]);
    let second = client
        .call(&both, back(&again, json!({"name": answer("ada")})))
        .await;
    assert_eq!(requested(&second), ["colour"]);
    let last = client
        .call(&both, back(&second, json!({"colour": answer("red")})))
        .await;
    let text = text(&last);
    assert!(text.contains("ada") && text.contains("red"), "{text}");
    // Each state joins the call once.
    for used in [&first, &again, &second] {
        let replayed = client
            .call(&both, back(used, json!({"name": answer("eve")})))
            .await;
        assert_eq!(replayed.verdict(), (400, -32602), "{replayed:?}");
    }
}

#[tokio::test]
async fn what_is_said_before_it_is_asked_needs_no_round() {
    let client = Client::new(ServerLimits::default());
    let early = json!({"inputResponses": {"name": answer("ada"), "other": answer("x")}});
    assert!(text(&client.call(&["name"], early).await).contains("ada"));
    // A value that is not an object is not an answer.
    let wrong = json!({"inputResponses": {"name": 12345}});
    assert_eq!(requested(&client.call(&["name"], wrong).await), ["name"]);
}

#[tokio::test]
async fn a_state_of_another_caller_call_or_making_joins_nothing_and_spends_nothing() {
    let client = Client::new(ServerLimits::default());
    let first = client.call(&["name"], Value::Null).await;
    let brought = back(&first, json!({"name": answer("ada")}));
    let eve = Client {
        who: "eve",
        ..client.clone()
    };
    assert_eq!(
        eve.call(&["name"], brought.clone()).await.verdict(),
        (400, -32602)
    );
    let other = client.call(&["name", "colour"], brought.clone()).await;
    assert_eq!(other.verdict(), (400, -32602));
    let mut forged = brought.clone();
    forged["requestState"] = format!("{}x", brought["requestState"].as_str().unwrap()).into();
    assert_eq!(
        client.call(&["name"], forged).await.verdict(),
        (400, -32602)
    );
    assert!(text(&client.call(&["name"], brought).await).contains("ada"));
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_hears_which_capability_is_missing() {
    let mut client = Client::new(ServerLimits::default());
    client.capabilities = json!({"sampling": {}});
    let reply = client.call(&["name"], Value::Null).await;
    assert_eq!(reply.verdict(), (400, -32021), "{reply:?}");
    let required = &reply.json()["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({"elicitation": {"form": {}}}));
}

#[tokio::test]
async fn where_too_many_calls_wait_for_clients_the_tool_hears_that_nobody_can_be_asked() {
    let client = Client::new(ServerLimits {
        parked: 1,
        ..ServerLimits::default()
    });
    let first = client.call(&["name"], Value::Null).await;
    assert_eq!(requested(&first), ["name"]);
    let crowded = client.call(&["name"], Value::Null).await.json();
    assert_eq!(crowded["result"]["isError"], true, "{crowded}");
    assert!(
        crowded.to_string().contains("too many questions"),
        "{crowded}"
    );
    let joined = client
        .call(&["name"], back(&first, json!({"name": answer("ada")})))
        .await;
    assert!(text(&joined).contains("ada"));
    assert_eq!(
        requested(&client.call(&["name"], Value::Null).await),
        ["name"]
    );
}

#[tokio::test]
async fn the_last_call_of_a_run_is_joined_like_any_other() {
    let client = Client::with_calls(ServerLimits::default(), 1);
    let first = client.call(&["name"], Value::Null).await;
    // The run accepts no more calls: its client gets a new one, and the old one continues.
    let second = client.call(&["name"], Value::Null).await;
    for asked in [&first, &second] {
        let joined = client
            .call(&["name"], back(asked, json!({"name": answer("ada")})))
            .await;
        assert!(text(&joined).contains("ada"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_does_not_come_back_ends_with_its_run_or_its_time() {
    let client = Client::new(ServerLimits {
        parked: 1,
        ..ServerLimits::default()
    });
    let first = client.call(&["name"], Value::Null).await;
    // slow on purpose: the clock is paused, and jumps.
    tokio::time::sleep(Duration::from_secs(400)).await;
    let late = client
        .call(&["name"], back(&first, json!({"name": answer("ada")})))
        .await;
    assert_eq!(late.verdict(), (400, -32602), "{late:?}");
    let second = client.call(&["name"], Value::Null).await;
    assert_eq!(requested(&second), ["name"], "its place was given back");
    client.service.shutdown();
    let over = client
        .call(&["name"], back(&second, json!({"name": answer("ada")})))
        .await;
    // The call ended with its run. If the retry still joins it, the outcome says so.
    let ended = over.verdict() == (400, -32602) || over.text.contains("cancelled");
    assert!(ended && !over.text.contains("ada"), "{over:?}");
    assert_eq!(
        requested(&client.call(&["name"], Value::Null).await),
        ["name"]
    );
}

#[tokio::test]
async fn in_the_handshake_era_the_client_is_asked_on_the_calls_own_stream() {
    let client = Client::new(ServerLimits::default());
    for (said, expect) in [
        (json!({"result": answer("ada")}), "ada"),
        (
            json!({"error": {"code": -1, "message": "not now"}}),
            "not now",
        ),
    ] {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}
        }});
        let opened = post(&client.service, &[], &hello.to_string()).await;
        let session = [("mcp-session-id", opened.header("mcp-session-id"))];
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "asks", "arguments": {"ask": ["name"]}}});
        let call = request(Method::POST, &session, call.to_string());
        let mut stream = send(&client.service, call).await.into_body();
        let asked = event(&mut stream).await.unwrap();
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["message"], "name");
        let mut answer = json!({"jsonrpc": "2.0", "id": asked["id"]});
        for (name, value) in said.as_object().unwrap() {
            answer[name] = value.clone();
        }
        assert_eq!(
            post(&client.service, &session, &answer.to_string())
                .await
                .status,
            202
        );
        let result = event(&mut stream).await.unwrap();
        assert!(result.to_string().contains(expect), "{result}");
    }
}

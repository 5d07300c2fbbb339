//! Tasks of a server behind haft: how they end, and tools that only run as tasks, as clients see them.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft::{Policy, Profile, Tool};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::upstream::{Connector, Upstream, UpstreamTerms};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use crate::support::front::Front;
use crate::support::small_tools::SmallOpener;
use crate::support::{call, initialize};

/// A server of the stateless era whose calls are tasks that end with a protocol error.
#[derive(Debug, Clone, Copy)]
struct Jobs;

/// The error with which they end.
const ERROR: &str = r#"{"code":-32050,"message":"the printer is on fire","data":{"z":1.50,"a":12345678901234567890123}}"#;

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Connector for Jobs {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (out, output) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(theirs, out));
        let wire = PipeWire::new(input, output, Box::new(Inside), LONGEST);
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

async fn serve(input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = &message["id"];
        let task = |status: &str, kind: &str, more: &str| {
            format!(
                r#"{{"taskId":"t","status":"{status}","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":1,"resultType":"{kind}"{more}}}"#
            )
        };
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}).to_string(),
            "tools/list" => json!({"tools": [
                {"name": "job", "inputSchema": {"type": "object"}},
                {"name": "alone", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
            ]}).to_string(),
            "tools/call" => task("working", "task", ""),
            "tasks/get" => task("failed", "complete", &format!(r#","error":{ERROR}"#)),
            _ => continue,
        };
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        if output.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn haft() -> Arc<SmallOpener> {
    let terms = UpstreamTerms::default();
    let manifest = Upstream::look("jobs".into(), &Jobs, terms.limits).await;
    let upstream = Upstream::new("far", manifest.unwrap(), Arc::new(Jobs), terms);
    let (tools, _) = Arc::new(upstream).tools();
    let policy = Policy::builder(Profile::Workspace).allow("far.*").build();
    let opener = SmallOpener::new(policy.unwrap(), true);
    let tools = tools.into_iter();
    opener.add_tools(tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
    Arc::new(opener)
}

/// Returns a request of a client with these capabilities.
fn request(method: &str, capabilities: &Value, more: &Value) -> String {
    let mut params = more.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn with_tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

#[tokio::test]
async fn a_task_that_ends_with_an_error_of_the_protocol_ends_so_for_a_client_with_tasks() {
    let opener = haft().await;
    let mut front = Front::to(&opener);
    let call = request(
        "tools/call",
        &with_tasks(),
        &json!({"name": "far.alone", "arguments": {}}),
    );
    let begun = front.ask(&call).await;
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let get = json!({"taskId": begun["result"]["taskId"]});
    let get = request("tasks/get", &with_tasks(), &get);
    let ended = loop {
        front.send(&get).await;
        let answer = front.receive_text().await;
        if !answer.contains(r#""status":"working""#) {
            break answer;
        }
    };
    assert!(ended.contains(r#""status":"failed""#), "{ended}");
    assert!(ended.contains(&format!(r#""error":{ERROR}"#)), "{ended}");
}

#[tokio::test]
async fn a_client_without_tasks_is_told_in_the_servers_words_why_one_failed() {
    let opener = haft().await;
    let mut front = Front::to(&opener);
    let made = request(
        "tools/call",
        &json!({}),
        &json!({"name": "far.job", "arguments": {}}),
    );
    let mut older = Front::to(&opener);
    older.ask(&initialize("2025-11-25")).await;
    for answer in [
        front.ask(&made).await,
        older.ask(&call("1", "far.job", "{}")).await,
        // For a client without tasks, haft waits for the task.
        older.ask(&call("2", "far.alone", "{}")).await,
    ] {
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("the printer is on fire"), "{answer}");
        assert!(result.get("code").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn a_tool_that_runs_as_a_task_alone_is_none_for_a_client_that_could_have_tasks_and_has_not() {
    let opener = haft().await;
    let mut front = Front::to(&opener);
    let call = request(
        "tools/call",
        &json!({}),
        &json!({"name": "far.alone", "arguments": {}}),
    );
    let refused = front.ask(&call).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let required = &refused["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, with_tasks());
    assert!(opener.calls().is_empty(), "nothing was called");
}

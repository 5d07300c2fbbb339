//! Calls that become tasks: queried, answered, cancelled and forgotten, by their own caller alone.

use std::sync::Arc;
use std::time::Duration;

use haft::caller::{CallerRequest, RequestKind};
use haft::testing::TestTool;
use haft::{Policy, ToolError, ToolResult};
use haft_mcp::http::Access;
use haft_mcp::server::ServerLimits;
use serde_json::{Value, json};

use crate::parked::Client;
use crate::support::http_client::Reply;
use crate::support::serving;
use crate::support::small_tools::SmallOpener;

/// How long the tool works, by a clock that stands still while there is other work.
const WORK: Duration = Duration::from_secs(1);

/// Returns a tool that works for a while and then asks for a name; or, without one, never finishes.
fn slow() -> TestTool {
    let mut spec = TestTool::echo("asks");
    spec.concurrency_safe = true;
    TestTool::with_body(spec, |value, context| {
        Box::pin(async move {
            // slow on purpose: the clock is paused, and jumps.
            tokio::time::sleep(WORK).await;
            let caller = context.caller();
            let caller = caller.ok_or_else(|| ToolError::unavailable("no caller"))?;
            let Some(name) = value["ask"][0].as_str() else {
                return std::future::pending().await;
            };
            let params = serde_json::value::to_raw_value(&json!({"message": name})).unwrap();
            let asked = CallerRequest::new(RequestKind::Form, params).named(name);
            Ok(ToolResult::text(caller.ask(asked).await?.get()))
        })
    })
}

fn client(limits: ServerLimits) -> (Client, Arc<SmallOpener>) {
    let opener = Arc::new(SmallOpener::new(Policy::trusted(), true));
    opener.add(slow());
    let limits = ServerLimits {
        task_after: Duration::ZERO,
        ..limits
    };
    let service = serving(limits, &opener).http(Access::checked_before());
    let capabilities =
        json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    (Client::of(service, capabilities), opener)
}

async fn about(client: &Client, method: &str, id: &str, more: Value) -> Reply {
    let mut params = json!({"taskId": id});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    client.send(method, id, params).await
}

/// Queries a task until it has this status.
async fn until(client: &Client, id: &str, status: &str) -> Value {
    loop {
        let task = about(client, "tasks/get", id, Value::Null).await.json()["result"].clone();
        assert_eq!(task["resultType"], "complete", "{task}");
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(WORK).await;
    }
}

fn id(created: &Reply) -> String {
    let result = &created.json()["result"];
    assert_eq!(result["resultType"], "task", "{created:?}");
    result["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_long_call_becomes_a_task_that_asks_its_client_and_gives_the_calls_result() {
    let (client, _) = client(ServerLimits::default());
    let task = id(&client.call(&["name"], Value::Null).await);
    let waits = until(&client, &task, "input_required").await;
    assert_eq!(
        waits["inputRequests"]["name"]["method"],
        "elicitation/create"
    );
    let eve = Client {
        who: "eve",
        ..client.clone()
    };
    let said =
        json!({"inputResponses": {"name": {"action": "accept", "content": {"said": "ada"}}}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let strange = about(&eve, method, &task, said.clone()).await;
        assert_eq!(strange.verdict(), (400, -32602), "{method}");
    }
    let wrong = json!({"inputResponses": {"other": {}}});
    assert_eq!(
        about(&client, "tasks/update", &task, wrong).await.verdict(),
        (200, 0)
    );
    until(&client, &task, "input_required").await;
    assert_eq!(
        about(&client, "tasks/update", &task, said).await.verdict(),
        (200, 0)
    );
    let done = until(&client, &task, "completed").await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("ada"), "{done}");
    // Cancelling a finished task changes nothing.
    assert_eq!(
        about(&client, "tasks/cancel", &task, Value::Null)
            .await
            .verdict(),
        (200, 0)
    );
    until(&client, &task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_ends_its_call() {
    let (client, opener) = client(ServerLimits::default());
    let task = id(&client.call(&[], Value::Null).await);
    until(&client, &task, "working").await;
    about(&client, "tasks/cancel", &task, Value::Null).await;
    until(&client, &task, "cancelled").await;
    crate::support::until_async(|| opener.count("ended:cancelled") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_extension_or_without_room_a_call_is_no_task() {
    let (client, _) = client(ServerLimits {
        tasks: 1,
        ..ServerLimits::default()
    });
    let plain = Client {
        capabilities: json!({"elicitation": {}}),
        ..client.clone()
    };
    let asked = plain.call(&["name"], Value::Null).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = about(&plain, method, "x", Value::Null).await;
        assert_eq!(refused.verdict(), (400, -32021), "{method}");
        let unknown = about(&client, method, "x", Value::Null).await;
        assert_eq!(unknown.verdict(), (400, -32602), "{method}");
    }
    let task = id(&client.call(&["name"], Value::Null).await);
    let crowded = client.call(&["name"], Value::Null).await.json();
    assert_eq!(crowded["result"]["resultType"], "input_required");
    client.service.shutdown();
    let over = || async {
        about(&client, "tasks/get", &task, Value::Null)
            .await
            .verdict()
    };
    while over().await != (400, -32602) {
        tokio::time::sleep(WORK).await;
    }
}

#[tokio::test(start_paused = true)]
async fn n10_the_operators_task_needs_the_operators_token() {
    let (client, _) = client(ServerLimits::default());
    let operator = Client {
        is_operator: true,
        ..client.clone()
    };
    let task = id(&operator.call(&["name"], Value::Null).await);
    for method in ["tasks/get", "tasks/cancel"] {
        let refused = about(&client, method, &task, Value::Null).await;
        assert_eq!(refused.verdict(), (400, -32602), "{method}");
    }
    until(&operator, &task, "input_required").await;
    // A client's own task is the operator's to see, too.
    let theirs = id(&client.call(&["name"], Value::Null).await);
    until(&operator, &theirs, "input_required").await;
}

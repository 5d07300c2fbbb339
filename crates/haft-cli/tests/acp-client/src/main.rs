//! A client of the Agent Client Protocol based on its official crate, driven by lines of JSON: `acp-client PROGRAM ARG…` starts the agent.
//!
//! A line on stdin is a command: `{"tag": 1, "do": "prompt", …}`. A line on stdout is its result, or a message from the agent:
//! `{"tag": 1, "result": …}`, `{"tag": 1, "error": …}`, `{"update": …}`, `{"permission": N, …}`, `{"withdrawn": N}`. An update that the
//! crate's types do not represent exactly is reported as `{"odd": …}`.

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, CloseSessionRequest, Implementation, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, McpServer, McpServerStdio, NewSessionRequest,
    PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    ResumeSessionRequest, SelectedPermissionOutcome, SessionNotification, SetSessionModeRequest,
};
use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client, Error, JsonRpcRequest, UntypedMessage,
};
use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use serde_json::{Value, json};

/// The number of the agent's next request.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Requests of the agent that wait for an answer, by number.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Option<String>>>>>;

fn say(line: &Value) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").expect("whoever drives this reads");
    stdout.flush().expect("whoever drives this reads");
}

fn main() {
    let mut args = std::env::args().skip(1);
    let program = args.next().expect("the agent's program");
    let agent = AcpAgent::new(AcpAgentConfig::new(program).args(args));
    let (send, mut orders) = mpsc::unbounded::<Value>();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let order = serde_json::from_str(&line.expect("orders are text")).expect("an order");
            if send.unbounded_send(order).is_err() {
                return;
            }
        }
    });
    let waiting = Waiting::default();
    let asked = Arc::clone(&waiting);
    let ended = futures::executor::block_on(
        Client
            .v1()
            .on_receive_notification(
                async move |told: UntypedMessage, _| {
                    notified(&told);
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: RequestPermissionRequest,
                            responder,
                            connection: ConnectionTo<Agent>| {
                    let (send, answer) = oneshot::channel();
                    let number = NEXT.fetch_add(1, Ordering::Relaxed);
                    asked
                        .lock()
                        .expect("no thread has panicked")
                        .insert(number, send);
                    say(&json!({"permission": number, "request": request}));
                    let cancellation = responder.cancellation();
                    connection.spawn(async move {
                        let chosen = async { Ok(answer.await.unwrap_or_default()) };
                        let chosen = cancellation.run_until_cancelled(chosen).await;
                        if chosen.is_err() {
                            say(&json!({"withdrawn": number}));
                        }
                        responder.respond_with_result(chosen.map(|chosen| {
                            RequestPermissionResponse::new(match chosen {
                                Some(option) => RequestPermissionOutcome::Selected(
                                    SelectedPermissionOutcome::new(option),
                                ),
                                None => RequestPermissionOutcome::Cancelled,
                            })
                        }))
                    })
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(agent, async move |connection: ConnectionTo<Agent>| {
                while let Some(order) = orders.next().await {
                    obey(&connection, &order, &waiting)?;
                }
                Ok(())
            }),
    );
    if let Err(error) = ended {
        say(&json!({"ended": error.to_string()}));
    }
}

/// Reports an update, as represented by the crate's types.
fn notified(told: &UntypedMessage) {
    if told.method == "$/cancel_request" {
        // The crate cancels the request itself.
        return;
    }
    let typed = serde_json::from_value::<SessionNotification>(told.params.clone());
    match typed {
        Ok(typed) if told.method == "session/update" => {
            let back = serde_json::to_value(&typed).expect("what was read is written");
            let odd = without_defaults(&told.params) != without_defaults(&back);
            let kind = if odd { "odd" } else { "update" };
            say(&json!({kind: told.params["update"], "session": told.params["sessionId"]}));
        }
        _ => say(&json!({"odd": told})),
    }
}

/// Returns the value without what the crate omits: null members, and those with their default.
fn without_defaults(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_left_out = |name: &str, value: &Value| {
                value.is_null()
                    || (name == "kind" && value == "other")
                    || (name == "locations" && value == &json!([]))
                    || (name == "status" && value == "pending")
            };
            let kept = members
                .iter()
                .filter(|(name, value)| !is_left_out(name, value));
            kept.map(|(name, value)| (name.clone(), without_defaults(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_defaults).collect(),
        other => other.clone(),
    }
}

/// Sends a request, and reports the result.
fn ask<R: JsonRpcRequest>(
    connection: &ConnectionTo<Agent>,
    tag: &Value,
    request: R,
) -> Result<(), Error>
where
    R::Response: serde::Serialize + Send,
{
    let (tag, sent) = (tag.clone(), connection.send_request(request));
    connection.spawn(async move {
        match sent.block_task().await {
            Ok(result) => say(&json!({"tag": tag, "result": result})),
            Err(error) => say(&json!({"tag": tag, "error": error})),
        }
        Ok(())
    })
}

fn obey(connection: &ConnectionTo<Agent>, order: &Value, waiting: &Waiting) -> Result<(), Error> {
    let tag = &order["tag"];
    let text = |name: &str| order[name].as_str().unwrap_or_default().to_owned();
    match order["do"].as_str().unwrap_or_default() {
        "initialize" => {
            let request = InitializeRequest::new(ProtocolVersion::V1)
                .client_capabilities(ClientCapabilities::new())
                .client_info(Implementation::new("acp-client", "0.1.0"));
            ask(connection, tag, request)
        }
        "new" => {
            let servers = order["servers"].as_array().into_iter().flatten();
            let servers = servers
                .filter_map(Value::as_str)
                .map(|name| McpServer::Stdio(McpServerStdio::new(name, "/bin/false")));
            let request = NewSessionRequest::new(text("cwd")).mcp_servers(servers.collect());
            ask(connection, tag, request)
        }
        "load" => ask(
            connection,
            tag,
            LoadSessionRequest::new(text("session"), text("cwd")),
        ),
        "resume" => ask(
            connection,
            tag,
            ResumeSessionRequest::new(text("session"), text("cwd")),
        ),
        "list" => ask(
            connection,
            tag,
            ListSessionsRequest::new().cwd(std::path::PathBuf::from(text("cwd"))),
        ),
        "close" => ask(connection, tag, CloseSessionRequest::new(text("session"))),
        "mode" => ask(
            connection,
            tag,
            SetSessionModeRequest::new(text("session"), text("mode")),
        ),
        "prompt" => {
            let prompt = serde_json::from_value(order["prompt"].clone()).expect("a prompt");
            ask(connection, tag, PromptRequest::new(text("session"), prompt))
        }
        "cancel" => connection.send_notification(CancelNotification::new(text("session"))),
        "permit" => {
            let number = order["permission"].as_u64().unwrap_or_default();
            let waiting = waiting
                .lock()
                .expect("no thread has panicked")
                .remove(&number);
            if let Some(waiting) = waiting {
                let _gone = waiting.send(order["option"].as_str().map(str::to_owned));
            }
            Ok(())
        }
        other => panic!("there is no order {other}"),
    }
}

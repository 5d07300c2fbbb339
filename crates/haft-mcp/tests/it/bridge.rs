//! A server's request during a call reaches the client that made the call, in every combination of eras.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft::{Policy, Profile, Tool};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::upstream::{Connector, Root, ServerRequestPolicy, Upstream, UpstreamTerms};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use crate::support::front::Front;
use crate::support::small_tools::SmallOpener;

/// A server whose tool asks before it answers: by a request of its own, or by a result that says what is missing.
#[derive(Debug, Clone, Copy)]
struct Asking {
    modern: bool,
    method: &'static str,
    /// Answers a call with a task, and asks within the task.
    task: bool,
}

impl Asking {
    fn new(modern: bool, method: &'static str) -> Self {
        Self {
            modern,
            method,
            task: false,
        }
    }
}

/// The state that a server of the stateless era sends along: it must come back unchanged.
const STATE: &str = "s-\u{e4}\"12345678901234567890123";

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Connector for Asking {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (out, output) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(*self, theirs, out));
        let wire = PipeWire::new(input, output, Box::new(Inside), LONGEST);
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

fn params() -> Value {
    json!({"message": "your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns a task in this state, with the members that belong to the state.
fn task(status: &str, more: Value, kind: &str) -> Value {
    let mut task = json!({"taskId": "t-1", "status": status, "statusMessage": status, "ttlMs": null, "pollIntervalMs": 1, "resultType": kind});
    for (name, value) in more.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

/// Returns the tool's result: the answer that it received.
fn done(id: &Value, answer: &Value) -> Value {
    result(
        id,
        json!({"content": [{"type": "text", "text": answer.to_string()}], "resultType": "complete"}),
    )
}

/// Returns the answer to messages before the calls.
fn greeting(server: Asking, message: &Value) -> Option<Value> {
    let id = &message["id"];
    Some(match (message["method"].as_str(), server.modern) {
        (Some("initialize"), false) => result(
            id,
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}),
        ),
        (Some("server/discover"), true) => result(
            id,
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}),
        ),
        (Some("tools/list"), _) => result(
            id,
            json!({"tools": [{"name": "who", "inputSchema": {"type": "object"}}], "resultType": "complete"}),
        ),
        _ => return None,
    })
}

/// Returns the answer to a call of the stateless era: a request for input, or the tool's result once it has the input.
fn called_alone(server: Asking, message: &Value) -> Value {
    let (id, given) = (&message["id"], &message["params"]);
    if given.get("inputResponses").is_some() {
        assert_eq!(given["requestState"], STATE);
        return done(id, &given["inputResponses"]["q"]);
    }
    let open = json!({"q": {"method": server.method, "params": params()}});
    result(
        id,
        json!({"resultType": "input_required", "requestState": STATE, "inputRequests": open}),
    )
}

/// Writes a line; returns whether that worked.
async fn say(output: &mut DuplexStream, message: &Value) -> bool {
    let line = format!("{message}\n");
    output.write_all(line.as_bytes()).await.is_ok()
}

async fn serve(server: Asking, input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    let mut called = Value::Null;
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = &message["id"];
        if let Some(greeting) = greeting(server, &message) {
            say(&mut output, &greeting).await;
            continue;
        }
        let answer = match (message["method"].as_str(), server.modern) {
            (Some("tools/call"), false) => {
                called = id.clone();
                let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": {"z": 1, "a": 2}}});
                let asked = json!({"jsonrpc": "2.0", "id": "srv-1", "method": server.method, "params": params()});
                say(&mut output, &log).await;
                asked
            }
            (Some("tools/call"), true) if server.task => {
                result(id, task("working", json!({}), "task"))
            }
            (Some("tasks/get"), true) => {
                let open =
                    json!({"inputRequests": {"q": {"method": server.method, "params": params()}}});
                match &called {
                    Value::Null => result(id, task("input_required", open, "complete")),
                    answer => {
                        let last = done(id, answer)["result"].clone();
                        result(id, task("completed", json!({"result": last}), "complete"))
                    }
                }
            }
            (Some("tasks/update"), true) => {
                called = message["params"]["inputResponses"]["q"].clone();
                result(id, json!({"resultType": "complete"}))
            }
            (Some("tools/call"), true) => called_alone(server, &message),
            (None, _) => {
                let answer = message.get("result").unwrap_or(&message["error"]);
                done(&called, answer)
            }
            (Some(_), _) if message.get("id").is_some() => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
            }
            _ => continue,
        };
        if !say(&mut output, &answer).await {
            return;
        }
    }
}

async fn haft(server: Asking, passing: ServerRequestPolicy) -> Arc<SmallOpener> {
    let terms = UpstreamTerms {
        passing,
        ..UpstreamTerms::default()
    };
    let manifest = Upstream::look("asking".into(), &server, terms.limits).await;
    let upstream = Upstream::new("far", manifest.unwrap(), Arc::new(server), terms);
    let (tools, _) = Arc::new(upstream).tools();
    let policy = Policy::builder(Profile::Workspace).allow("far.*").build();
    let opener = SmallOpener::new(policy.unwrap(), true);
    opener.add_tools(
        tools
            .into_iter()
            .map(|tool| Arc::new(tool) as Arc<dyn Tool>),
    );
    Arc::new(opener)
}

const CAPABILITIES: &str = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;

/// Calls the tool as a client of this era that gives `answer`; returns the tool's text and the client's received requests.
async fn called(
    opener: &Arc<SmallOpener>,
    modern: bool,
    capabilities: &str,
    answer: &Value,
) -> (String, Option<Value>) {
    let mut front = Front::to(opener);
    let text = |answer: &Value| {
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    if modern {
        let call = |id: u64, more: Value| {
            let mut params = json!({"name": "far.who", "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(capabilities).unwrap(),
            }});
            for (name, value) in more.as_object().unwrap() {
                params[name] = value.clone();
            }
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
                .to_string()
        };
        let first = front.ask(&call(1, json!({}))).await;
        let requests = &first["result"]["inputRequests"];
        let Some((name, asked)) = requests.as_object().and_then(|all| all.iter().next()) else {
            return (text(&first), None);
        };
        let again = json!({"inputResponses": {name: answer}, "requestState": first["result"]["requestState"]});
        let last = front.ask(&call(2, again)).await;
        return (text(&last), Some(asked.clone()));
    }
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": serde_json::from_str::<Value>(capabilities).unwrap(), "clientInfo": {"name": "c", "version": "1"}});
    front
        .ask(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
                .to_string(),
        )
        .await;
    front
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    front.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"far.who","arguments":{}}}"#).await;
    let mut asked = None;
    loop {
        let message = front.receive().await;
        match message["method"].as_str() {
            Some("notifications/message" | "notifications/progress") => {}
            Some(method) => {
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
                asked = Some(json!({"method": method, "params": message["params"]}));
                front.send(&reply.to_string()).await;
            }
            None => return (text(&message), asked),
        }
    }
}

#[tokio::test]
async fn a_question_reaches_the_caller_and_its_answer_the_server_in_all_four_pairs_of_eras() {
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    for (server, client) in [(true, true), (true, false), (false, true), (false, false)] {
        let what = format!("server modern {server}, client modern {client}");
        let asking = Asking::new(server, "elicitation/create");
        let opener = haft(asking, ServerRequestPolicy::default()).await;
        let (text, asked) = called(&opener, client, CAPABILITIES, &answer).await;
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            answer,
            "{what}"
        );
        let asked = asked.unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{what}");
        assert_eq!(asked["params"]["message"], "[far] your name?", "{what}");
        assert_eq!(
            asked["params"]["requestedSchema"],
            params()["requestedSchema"],
            "{what}"
        );
    }
}

#[tokio::test]
async fn nobody_is_asked_what_settings_or_the_caller_do_not_let_pass() {
    let answer = json!({"action": "accept"});
    let deny = ServerRequestPolicy {
        elicitation: false,
        ..ServerRequestPolicy::default()
    };
    for (server, client) in [(true, true), (true, false), (false, true), (false, false)] {
        for (method, passing, capabilities) in [
            ("elicitation/create", deny.clone(), CAPABILITIES),
            ("elicitation/create", ServerRequestPolicy::default(), "{}"),
            (
                "sampling/createMessage",
                ServerRequestPolicy::default(),
                CAPABILITIES,
            ),
            ("roots/list", ServerRequestPolicy::default(), CAPABILITIES),
        ] {
            let what = format!("{method}: server modern {server}, client modern {client}");
            let opener = haft(Asking::new(server, method), passing).await;
            let (text, asked) = called(&opener, client, capabilities, &answer).await;
            assert!(asked.is_none(), "{what}: {asked:?}");
            let refused = text.contains("-3260") || text.contains(method);
            assert!(refused, "{what}: {text}");
        }
    }
}

#[tokio::test]
async fn a_server_is_told_of_the_folders_of_the_settings_and_of_no_others() {
    let root = Root::folder(std::path::Path::new("/srv/data"));
    for server in [true, false] {
        let passing = ServerRequestPolicy {
            roots: vec![root.clone()],
            ..ServerRequestPolicy::default()
        };
        let opener = haft(Asking::new(server, "roots/list"), passing).await;
        for client in [true, false] {
            let (text, asked) = called(&opener, client, CAPABILITIES, &json!({})).await;
            assert!(asked.is_none());
            let told: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                told,
                json!({"roots": [{"uri": "file:///srv/data", "name": "data"}]})
            );
        }
    }
}

#[tokio::test]
async fn a_task_of_a_server_is_one_call_that_takes_its_time_and_may_ask() {
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let asking = Asking {
        task: true,
        ..Asking::new(true, "elicitation/create")
    };
    for client in [true, false] {
        let opener = haft(asking, ServerRequestPolicy::default()).await;
        let (text, asked) = called(&opener, client, CAPABILITIES, &answer).await;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), answer);
        assert_eq!(asked.unwrap()["params"]["message"], "[far] your name?");
    }
}

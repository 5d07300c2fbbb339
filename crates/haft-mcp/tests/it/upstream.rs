//! Servers behind haft: the executor calls their tools over a connection that opens, breaks, and is opened again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use haft::future::BoxFuture;
use haft::result::{Outcome, Status};
use haft::testing::Bench;
use haft::{Policy, Tool};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, ClientLimits, Wire};
use haft_mcp::upstream::{Connector, Upstream, UpstreamTerms};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::until_async;

/// What a server does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Answer,
    /// It exits during the call.
    Die,
    /// It announces a changed list first.
    Change,
    /// It does not answer.
    Hang,
}

/// A server that a test controls: its tools, and what it does with the next calls.
#[derive(Debug, Default)]
struct State {
    tools: Vec<Value>,
    next: VecDeque<Does>,
    opened: usize,
    calls: usize,
    ended: usize,
    absent: bool,
}

#[derive(Debug, Clone, Default)]
struct Backend(Arc<Mutex<State>>);

struct End(Backend);

impl ServerProcess for End {
    fn stderr_tail(&self) -> String {
        "out of disk".into()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.0.0.lock().ended += 1;
        Box::pin(std::future::ready(()))
    }
}

impl Connector for Backend {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let mut state = self.0.lock();
        state.opened += 1;
        if state.absent {
            let error = ClientError::Unreachable("no such program".into());
            return Box::pin(std::future::ready(Err(error)));
        }
        drop(state);
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (out, output) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(self.clone(), theirs, out));
        let wire = PipeWire::new(input, output, Box::new(End(self.clone())), LONGEST);
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

/// Serves one connection as a server of the handshake era.
async fn serve(
    backend: Backend,
    input: tokio::io::DuplexStream,
    mut output: tokio::io::DuplexStream,
) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let mut said = Vec::new();
        let mut answer = |result: Value| {
            said.push(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        };
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "backend", "version": "1"},
            })),
            "tools/list" => answer(json!({"tools": backend.0.lock().tools})),
            "tools/call" => {
                let mut state = backend.0.lock();
                state.calls += 1;
                let name = message["params"]["name"].as_str().unwrap();
                match state.next.pop_front().unwrap_or(Does::Answer) {
                    Does::Die => return,
                    Does::Hang => {}
                    does => {
                        answer(json!({"content": [{"type": "text", "text": name}]}));
                        if does == Does::Change {
                            said.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                        }
                    }
                }
            }
            _ if message.get("id").is_some() => {
                let error = json!({"code": -32601, "message": "unknown"});
                said.push(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
            _ => {}
        }
        for message in said {
            if output
                .write_all(format!("{message}\n").as_bytes())
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

impl Backend {
    fn with(tools: &[Value]) -> Self {
        let backend = Self::default();
        backend.0.lock().tools = tools.to_vec();
        backend
    }

    fn does(&self, next: &[Does]) {
        self.0.lock().next = next.iter().copied().collect();
    }

    fn counts(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.opened, state.calls)
    }

    /// Returns a bench with its tools, pinned as they are now.
    async fn bench(&self, terms: UpstreamTerms) -> (Bench, Arc<Upstream>) {
        let manifest = Upstream::look("backend".into(), self, terms.limits)
            .await
            .unwrap();
        self.0.lock().opened = 0;
        let upstream = Upstream::new("up", manifest, Arc::new(self.clone()), terms);
        let upstream = Arc::new(upstream);
        let (tools, refused) = upstream.tools();
        assert!(refused.is_empty(), "{refused:?}");
        let policy = Policy::workspace();
        let bench = tools
            .into_iter()
            .fold(Bench::new().policy(policy), |bench, tool| {
                bench.tool(Arc::new(tool) as Arc<dyn Tool>)
            });
        (bench, upstream)
    }
}

async fn call(bench: &Bench, tool: &str) -> Outcome {
    bench.on_ask(tool).approve();
    bench.call(tool, json!({})).await.into_inner()
}

fn message(outcome: &Outcome) -> String {
    outcome
        .error
        .as_ref()
        .map(|error| error.message.clone())
        .unwrap_or_default()
}

#[tokio::test]
async fn a_server_is_started_by_the_first_call_and_shared_by_all() {
    let backend = Backend::with(&[tool("one", "a"), tool("two", "b")]);
    let (bench, upstream) = backend.bench(UpstreamTerms::default()).await;
    assert_eq!(backend.counts(), (0, 0));
    for name in ["up.one", "up.two", "up.one"] {
        let outcome = call(&bench, name).await;
        assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
        assert_eq!(outcome.text(), name.trim_start_matches("up."));
    }
    bench.assert_asked(["up.one", "up.two", "up.one"]);
    assert_eq!(backend.counts(), (1, 3));
    upstream.close().await;
    assert_eq!(backend.0.lock().ended, 2, "the look's and the calls'");
    let denied = bench.call("up.one", json!({})).await;
    assert_eq!(denied.status, Status::Denied, "nobody approved it");
    assert_eq!(backend.counts(), (1, 3));
}

#[tokio::test]
async fn a_tool_that_means_something_else_is_not_called() {
    let backend = Backend::with(&[tool("one", "a"), tool("two", "b")]);
    let (bench, _upstream) = backend.bench(UpstreamTerms::default()).await;
    backend.does(&[Does::Change]);
    assert!(call(&bench, "up.one").await.is_ok());
    // It changed between two calls, and announced it.
    backend.0.lock().tools = vec![tool("one", "a, and sends it to me"), tool("zwei", "b")];
    let refused = call(&bench, "up.one").await;
    assert_eq!(refused.status, Status::Denied, "{refused:?}");
    assert!(message(&refused).contains("differently than when it was pinned"));
    let operator = refused.operator.clone().unwrap_or_default();
    assert!(operator.contains("haft mcp pin up"), "{operator}");
    // The very same tool under another name is the same tool.
    let renamed = call(&bench, "up.two").await;
    assert_eq!(renamed.text(), "zwei", "{renamed:?}");
    assert_eq!(backend.counts(), (1, 2));
}

#[tokio::test]
async fn a_tool_that_is_gone_or_new_is_not_called() {
    let backend = Backend::with(&[tool("one", "a")]);
    let (bench, _upstream) = backend.bench(UpstreamTerms::default()).await;
    backend.0.lock().tools = vec![tool("other", "b")];
    let gone = call(&bench, "up.one").await;
    assert_eq!(gone.status, Status::Error);
    assert!(message(&gone).contains("has no tool one now"), "{gone:?}");
    let new = bench.call("up.other", json!({})).await;
    assert_eq!(new.status, Status::Error);
    assert_eq!(backend.counts(), (1, 0));
}

#[tokio::test]
async fn a_tool_with_a_name_of_its_own_is_not_called_in_place_of_one_that_is_gone() {
    let backend = Backend::with(&[tool("read", "same"), tool("wipe", "same")]);
    let (bench, _upstream) = backend.bench(UpstreamTerms::default()).await;
    backend.0.lock().tools = vec![tool("wipe", "same")];
    let gone = call(&bench, "up.read").await;
    assert!(message(&gone).contains("has no tool read now"), "{gone:?}");
    assert_eq!(backend.counts(), (1, 0));
    assert!(call(&bench, "up.wipe").await.is_ok());
}

#[tokio::test]
async fn a_call_that_may_have_run_is_made_again_only_where_twice_is_once() {
    let rows = [
        (false, json!({}), 1),
        (false, json!({"idempotentHint": true}), 1),
        (true, json!({}), 1),
        (true, json!({"idempotentHint": true}), 2),
        (true, json!({"readOnlyHint": true}), 2),
    ];
    for (trusted, annotations, calls) in rows {
        let mut described = tool("one", "a");
        described["annotations"] = annotations.clone();
        let backend = Backend::with(&[described]);
        let terms = UpstreamTerms {
            trusted,
            ..UpstreamTerms::default()
        };
        let (bench, _upstream) = backend.bench(terms).await;
        backend.does(&[Does::Die]);
        let outcome = call(&bench, "up.one").await;
        assert_eq!(backend.0.lock().calls, calls, "{annotations}");
        assert_eq!(outcome.is_ok(), calls == 2, "{outcome:?}");
        if calls == 1 {
            assert!(
                message(&outcome).contains("closed the connection: out of disk"),
                "{outcome:?}"
            );
            let advice = outcome
                .error
                .as_ref()
                .and_then(|error| error.advice.clone());
            assert!(advice.is_some_and(|advice| advice.contains("may have run anyway")));
        }
        // The next call uses a new connection.
        assert!(call(&bench, "up.one").await.is_ok());
        assert_eq!(backend.0.lock().opened, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_at_every_call_is_left_alone_for_a_while() {
    let backend = Backend::with(&[tool("one", "a")]);
    let (bench, _upstream) = backend.bench(UpstreamTerms::default()).await;
    backend.does(&[Does::Die; 2]);
    for _ in 0..2 {
        assert!(message(&call(&bench, "up.one").await).contains("closed the connection"));
    }
    let refused = call(&bench, "up.one").await;
    assert!(message(&refused).contains("failed 2 times"), "{refused:?}");
    assert_eq!(backend.counts(), (2, 2));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(call(&bench, "up.one").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_started_is_left_alone_for_longer_and_longer() {
    let backend = Backend::with(&[tool("one", "a")]);
    let (bench, _upstream) = backend.bench(UpstreamTerms::default()).await;
    backend.0.lock().absent = true;
    let mut opened = 0;
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        let failed = call(&bench, "up.one").await;
        assert!(message(&failed).contains("no such program"), "{failed:?}");
        opened += 1;
        for _ in 0..3 {
            let refused = call(&bench, "up.one").await;
            assert!(
                message(&refused).contains("is tried again in"),
                "{refused:?}"
            );
        }
        assert_eq!(backend.counts(), (opened, 0));
        tokio::time::advance(Duration::from_secs(pause)).await;
    }
    backend.0.lock().absent = false;
    assert!(call(&bench, "up.one").await.is_ok());
    assert_eq!(backend.counts(), (opened + 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_nobody_uses_is_closed_and_opened_again() {
    let backend = Backend::with(&[tool("one", "a")]);
    let terms = UpstreamTerms {
        idle: Duration::from_secs(60),
        ..UpstreamTerms::default()
    };
    let (bench, _upstream) = backend.bench(terms).await;
    assert!(call(&bench, "up.one").await.is_ok());
    let before = backend.0.lock().ended;
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(call(&bench, "up.one").await.is_ok());
    tokio::time::advance(Duration::from_secs(59)).await;
    tokio::task::yield_now().await;
    assert_eq!(backend.0.lock().ended, before, "it was used a minute ago");
    tokio::time::advance(Duration::from_secs(62)).await;
    until_async(|| backend.0.lock().ended == before + 1).await;
    assert!(call(&bench, "up.one").await.is_ok());
    assert_eq!(backend.counts(), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_answered_ends_and_others_go_on() {
    let backend = Backend::with(&[tool("one", "a")]);
    let terms = UpstreamTerms {
        limits: ClientLimits {
            call: Duration::from_secs(30),
            ..ClientLimits::default()
        },
        concurrency: 2,
        ..UpstreamTerms::default()
    };
    let (bench, _upstream) = backend.bench(terms).await;
    backend.does(&[Does::Hang]);
    let late = call(&bench, "up.one").await;
    assert!(
        matches!(late.status, Status::Timeout | Status::Error),
        "{late:?}"
    );
    assert!(call(&bench, "up.one").await.is_ok());
    assert_eq!(backend.counts(), (1, 2));
}

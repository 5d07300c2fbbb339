//! Servers that take the protocol loosely: every member null in turn, odd cursors, ids as texts, text that is not quite JSON. Their good
//! tools stay, and what a call gave is delivered.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft::result::{Outcome, Status};
use haft::testing::Bench;
use haft::{Policy, Tool};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::upstream::{Connector, Manifest, Upstream, UpstreamTerms};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// A server that answers each request with a line.
#[derive(Clone)]
struct LooseServer(Arc<dyn Fn(&Value) -> String + Send + Sync>);

struct NoProcess;

impl ServerProcess for NoProcess {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Connector for LooseServer {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (mut out, output) = tokio::io::duplex(1 << 16);
        let answer = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut lines = BufReader::new(theirs).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message.get("id").is_none() {
                    continue;
                }
                let line = answer(&message) + "\n";
                if out.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let wire = PipeWire::new(input, output, Box::new(NoProcess), LONGEST);
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

const METHODS: [&str; 6] = [
    "initialize",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "tools/call",
];

/// A complete answer to a request, with every optional member.
fn answer(message: &Value) -> Value {
    let annotations = json!({"title": "T", "readOnlyHint": true, "destructiveHint": false});
    let icons =
        json!([{"src": "https://x.example/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]);
    let tool = |name: &str| {
        json!({"name": name, "title": "T", "description": "d", "icons": icons, "annotations": annotations,
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": "x", "default": null}}, "required": [], "$defs": {}},
        "execution": {"taskSupport": "optional"}, "_meta": {"x": 1}})
    };
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "instructions": "i", "_meta": {"x": 1},
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {"listChanged": true}, "logging": {}, "completions": {}, "experimental": {}},
            "serverInfo": {"name": "s", "title": "S", "version": "1", "websiteUrl": "https://x.example", "icons": icons}})
        }
        "tools/list" => {
            json!({"tools": [tool("good"), tool("other")], "nextCursor": "", "_meta": {"x": 1}})
        }
        "resources/list" => {
            json!({"resources": [{"uri": "a:b", "name": "n", "title": "t", "description": "d", "mimeType": "text/plain", "size": 3, "annotations": {"priority": 1.0}, "_meta": {}}], "_meta": {}})
        }
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "n", "description": "d", "mimeType": "text/plain"}]})
        }
        "prompts/list" => {
            json!({"prompts": [{"name": "p", "title": "t", "description": "d", "arguments": [{"name": "n", "description": "d", "required": true}]}]})
        }
        "tools/call" => {
            json!({"content": [{"type": "text", "text": "done", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {}},
                {"type": "resource_link", "uri": "a:b", "name": "n", "mimeType": "text/plain", "size": 3},
                {"type": "resource", "resource": {"uri": "a:b", "text": "t", "mimeType": "text/plain"}}],
            "structuredContent": {"a": 1}, "isError": false, "_meta": {"x": 1}, "resultType": "complete"})
        }
        _ => {
            return json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown", "data": null}});
        }
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result, "error": null, "method": null, "params": null})
}

/// The pointers to all members and elements below a value.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let here = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(value, &here, out);
        out.push(here);
    };
    match value {
        Value::Object(all) => all.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(all) => {
            for (nth, value) in all.iter().enumerate() {
                below(&nth.to_string(), value);
            }
        }
        _ => {}
    }
}

async fn look(server: &LooseServer) -> Manifest {
    let limits = UpstreamTerms::default().limits;
    Upstream::look("s".into(), server, limits).await.unwrap()
}

/// Calls the tool `good` of a server.
async fn call(server: &LooseServer, manifest: Manifest, terms: UpstreamTerms) -> Outcome {
    let upstream = Arc::new(Upstream::new(
        "up",
        manifest,
        Arc::new(server.clone()),
        terms,
    ));
    let (tools, _) = upstream.tools();
    let bench = tools
        .into_iter()
        .fold(Bench::new().policy(Policy::workspace()), |bench, tool| {
            bench.tool(Arc::new(tool) as Arc<dyn Tool>)
        });
    bench.on_ask("up.good").approve();
    let outcome = bench.call("up.good", json!({})).await.into_inner();
    upstream.close().await;
    outcome
}

#[tokio::test]
async fn a_member_that_is_null_hides_no_good_tool_and_loses_no_result() {
    let mut count = 0;
    for method in METHODS {
        let mut all = Vec::new();
        pointers(&answer(&json!({"method": method, "id": 1})), "", &mut all);
        // An answer without an id or a result answers nothing.
        all.retain(|at| !matches!(at.as_str(), "/id" | "/result"));
        for at in all {
            let place = at.clone();
            let server = LooseServer(Arc::new(move |message| {
                let mut answer = answer(message);
                if message["method"] == method
                    && let Some(member) = answer.pointer_mut(&place)
                {
                    *member = Value::Null;
                }
                answer.to_string()
            }));
            let manifest = look(&server).await;
            let names: Vec<&str> = manifest.tools.iter().map(|tool| &*tool.name).collect();
            // A tool without a name, and a list without tools, are no tools.
            let is_gone = |nth: usize| {
                let tool = format!("/result/tools/{nth}");
                at == "/result/tools" || at == tool || at == format!("{tool}/name")
            };
            for (nth, name) in ["good", "other"].into_iter().enumerate() {
                assert_eq!(names.contains(&name), !is_gone(nth), "{method} {at}");
            }
            let says_so = manifest
                .left_out
                .iter()
                .any(|why| why.contains("it has no name"));
            let has_no_name = at.starts_with("/result/tools/") && at[15..] == *"/name";
            assert_eq!(says_so, has_no_name, "{method} {at}");
            count += 1;
            if is_gone(0) {
                continue;
            }
            let outcome = call(&server, manifest, UpstreamTerms::default()).await;
            assert_eq!(outcome.status, Status::Ok, "{method} {at}: {outcome:?}");
            let is_there = !outcome.text().is_empty() || outcome.data.is_some();
            assert!(is_there, "{method} {at}: {outcome:?}");
        }
    }
    assert!(count > 120, "{count}");
}

/// A server whose answer to one method is this text, with `ID` for the id.
fn saying(method: &'static str, text: &'static str) -> LooseServer {
    LooseServer(Arc::new(move |message| {
        if message["method"] == method {
            return text.replace("ID", &message["id"].to_string());
        }
        answer(message).to_string()
    }))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_result_that_is_not_as_the_protocol_says_is_delivered_with_a_note() {
    let rows = [
        (
            r#"{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"done"}]}}"#,
            "done",
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID.0,"result":{"content":[{"type":"text","text":"done"}]}}"#,
            "done",
            "",
        ),
        (
            r#"{"id":ID,"result":{"content":[{"type":"text","text":"done"}]}}"#,
            "done",
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a\ud83db"}]}}"#,
            "a\u{fffd}b",
            "halves of surrogate pairs",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}],"structuredContent":{"x":NaN}}}"#,
            "done",
            "NaN",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"done"}}"#,
            "done",
            "no list of blocks",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":"done"}"#,
            "done",
            "no result of a call",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":null}"#,
            "null",
            "no result of a call",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"odd","content":[{"type":"text","text":"done"}]}}"#,
            "done",
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":7,"content":[{"type":"text","text":"done"}]}}"#,
            "done",
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"hologram","x":1}]}}"#,
            r#"{"type":"hologram","x":1}"#,
            "",
        ),
    ];
    for (sent, text, note) in rows {
        let server = saying("tools/call", sent);
        let outcome = call(&server, look(&server).await, UpstreamTerms::default()).await;
        assert_eq!(
            (outcome.status, outcome.text().as_str()),
            (Status::Ok, text),
            "{sent}: {outcome:?}"
        );
        let notes = outcome.notes.join("; ");
        assert!(
            notes.contains(note) && notes.is_empty() == note.is_empty(),
            "{sent}: {notes}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_call_with_what_it_says() {
    let server = saying(
        "tools/call",
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"deleted 3 files"}}}"#,
    );
    let outcome = call(&server, look(&server).await, UpstreamTerms::default()).await;
    let error = outcome.error.unwrap();
    assert!(
        error.message.contains("deleted 3 files"),
        "{}",
        error.message
    );
    assert!(error.advice.unwrap().contains("may have run"));
}

#[tokio::test]
async fn one_tool_that_cannot_be_read_is_left_out_alone_and_named() {
    let schema = r#""inputSchema":{"type":"object"}"#;
    let rows = [
        ("7", "entry 1 of its page: it is no object"),
        (r#"{"name":" "}"#, "entry 1 of its page: it has no name"),
        (r#"{"name":{"a":1}}"#, "entry 1 of its page: it has no name"),
        (
            r#"{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"no blanks"}}}}"#,
            "bad: its mark",
        ),
    ];
    for (tool, why) in rows {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":ID,"result":{{"tools":[{tool},{{"name":"good",{schema}}}]}}}}"#
        );
        let server = saying("tools/list", Box::leak(line.into_boxed_str()));
        let manifest = look(&server).await;
        assert!(
            manifest.left_out.concat().starts_with(why),
            "{:?}",
            manifest.left_out
        );
        assert!(
            call(&server, manifest, UpstreamTerms::default())
                .await
                .is_ok(),
            "{tool}"
        );
    }
    // What only shows when the tool is offered.
    let line = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"bad","description":{}},{"name":"good"}]}}"#;
    let server = saying("tools/list", line);
    let manifest = look(&server).await;
    let upstream = Arc::new(Upstream::new(
        "up",
        manifest,
        Arc::new(server),
        UpstreamTerms::default(),
    ));
    let (tools, refused) = upstream.tools();
    assert_eq!((tools.len(), refused.len()), (1, 1));
    assert!(refused[0].starts_with("bad: "), "{refused:?}");
}

#[tokio::test]
async fn cursors_that_repeat_or_alternate_keep_what_was_listed() {
    for (cursors, note) in [
        (["", ""], ""),
        (["a", "a"], "the cursor \"a\" came twice"),
        (["a", "b"], "the cursor \"a\" came twice"),
    ] {
        let server = LooseServer(Arc::new(move |message| {
            let mut answer = answer(message);
            if message["method"] == "tools/list" {
                let is_second = message["params"]["cursor"] == cursors[0];
                answer["result"]["nextCursor"] = json!(cursors[usize::from(is_second)]);
            }
            answer.to_string()
        }));
        let manifest = look(&server).await;
        assert_eq!(manifest.tools.len(), 2);
        let said = manifest.left_out.join("; ");
        assert!(
            said.contains(note) && said.is_empty() == note.is_empty(),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_result_against_its_output_schema_is_noted_or_refused() {
    let list = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"good","inputSchema":{},"outputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}]}}"#;
    let server = saying("tools/list", list);
    for strict in [false, true] {
        let terms = UpstreamTerms {
            strict,
            ..UpstreamTerms::default()
        };
        let outcome = call(&server, look(&server).await, terms).await;
        let said = outcome.notes.join("; ");
        assert_eq!(outcome.is_ok(), !strict, "{outcome:?}");
        assert_eq!(
            said.contains("does not match its output schema"),
            !strict,
            "{said}"
        );
        assert_eq!(outcome.text().contains("done"), !strict, "{outcome:?}");
    }
}

//! A client over a pipe, against servers with all kinds of behavior.

use std::sync::Arc;
use std::time::Duration;

use haft::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::pipe::{PipeWire, ServerProcess};
use super::{Client, ClientError, ClientLimits};
use crate::era::{Era, Revision};

/// A process that leaves last words.
struct Gone;

impl ServerProcess for Gone {
    fn stderr_tail(&self) -> String {
        "out of disk".into()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A server's reaction to a message: the lines that it writes; `None` means that it ends.
type Behaviour = dyn FnMut(&Value) -> Option<Vec<String>> + Send;

type Seen = Arc<Mutex<Vec<Value>>>;

/// Returns a wire to a server with this behavior, and the messages that the server reads.
fn serve(longest: usize, mut behave: Box<Behaviour>) -> (Arc<PipeWire>, Seen) {
    let seen = Seen::default();
    let (input, theirs) = tokio::io::duplex(1 << 16);
    let (mut out, output) = tokio::io::duplex(1 << 16);
    let heard = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut lines = BufReader::new(theirs).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            heard.lock().push(message.clone());
            let Some(lines) = behave(&message) else {
                return;
            };
            for line in lines {
                if out.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    });
    let wire = PipeWire::new(input, output, Box::new(Gone), longest);
    (Arc::new(wire), seen)
}

fn result(message: &Value, result: &Value) -> Vec<String> {
    vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()]
}

fn unknown(message: &Value) -> Vec<String> {
    let error = json!({"code": -32601, "message": "Method not found"});
    vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string()]
}

/// Returns the answers of a handshake-era server before it is used.
fn legacy(message: &Value) -> Option<Vec<String>> {
    match message["method"].as_str()? {
        "initialize" => Some(result(
            message,
            &json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "old", "version": "1"}}),
        )),
        "server/discover" => Some(unknown(message)),
        "notifications/initialized" | "notifications/cancelled" => Some(Vec::new()),
        _ => None,
    }
}

/// Returns a client of a handshake-era server that handles calls this way.
async fn calling(
    longest: usize,
    mut call: impl FnMut(&Value) -> Option<Vec<String>> + Send + 'static,
) -> (Client, Seen) {
    let behave = move |message: &Value| legacy(message).or_else(|| call(message));
    let (wire, seen) = serve(longest, Box::new(behave));
    let client = Client::connect(wire, None, ClientLimits::default()).await;
    (client.unwrap(), seen)
}

fn ok(message: &Value) -> Vec<String> {
    result(
        message,
        &json!({"content": [{"type": "text", "text": "done"}]}),
    )
}

#[tokio::test(start_paused = true)]
async fn a_server_is_greeted_as_its_era_wants_it() {
    let modern = |message: &Value| match message["method"].as_str()? {
        "server/discover" => {
            let meta = &message["params"]["_meta"];
            assert_eq!(
                meta["io.modelcontextprotocol/protocolVersion"],
                "2026-07-28"
            );
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "haft");
            Some(result(
                message,
                &json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                       "resultType": "complete",
                       "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}}}),
            ))
        }
        _ => None,
    };
    // A server that says nothing before its handshake, as some do.
    let silent = |message: &Value| match message["method"].as_str()? {
        "server/discover" => Some(Vec::new()),
        _ => legacy(message),
    };
    // A server that refuses the revision at first but lists it as supported.
    let mut refusals = 0;
    let wavering = move |message: &Value| {
        refusals += 1;
        if refusals > 1 {
            return modern(message);
        }
        let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
        Some(vec![
            json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string(),
        ])
    };
    // A server that starts so slowly that its first answer comes too late.
    let mut greetings = 0;
    let slow = move |message: &Value| {
        greetings += 1;
        match greetings {
            1 => Some(Vec::new()),
            2 | 3 if message["method"] != "server/discover" => Some(unknown(message)),
            _ => modern(message),
        }
    };
    let old = Era::Legacy(Revision::V2025_06_18);
    let rows: [(Box<Behaviour>, &str, Era); 5] = [
        (Box::new(modern), "new", Era::Modern),
        (Box::new(wavering), "new", Era::Modern),
        (Box::new(slow), "new", Era::Modern),
        (Box::new(legacy), "old", old),
        (Box::new(silent), "old", old),
    ];
    for (behave, name, era) in rows {
        let (wire, _) = serve(1 << 20, behave);
        let client = Client::connect(wire, None, ClientLimits::default())
            .await
            .unwrap();
        assert_eq!((client.server().name.as_str(), client.era()), (name, era));
        assert!(client.server().has_tools);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_greeted_is_an_error_that_says_why() {
    let no_version = |message: &Value| match message["method"].as_str()? {
        "initialize" => Some(result(message, &json!({"protocolVersion": "1999-01-01"}))),
        _ => Some(unknown(message)),
    };
    let other = |message: &Value| {
        let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}});
        Some(vec![
            json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string(),
        ])
    };
    let rows: [(Box<Behaviour>, &str); 4] = [
        (Box::new(no_version), "speaks \"1999-01-01\""),
        (Box::new(other), "2031-01-01"),
        (Box::new(|_| None), "closed the connection: out of disk"),
        (Box::new(|_| Some(Vec::new())), "no answer"),
    ];
    for (behave, says) in rows {
        let (wire, _) = serve(1 << 20, behave);
        let error = Client::connect(wire, None, ClientLimits::default()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asked_for_costs_nothing_and_answers_nothing() {
    let (client, _) = calling(1 << 20, |message| {
        let mut lines = vec![
            "Server running on stdio".to_owned(),
            "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}".into(),
            "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}".into(),
            "{\"jsonrpc\":\"2.0\",\"result\":{}}".into(),
            "[]".into(),
            "{".into(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/odd\",\"params\":{}}".into(),
        ];
        lines.extend(ok(message));
        // The second answer.
        lines.extend(result(message, &json!({"content": [], "isError": true})));
        Some(lines)
    })
    .await;
    for _ in 0..3 {
        let reply = client.call_tool("t", "{}", None).await.unwrap();
        assert_eq!(reply.content[0].get(), r#"{"text":"done","type":"text"}"#);
        assert!(!reply.is_error);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_server_is_answered() {
    let (client, seen) = calling(1 << 20, |message| {
        if message["method"].is_null() {
            return Some(Vec::new());
        }
        let ask = |id: &str, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
        let asks = [ask("p", "ping"), ask("s", "sampling/createMessage")];
        let mut lines: Vec<String> = asks.iter().map(Value::to_string).collect();
        lines.extend(ok(message));
        Some(lines)
    })
    .await;
    client.call_tool("t", "{}", None).await.unwrap();
    // The wire keeps messages in order: by this call's request, both answers have been read.
    client.call_tool("t", "{}", None).await.unwrap();
    let seen = seen.lock();
    let answer = |id: &str| seen.iter().find(|m| m["id"] == id && m["method"].is_null());
    assert_eq!(answer("p").unwrap()["result"], json!({}));
    assert_eq!(answer("s").unwrap()["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_fails_its_request_alone() {
    let mut count = 0;
    let (client, _) = calling(10_000, move |message| {
        count += 1;
        let long = "x".repeat(40_000);
        match count {
            1 => {
                let id = &message["id"];
                Some(vec![format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{long}"}}]}}}}"#
                )])
            }
            // Its id comes last.
            2 => Some(vec![format!(
                r#"{{"result":{{"content":["{long}"]}},"jsonrpc":"2.0","id":{}}}"#,
                message["id"]
            )]),
            _ => Some(ok(message)),
        }
    })
    .await;
    for _ in 0..2 {
        let error = client.call_tool("t", "{}", None).await.unwrap_err();
        assert!(matches!(error, ClientError::TooLong(10_000)), "{error}");
    }
    assert!(client.call_tool("t", "{}", None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_fails_what_is_under_way_and_what_comes_after() {
    let (client, _) = calling(1 << 20, |_| None).await;
    let (one, two) = tokio::join!(
        client.call_tool("a", "{}", None),
        client.call_tool("b", "{}", None)
    );
    for error in [one.unwrap_err(), two.unwrap_err()] {
        assert!(
            matches!(&error, ClientError::Closed { said } if said == "out of disk"),
            "{error}"
        );
    }
    assert!(!client.is_open());
    assert!(client.call_tool("c", "{}", None).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_early_is_cancelled_at_the_server() {
    let (client, seen) = calling(1 << 20, |_| Some(Vec::new())).await;
    let call = client.call_tool("slow", "{}", None);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .is_err()
    );
    let id = loop {
        let seen = seen.lock().clone();
        let cancelled = seen
            .iter()
            .find(|m| m["method"] == "notifications/cancelled");
        if let Some(cancelled) = cancelled {
            break cancelled["params"]["requestId"].clone();
        }
        tokio::task::yield_now().await;
    };
    let seen = seen.lock();
    let call = seen.iter().find(|m| m["method"] == "tools/call").unwrap();
    assert_eq!(call["id"], id);
}

#[tokio::test(start_paused = true)]
async fn arguments_and_results_pass_byte_for_byte() {
    let raw = r#"{"b":1,"a":12345678901234567890123,"e":1.0e5,"u":"\u00fc"}"#;
    let line = Arc::new(Mutex::new(String::new()));
    let (input, theirs) = tokio::io::duplex(1 << 16);
    let (mut out, output) = tokio::io::duplex(1 << 16);
    let heard = Arc::clone(&line);
    tokio::spawn(async move {
        let mut lines = BufReader::new(theirs).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let answer = legacy(&message).unwrap_or_else(|| {
                *heard.lock() = line.clone();
                let id = &message["id"];
                vec![format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"odd":1,"content":[{{"z":1,"type":"hologram"}}],"structuredContent":{raw}}}}}"#
                )]
            });
            for line in answer {
                out.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        }
    });
    let wire = PipeWire::new(input, output, Box::new(Gone), 1 << 20);
    let client = Client::connect(Arc::new(wire), None, ClientLimits::default())
        .await
        .unwrap();
    let reply = client.call_tool("t", raw, None).await.unwrap();
    assert!(
        line.lock().contains(&format!("\"arguments\":{raw}")),
        "{}",
        line.lock()
    );
    assert_eq!(reply.structured.unwrap().get(), raw);
    assert_eq!(reply.content[0].get(), r#"{"z":1,"type":"hologram"}"#);
}

#[tokio::test(start_paused = true)]
async fn arguments_become_no_part_of_the_message_around_them() {
    let (client, seen) = calling(1 << 20, |message| Some(ok(message))).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for wrong in [
        "{},\"name\":\"other\"",
        "{}},\"id\":7,\"x\":{\"y\":{}",
        "[]",
        "3",
        "{",
        &deep,
    ] {
        let error = client.call_tool("t", wrong, None).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Arguments(_)),
            "{wrong}: {error}"
        );
    }
    assert!(!seen.lock().iter().any(|m| m["method"] == "tools/call"));
    // White space between members still leaves one message on one line.
    for written in [
        "{\n  \"a\": 1,\r\n  \"b\": \"x\\ny\"\n}\n",
        " {\"a\":1,\"b\":\"x\\ny\"}",
    ] {
        client.call_tool("t", written, None).await.unwrap();
        let seen = seen.lock();
        let call = &seen.last().unwrap()["params"];
        assert_eq!(call["arguments"], json!({"a": 1, "b": "x\ny"}));
    }
    client.call_tool("t", " \n", None).await.unwrap();
    assert_eq!(
        seen.lock().last().unwrap()["params"]["arguments"],
        json!({})
    );
}

#[tokio::test(start_paused = true)]
async fn lists_are_read_page_by_page_and_have_an_end() {
    let (client, _) = calling(1 << 20, |message| {
        let cursor = message["params"]["cursor"].as_str().map(str::to_owned);
        Some(result(
            message,
            &match cursor.as_deref() {
                None => json!({"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": "2"}),
                Some(_) => json!({"tools": [{"name": "b"}, {"name": "c"}]}),
            },
        ))
    })
    .await;
    let names: Vec<_> = client
        .tools()
        .await
        .unwrap()
        .into_iter()
        .map(|t| t.name)
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    let page = json!({"tools": 3});
    let (client, _) = calling(1 << 20, move |message| Some(result(message, &page))).await;
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("its list of tools"), "{error}");
}

//! Answers that become streams, streams of changes, and clients that disconnect.

use std::time::Duration;

use haft_mcp::http::{Access, McpService};
use haft_mcp::server::ServerLimits;
use http::Method;
use serde_json::json;

use crate::support::http_client::{MODERN, connect, event, open, post, request, send};
use crate::support::{call, modern, server, until_async};

const SLOW: [(&str, &str); 3] = [MODERN, ("mcp-method", "tools/call"), ("mcp-name", "slow")];

fn slow(milliseconds: u64, token: &str) -> String {
    let token = if token.is_empty() {
        String::new()
    } else {
        format!(r#""progressToken":{token},"#)
    };
    let more = format!(r#","name":"slow","arguments":{{"milliseconds":{milliseconds}}}"#);
    modern("1", "tools/call", &more).replace(r#""_meta":{"#, &format!(r#""_meta":{{{token}"#))
}

#[tokio::test]
async fn progress_makes_the_answer_a_stream_in_both_eras() {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"milliseconds":20},"_meta":{"progressToken":7}}}"#;
    for (headers, body) in [
        (&SLOW[..], slow(20, "7")),
        (&session[..], legacy.to_owned()),
    ] {
        let response = send(&service, request(Method::POST, headers, body.clone())).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let mut stream = response.into_body();
        let mut steps = Vec::new();
        let answer = loop {
            let note = event(&mut stream).await.unwrap();
            if note.get("id").is_some() {
                break note;
            }
            assert_eq!(note["params"]["progress"], json!(steps.len() + 1), "{note}");
            assert_eq!(note["params"]["progressToken"], json!(7));
            steps.push(note["params"]["message"].as_str().unwrap().to_owned());
        };
        assert_eq!(steps.join("\n"), "step 1\nstep 2\nstep 3\nstep 4");
        assert_eq!(answer["result"]["content"][0]["text"], json!("done"));
        assert_eq!(event(&mut stream).await, None);
        // A client that does not accept streams gets the answer alone.
        let plain = [headers, &[("accept", "application/json")]].concat();
        let answer = post(&service, &plain, &body).await;
        assert_eq!(answer.json()["id"], json!(1));
    }
    let answer = post(&service, &SLOW, &slow(4, "")).await;
    assert_eq!(answer.header("content-type"), "application/json");
}

#[tokio::test]
async fn a_stateless_client_cancels_by_hanging_up() {
    for streams in [false, true] {
        let (server, opener) = server(ServerLimits::default());
        let service = server.http(Access::checked_before());
        let mut connection = connect(&service).await;
        let token = if streams { "1" } else { "" };
        // With progress the answer is already a stream when the client disconnects; without it, nothing was sent yet.
        let milliseconds = if streams { 2000 } else { 600_000 };
        let mut body = request(Method::POST, &SLOW, slow(milliseconds, token));
        body.headers_mut()
            .insert("host", "localhost".parse().unwrap());
        let answer = connection.send_request(body);
        if streams {
            let mut stream = answer.await.unwrap().into_body();
            assert!(event(&mut stream).await.is_some());
            drop(stream);
        } else {
            let answer = tokio::spawn(answer);
            until_async(|| opener.count("started") == 1).await;
            answer.abort();
        }
        drop(connection);
        until_async(|| opener.count("ended:cancelled") == 1).await;
    }
}

#[tokio::test]
async fn a_call_of_a_session_outlives_its_connection() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let mut connection = connect(&service).await;
    let session = [("mcp-session-id", id.as_str()), ("host", "localhost")];
    let call = call("1", "slow", r#"{"milliseconds":100}"#);
    let answer = tokio::spawn(connection.send_request(request(Method::POST, &session, call)));
    let host = &opener;
    until_async(|| host.count("started") == 1).await;
    answer.abort();
    drop(connection);
    until_async(|| host.count("ended:ok") == 1).await;
    assert_eq!(host.count("ended:cancelled"), 0);
}

#[tokio::test]
async fn a_session_hears_of_changes_on_its_get_stream_until_it_ends() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [
        ("mcp-session-id", id.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut stream = send(&service, request(Method::GET, &session, ""))
        .await
        .into_body();
    ready(&mut stream).await;
    opener.add_tool("late");
    let told = event(&mut stream).await.unwrap();
    assert_eq!(told["method"], json!("notifications/tools/list_changed"));
    send(&service, request(Method::DELETE, &session, "")).await;
    assert_eq!(event(&mut stream).await, None);
}

/// Waits for the ping with which a stream begins.
async fn ready(stream: &mut haft_mcp::http::McpBody) {
    use http_body_util::BodyExt;
    let first = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(&first[..], b": ping\n\n");
}

async fn listen(service: &McpService, more: &str) -> haft_mcp::http::McpBody {
    let headers = [MODERN, ("mcp-method", "subscriptions/listen")];
    let body = modern("\"s\"", "subscriptions/listen", more);
    let response = send(service, request(Method::POST, &headers, body)).await;
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test]
async fn a_subscription_acknowledges_tells_and_ends_with_the_server() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let mut stream = listen(&service, r#","notifications":{"toolsListChanged":true}"#).await;
    let meta = json!({"io.modelcontextprotocol/subscriptionId": "s"});
    let ack = event(&mut stream).await.unwrap();
    assert_eq!(
        ack["method"],
        json!("notifications/subscriptions/acknowledged")
    );
    assert_eq!(
        ack["params"],
        json!({"notifications": {"toolsListChanged": true}, "_meta": meta})
    );
    opener.add_tool("late");
    let told = event(&mut stream).await.unwrap();
    assert_eq!(told["params"]["_meta"], meta);
    service.shutdown();
    let last = event(&mut stream).await.unwrap();
    assert_eq!(
        (&last["id"], &last["result"]["resultType"]),
        (&json!("s"), &json!("complete"))
    );
    assert_eq!(event(&mut stream).await, None);
}

#[tokio::test]
async fn streams_are_bounded_and_free_their_place() {
    let (server, _) = server(ServerLimits {
        streams: 1,
        keep_alive: Duration::from_millis(5),
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let asks = r#","notifications":{"toolsListChanged":true}"#;
    let first = listen(&service, asks).await;
    let headers = [MODERN, ("mcp-method", "subscriptions/listen")];
    let body = modern("2", "subscriptions/listen", asks);
    let second = post(&service, &headers, &body).await;
    assert_eq!(second.verdict(), (503, -32000));
    drop(first);
    loop {
        let again = request(Method::POST, &headers, body.clone());
        if send(&service, again).await.status() == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns the next frame as text.
async fn text(stream: &mut haft_mcp::http::McpBody) -> String {
    use http_body_util::BodyExt;
    let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    String::from_utf8(frame.to_vec()).unwrap()
}

#[tokio::test]
async fn a_client_that_loses_its_stream_takes_it_up_where_it_left_it() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let slow = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"milliseconds":400},"_meta":{"progressToken":7}}}"#;
    let mut stream = send(&service, request(Method::POST, &session, slow))
        .await
        .into_body();
    assert_eq!(text(&mut stream).await, "id: 1-0\nretry: 500\ndata: \n\n");
    let first = text(&mut stream).await;
    assert!(
        first.starts_with("id: 1-1\nevent: message\ndata: "),
        "{first}"
    );
    drop(stream);
    let back = |last: &'static str| {
        let accept = ("accept", "text/event-stream");
        request(
            Method::GET,
            &[session[0], accept, ("last-event-id", last)],
            "",
        )
    };
    let mut stream = send(&service, back("1-1")).await.into_body();
    let mut values = Vec::new();
    let answer = loop {
        let told = event(&mut stream).await.unwrap();
        match told["params"]["progress"].as_u64() {
            Some(value) => values.push(value),
            None => break told,
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], json!("done"));
    assert!(
        values.is_sorted() && values.first() == Some(&2),
        "{values:?}"
    );
    assert_eq!(event(&mut stream).await, None);
    assert_eq!(opener.count("ended:ok"), 1, "it ran once, to its end");
    // Delivered events are dropped, and another session's streams are not available: such a client only receives changes.
    for last in ["1-1", "2-0", "nonsense"] {
        let mut stream = send(&service, back(last)).await.into_body();
        assert_eq!(text(&mut stream).await, ": ping\n\n", "{last}");
    }
}

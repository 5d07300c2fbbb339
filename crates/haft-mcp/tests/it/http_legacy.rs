//! Sessions of the handshake era over HTTP.

use std::time::Duration;

use haft_mcp::http::Access;
use haft_mcp::server::ServerLimits;
use http::Method;
use serde_json::json;

use crate::support::http_client::{open, post, post_as, reply, request, send};
use crate::support::{call, initialize, server, until_async};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let hello = post(&service, &[], &initialize("2025-06-18")).await;
    assert_eq!(hello.verdict(), (200, 0));
    assert_eq!(
        hello.json()["result"]["protocolVersion"],
        json!("2025-06-18")
    );
    let id = hello.header("mcp-session-id").to_owned();
    assert_eq!(id.len(), 32);
    let session = [("mcp-session-id", id.as_str())];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let taken = post(&service, &session, initialized).await;
    assert_eq!((taken.status, taken.text.as_str()), (202, ""));
    let list = post(
        &service,
        &session,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    )
    .await;
    assert_eq!(list.header("content-type"), "application/json");
    assert_eq!(list.json()["result"]["tools"].as_array().unwrap().len(), 6);
    let read = post(
        &service,
        &session,
        &call("2", "read_file", r#"{"path":"hello.txt"}"#),
    )
    .await;
    assert_eq!(
        read.json()["result"]["structuredContent"]["lines"],
        json!(2)
    );
    let delete = request(Method::DELETE, &session, "");
    assert_eq!(reply(send(&service, delete).await).await.status, 204);
    assert_eq!(opener.count("closed"), 1);
    assert_eq!(
        post(&service, &session, PING).await.verdict(),
        (404, -32001)
    );
    assert_eq!(service.sessions(), 0);
}

fn level(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
    )
}

#[tokio::test]
async fn what_is_wrong_with_a_request_shows_in_its_answer() {
    let (server, _) = server(ServerLimits {
        message_bytes: 2000,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = ("mcp-session-id", id.as_str());
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{}"}}}}"#,
        "x".repeat(3000)
    );
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let marked = format!("\u{feff}{PING}");
    for (headers, body, expect) in [
        // W16: a client may check that the server is there before it introduces itself.
        (vec![], PING, (200, 0)),
        (vec![], LIST, (400, -32600)),
        (vec![("mcp-session-id", "0123")], PING, (404, -32001)),
        (vec![session], PING, (200, 0)),
        (
            vec![session, ("mcp-protocol-version", "2025-11-25")],
            PING,
            (200, 0),
        ),
        (
            vec![session, ("content-type", "text/plain")],
            PING,
            (415, -32600),
        ),
        (vec![session, ("accept", "text/html")], PING, (406, -32600)),
        (
            vec![session, ("accept", "application/json")],
            PING,
            (200, 0),
        ),
        (vec![session, ("accept", "*/*")], PING, (200, 0)),
        (
            vec![session, ("content-type", "Application/JSON; charset=utf-8")],
            PING,
            (200, 0),
        ),
        // W16: a byte order mark has no meaning.
        (vec![session], &marked, (200, 0)),
        // W16: a level must be one of the protocol's.
        (vec![session], &level("debug"), (200, 0)),
        (vec![session], &level("loud"), (200, -32602)),
        (vec![session], "{", (400, -32700)),
        (vec![session], "", (400, -32700)),
        (
            vec![session],
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            (400, -32600),
        ),
        (
            vec![session],
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#,
            (400, -32600),
        ),
        (vec![session], long.as_str(), (413, -32600)),
        (vec![session], deep.as_str(), (400, -32600)),
        (
            vec![session],
            r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
            (200, -32601),
        ),
        (
            vec![session],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            (200, -32602),
        ),
        (
            vec![],
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
            (200, -32602),
        ),
        (
            vec![session],
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            (202, 0),
        ),
    ] {
        let reply = post(&service, &headers, body).await;
        let shown = &body[..body.len().min(60)];
        assert_eq!(reply.verdict(), expect, "{headers:?} {shown}: {reply:?}");
    }
    let bytes: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
    let broken = request(Method::POST, &[session], bytes);
    assert_eq!(
        reply(send(&service, broken).await).await.verdict(),
        (400, -32700)
    );
}

#[tokio::test]
async fn methods_and_streams_without_a_session_are_not_served() {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    for (method, headers, expect) in [
        (Method::PUT, vec![], 405),
        (Method::GET, vec![], 405),
        (Method::DELETE, vec![], 405),
        (Method::GET, vec![("mcp-session-id", "0123")], 404),
        (Method::DELETE, vec![("mcp-session-id", "0123")], 404),
        (
            Method::GET,
            vec![("mcp-session-id", "0123"), ("accept", "application/json")],
            406,
        ),
        (
            Method::GET,
            vec![
                ("mcp-session-id", "0"),
                ("mcp-protocol-version", "2026-07-28"),
            ],
            405,
        ),
        (
            Method::DELETE,
            vec![
                ("mcp-session-id", "0"),
                ("mcp-protocol-version", "2026-07-28"),
            ],
            405,
        ),
    ] {
        let reply = reply(send(&service, request(method.clone(), &headers, "")).await).await;
        assert_eq!(reply.status, expect, "{method} {headers:?}");
        assert_eq!(reply.header("allow").is_empty(), expect != 405);
    }
}

#[tokio::test]
async fn a_session_is_its_openers_alone() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let hello = post_as(&service, "ada", &[], &initialize("2025-11-25")).await;
    let id = hello.header("mcp-session-id").to_owned();
    let session = [("mcp-session-id", id.as_str())];
    assert_eq!(post_as(&service, "ada", &session, PING).await.status, 200);
    assert_eq!(post_as(&service, "bob", &session, PING).await.status, 404);
    assert_eq!(post(&service, &session, PING).await.status, 404);
    let first = opener.clients.lock()[0].clone();
    assert_eq!(first.principal.unwrap().to_string(), "local/ada");
    assert_eq!(
        (first.name.as_str(), first.era.as_str()),
        ("c", "2025-11-25")
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded_and_expire_when_idle_but_not_in_use() {
    let (server, opener) = server(ServerLimits {
        sessions: 2,
        idle: Duration::from_mins(10),
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let (idle, busy) = (open(&service).await, open(&service).await);
    let headers = [("mcp-session-id", busy.as_str())];
    let slow = request(
        Method::POST,
        &headers,
        call("1", "slow", r#"{"milliseconds":3600000}"#),
    );
    let running = tokio::spawn({
        let service = service.clone();
        async move { reply(send(&service, slow).await).await }
    });
    let used = [("mcp-session-id", idle.as_str())];
    let read = call("1", "read_file", r#"{"path":"hello.txt"}"#);
    assert_eq!(post(&service, &used, &read).await.status, 200);
    // slow on purpose: the clock is paused, and jumps.
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert_eq!(service.sessions(), 1, "the idle one is swept");
    assert_eq!(opener.count("closed"), 1);
    let gone = post(&service, &[("mcp-session-id", &idle)], PING).await;
    assert_eq!(gone.verdict(), (404, -32001));
    open(&service).await;
    let answer = running.await.unwrap();
    assert!(answer.text.contains("\"done\""), "{answer:?}");
    assert!(
        answer.text.contains(": ping\n\n"),
        "a long silence is broken"
    );
    assert_eq!(post(&service, &headers, PING).await.status, 200);
}

#[tokio::test]
async fn an_id_under_way_is_refused_and_a_cancelled_one_says_so() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let slow = request(
        Method::POST,
        &session,
        call("7", "slow", r#"{"milliseconds":600000}"#),
    );
    let running = tokio::spawn({
        let service = service.clone();
        async move { reply(send(&service, slow).await).await }
    });
    let host = &opener;
    until_async(|| host.count("started") == 1).await;
    let second = post(&service, &session, &call("7", "echo", "{}")).await;
    assert_eq!(second.verdict(), (400, -32600));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(post(&service, &session, cancel).await.status, 202);
    assert_eq!(running.await.unwrap().verdict(), (200, -32800));
    assert_eq!(host.count("ended:cancelled"), 1);
}

#[tokio::test]
async fn ending_a_session_or_the_server_cancels_what_runs() {
    for by_delete in [true, false] {
        let (server, opener) = server(ServerLimits::default());
        let service = server.http(Access::checked_before());
        let id = open(&service).await;
        let session = [("mcp-session-id", id.as_str())];
        let slow = request(
            Method::POST,
            &session,
            call("7", "slow", r#"{"milliseconds":600000}"#),
        );
        let running = tokio::spawn({
            let service = service.clone();
            async move { reply(send(&service, slow).await).await }
        });
        let host = &opener;
        until_async(|| host.count("started") == 1).await;
        if by_delete {
            send(&service, request(Method::DELETE, &session, "")).await;
        } else {
            service.shutdown();
        }
        assert_eq!(running.await.unwrap().verdict(), (200, -32800));
        assert_eq!(host.count("ended:cancelled"), 1);
        assert_eq!(host.count("closed"), 1);
    }
}

//! The stateless era over HTTP: every POST is independent.

use haft_mcp::http::Access;
use haft_mcp::server::ServerLimits;
use serde_json::json;

use crate::support::http_client::{MODERN, post, post_as, post_modern};
use crate::support::{ENVELOPE, modern, server};

#[tokio::test]
async fn requests_need_no_session_and_share_one_run_per_caller() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let found = post_modern(
        &service,
        "server/discover",
        None,
        &modern("1", "server/discover", ""),
    )
    .await;
    assert_eq!(found.verdict(), (200, 0));
    assert_eq!(found.header("mcp-session-id"), "");
    let versions = found.json()["result"]["supportedVersions"].clone();
    assert_eq!(versions[0], json!("2026-07-28"));
    let body = modern(
        "2",
        "tools/call",
        r#","name":"read_file","arguments":{"path":"hello.txt"}"#,
    );
    let read = post_modern(&service, "tools/call", Some("read_file"), &body).await;
    assert_eq!(read.json()["result"]["resultType"], json!("complete"));
    assert_eq!(opener.clients.lock().len(), 1);
    let headers = [MODERN, ("mcp-method", "tools/list")];
    let list = modern("3", "tools/list", "");
    for who in ["ada", "bob", "ada"] {
        assert_eq!(post_as(&service, who, &headers, &list).await.status, 200);
    }
    assert_eq!(
        opener.clients.lock().len(),
        3,
        "one more each for ada and bob"
    );
}

type Row<'a> = (Vec<(&'a str, &'a str)>, &'a str, (u16, i64));

async fn check(rows: Vec<Row<'_>>) {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    for (headers, body, expect) in rows {
        let reply = post(&service, &headers, body).await;
        assert_eq!(reply.verdict(), expect, "{headers:?} {body}: {reply:?}");
    }
}

fn to(method: &str) -> (&str, &str) {
    ("mcp-method", method)
}

#[tokio::test]
async fn the_version_header_must_say_what_the_body_says() {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let list = modern("1", "tools/list", "");
    let old = list.replace("2026-07-28", "2025-11-25");
    let unknown = list.replace("2026-07-28", "2099-01-01");
    let half = list.replace("clientCapabilities", "other");
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let version = |version| ("mcp-protocol-version", version);
    let to_list = to("tools/list");
    check(vec![
        (vec![MODERN, to_list], &list, (200, 0)),
        (vec![to_list], &list, (400, -32020)),
        (vec![version("2025-11-25"), to_list], &list, (400, -32020)),
        (vec![version("2099-01-01"), to_list], &list, (400, -32020)),
        (vec![MODERN, MODERN, to_list], &list, (400, -32020)),
        (vec![MODERN, to_list], &old, (400, -32020)),
        (
            vec![version("2099-01-01"), to_list],
            &unknown,
            (400, -32022),
        ),
        (vec![MODERN, to_list], bare, (400, -32602)),
        (vec![MODERN, to_list], &half, (400, -32602)),
    ])
    .await;
    let told = post(&service, &[version("2099-01-01"), to_list], &unknown).await;
    let data = told.json()["error"]["data"].clone();
    assert_eq!(data["requested"], json!("2099-01-01"));
    assert_eq!(data["supported"][0], json!("2026-07-28"));
}

#[tokio::test]
async fn the_method_and_name_headers_must_say_what_the_body_says() {
    let list = modern("1", "tools/list", "");
    let call = modern("1", "tools/call", r#","name":"grün""#);
    let read = modern("1", "resources/read", r#","uri":"artifact://x/y""#);
    let (to_list, to_call) = (to("tools/list"), to("tools/call"));
    let to_read = to("resources/read");
    let name = |name| ("mcp-name", name);
    let grun = name("=?base64?Z3LDvG4=?=");
    check(vec![
        (vec![MODERN], &list, (400, -32020)),
        (vec![MODERN, to_call], &list, (400, -32020)),
        (vec![MODERN, to_list, to_list], &list, (400, -32020)),
        (vec![MODERN, to_call], &call, (400, -32020)),
        (vec![MODERN, to_call, name("other")], &call, (400, -32020)),
        (
            vec![MODERN, to_call, name("=?base64?!?=")],
            &call,
            (400, -32020),
        ),
        (vec![MODERN, to_call, grun, grun], &call, (400, -32020)),
        (vec![MODERN, to_call, grun], &call, (200, 0)),
        (vec![MODERN, to_read], &read, (400, -32020)),
        (
            vec![MODERN, to_read, name("artifact://x/y")],
            &read,
            (400, -32602),
        ),
    ])
    .await;
}

#[tokio::test]
async fn what_the_era_has_not_is_not_found() {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    for method in [
        "ping",
        "logging/setLevel",
        "initialize",
        "completion/complete",
        "no/such",
    ] {
        let reply = post_modern(&service, method, None, &modern("1", method, "")).await;
        assert_eq!(reply.verdict(), (404, -32601), "{method}");
    }
    let headers = [MODERN];
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(post(&service, &headers, note).await.verdict(), (202, 0));
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(
        post(&service, &headers, response).await.verdict(),
        (400, -32600)
    );
    let later = [("mcp-protocol-version", "2099-01-01")];
    assert_eq!(post(&service, &later, note).await.verdict(), (400, -32022));
    assert_eq!(post(&service, &headers, "{").await.verdict(), (400, -32700));
}

#[tokio::test]
async fn the_same_id_twice_is_two_clients_and_arguments_keep_their_bytes() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let arguments = r#"{"z":12345678901234567890123,  "a":1.50,"a":2}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{ENVELOPE},"name":"big","arguments":{arguments}}}}}"#
    );
    let (one, two) = tokio::join!(
        post_modern(&service, "tools/call", Some("big"), &body),
        post_modern(&service, "tools/call", Some("big"), &body),
    );
    assert_eq!((one.verdict(), two.verdict()), ((200, 0), (200, 0)));
    let seen = opener.calls();
    assert_eq!(seen, vec![("big".to_owned(), arguments.to_owned()); 2]);
}

#[tokio::test]
async fn a_caller_whose_run_is_spent_gets_a_new_one() {
    let (server, opener) = server(ServerLimits::default());
    *opener.max_calls.lock() = 2;
    let service = server.http(Access::checked_before());
    let body = modern(
        "1",
        "tools/call",
        r#","name":"read_file","arguments":{"path":"hello.txt"}"#,
    );
    for _ in 0..5 {
        let read = post_modern(&service, "tools/call", Some("read_file"), &body).await;
        assert_ne!(read.json()["result"]["isError"], json!(true), "{read:?}");
    }
    assert_eq!(opener.clients.lock().len(), 3);
}

//! What a host offers beside tools: lists and results pass unchanged, and clients are notified of changes, in both eras.

use haft_mcp::http::{Access, McpService};
use http::Method;
use serde_json::{Value, json};

use crate::support::http_client::{MODERN, event, open, post, post_modern, request, send};
use crate::support::modern;

#[path = "../../examples/conformance_server/suite.rs"]
#[expect(dead_code, reason = "the listener is for those who come by a port")]
mod suite;

fn service() -> McpService {
    suite::server().unwrap().http(Access::checked_before())
}

async fn ask(service: &McpService, method: &str, name: Option<&str>, more: &str) -> Value {
    let body = modern("1", method, more);
    post_modern(service, method, name, &body).await.json()
}

#[tokio::test]
async fn entries_and_results_of_an_offer_pass_with_members_that_no_server_knows() {
    let service = service();
    let listed = post_modern(
        &service,
        "resources/list",
        None,
        &modern("1", "resources/list", ""),
    )
    .await;
    let odd = r#"{"z":12345678901234567890123,"uri":"test://odd","description":"Has members of its own","name":"Odd","a":[1.50]}"#;
    assert!(listed.text.contains(odd), "{listed:?}");
    let read = modern("1", "resources/read", r#","uri":"test://odd""#);
    let read = post_modern(&service, "resources/read", Some("test://odd"), &read).await;
    let raw = r#"{"z":12345678901234567890123,"contents":[{"uri":"test://odd","text":"odd","b":1.50}],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":"#;
    assert!(read.text.contains(raw), "{read:?}");
    let session = open(&service).await;
    let read =
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://odd"}}"#;
    let read = post(&service, &[("mcp-session-id", &session)], read).await;
    let raw = r#""result":{"z":12345678901234567890123,"contents":[{"uri":"test://odd","text":"odd","b":1.50}]}}"#;
    assert!(read.text.ends_with(raw), "{read:?}");
}

#[tokio::test]
async fn what_an_offer_has_not_is_an_error_that_names_it() {
    let service = service();
    for (method, name, more) in [
        ("resources/read", "test://none", r#","uri":"test://none""#),
        ("prompts/get", "none", r#","name":"none""#),
        (
            "resources/read",
            "skill://none/SKILL.md",
            r#","uri":"skill://none/SKILL.md""#,
        ),
    ] {
        let answer = ask(&service, method, Some(name), more).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains(name),
            "{answer}"
        );
    }
    for more in [
        "",
        r#","ref":{"type":"ref/tool","name":"x"},"argument":{"name":"a","value":""}"#,
        r#","ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a"}"#,
    ] {
        let answer = ask(&service, "completion/complete", None, more).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test]
async fn a_stream_tells_what_it_was_opened_for_and_nothing_else() {
    let service = service();
    let filter =
        json!({"promptsListChanged": true, "resourceSubscriptions": ["test://odd", "none://odd"]});
    let body = modern(
        "7",
        "subscriptions/listen",
        &format!(",\"notifications\":{filter}"),
    );
    let headers = [MODERN, ("mcp-method", "subscriptions/listen")];
    let mut stream = send(&service, request(Method::POST, &headers, body))
        .await
        .into_body();
    let first = event(&mut stream).await.unwrap();
    let will = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://odd"]});
    assert_eq!(first["params"]["notifications"], will);
    let touch =
        |uri: &str| format!(r#","name":"test_touch_resource","arguments":{{"uri":"{uri}"}}"#);
    for (tool, more) in [
        (
            "test_trigger_tool_change",
            r#","name":"test_trigger_tool_change","arguments":{}"#.to_owned(),
        ),
        ("test_touch_resource", touch("test://static-text")),
        ("test_touch_resource", touch("test://odd")),
        (
            "test_trigger_prompt_change",
            r#","name":"test_trigger_prompt_change","arguments":{}"#.to_owned(),
        ),
    ] {
        let called = ask(&service, "tools/call", Some(tool), &more).await;
        assert_eq!(called["result"]["isError"], false, "{called}");
    }
    let updated = event(&mut stream).await.unwrap();
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], "test://odd");
    assert_eq!(
        updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        7
    );
    let prompts = event(&mut stream).await.unwrap();
    assert_eq!(prompts["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn a_session_hears_of_the_resources_that_it_is_subscribed_to() {
    let service = service();
    let session = open(&service).await;
    let headers = [("mcp-session-id", session.as_str())];
    let say = async |method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        post(&service, &headers, &body.to_string()).await.json()
    };
    let watch = request(
        Method::GET,
        &[
            ("mcp-session-id", &session),
            ("accept", "text/event-stream"),
        ],
        "",
    );
    let mut stream = send(&service, watch).await.into_body();
    let touch = json!({"name": "test_touch_resource", "arguments": {"uri": "test://odd"}});
    say("tools/call", touch.clone()).await;
    let none = say("resources/subscribe", json!({"uri": "none://odd"})).await;
    assert_eq!(none["error"]["code"], -32002, "{none}");
    assert_eq!(
        say("resources/subscribe", json!({"uri": "test://odd"})).await["result"],
        json!({})
    );
    say("tools/call", touch.clone()).await;
    assert_eq!(
        say("resources/unsubscribe", json!({"uri": "test://odd"})).await["result"],
        json!({})
    );
    say("tools/call", touch).await;
    say(
        "tools/call",
        json!({"name": "test_trigger_prompt_change", "arguments": {}}),
    )
    .await;
    let mut heard = Vec::new();
    while heard
        .last()
        .is_none_or(|method| method != "notifications/prompts/list_changed")
    {
        let told = event(&mut stream).await.unwrap();
        heard.push(told["method"].as_str().unwrap().to_owned());
    }
    let expect = [
        "notifications/resources/updated",
        "notifications/prompts/list_changed",
    ];
    assert_eq!(heard, expect);
}

#[tokio::test]
async fn log_messages_go_to_those_who_want_them() {
    let service = service();
    let session = open(&service).await;
    let headers = [("mcp-session-id", session.as_str())];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_logging_tool","arguments":{}}}"#;
    let level = |level: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
        )
    };
    for (set, logged) in [(None, true), (Some("error"), false), (Some("debug"), true)] {
        if let Some(set) = set {
            post(&service, &headers, &level(set)).await;
        }
        let said = post(&service, &headers, call).await.text;
        assert_eq!(
            said.contains("notifications/message"),
            logged,
            "{set:?} {said}"
        );
    }
    let more = r#","name":"test_logging_tool","arguments":{}"#;
    let wants = |level: &str| {
        let level = format!(r#""_meta":{{"io.modelcontextprotocol/logLevel":"{level}","#);
        modern("1", "tools/call", more).replace("\"_meta\":{", &level)
    };
    for (body, logged) in [
        (modern("1", "tools/call", more), false),
        (wants("info"), true),
        (wants("alert"), false),
    ] {
        let said = post_modern(&service, "tools/call", Some("test_logging_tool"), &body).await;
        assert_eq!(
            said.text.contains("notifications/message"),
            logged,
            "{body}"
        );
    }
    let loud = post_modern(
        &service,
        "tools/call",
        Some("test_logging_tool"),
        &wants("loud"),
    )
    .await;
    assert_eq!(loud.verdict(), (400, -32602));
}

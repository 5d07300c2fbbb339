//! Clients with a handshake while an approval is pending: sent to the console, asked by a form, or made to wait.

use std::sync::Arc;
use std::time::Duration;

use haft::Decision;
use haft::approval::inbox::RequestStatus;
use haft_mcp::http::{Access, McpBody, McpService};
use haft_mcp::opener::OperatorMarker;
use haft_mcp::server::ServerLimits;
use http::Method;
use serde_json::{Value, json};

use crate::support::http_client::{event, reply, request, send};
use crate::support::line_client::LineClient;
use crate::support::small_tools::SmallOpener;
use crate::support::{call, serving, until, until_async};

const PING: &str = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
const WRITE: &str = r#"{"path":"a.txt","content":"x"}"#;

/// Returns the handshake of a client with this name and this way to ask its user.
fn handshake(name: &str, version: &str, elicitation: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"elicitation":{elicitation}}},"clientInfo":{{"name":"{name}","version":"1"}}}}}}"#
    )
}

fn line_client(version: &str, elicitation: &str, limits: ServerLimits) -> LineClient {
    let mut client = LineClient::over(limits, SmallOpener::asking());
    client.send(&handshake("c", version, elicitation));
    client.receive();
    client
}

fn answer(id: &Value, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// Waits for a pending request and returns its id.
fn waiting(client: &LineClient) -> haft::approval::ApprovalId {
    until(|| !client.wait(client.opener.requests()).is_empty());
    client.wait(client.opener.request()).request.id
}

fn approve(client: &LineClient, id: &haft::approval::ApprovalId) {
    let yes = Decision::approve("ada", "console");
    client
        .wait(client.opener.executor.inbox().decide(id, &yes))
        .unwrap();
}

#[test]
fn a_client_that_opens_addresses_is_sent_to_the_console_and_what_it_answers_decides_nothing() {
    for action in ["accept", "decline", "cancel"] {
        let mut client = line_client(
            "2025-11-25",
            r#"{"form":{},"url":{}}"#,
            ServerLimits::default(),
        );
        client.send(&call("1", "write_file", WRITE));
        let asked = client.receive();
        let id = client.wait(client.opener.request()).request.id;
        let expect = json!({
            "mode": "url", "message": "write_file (high): somewhere.txt",
            "url": format!("http://127.0.0.1:7420/waiting/{id}"), "elicitationId": id
        });
        assert_eq!(asked["method"], json!("elicitation/create"));
        assert_eq!(asked["params"], expect);
        client.send(&answer(
            &asked["id"],
            json!({"action": action, "content": {"decision": "approve"}}),
        ));
        // Other work continues meanwhile.
        assert_eq!(client.ask(&call("2", "echo", "{}"))["id"], json!(2));
        let entry = client.wait(client.opener.request());
        assert_eq!(entry.status, RequestStatus::Pending, "{action}");
        approve(&client, &id);
        let done = client.receive();
        assert_eq!(done["method"], json!("notifications/elicitation/complete"));
        assert_eq!(done["params"], json!({"elicitationId": id}));
        let result = client.receive();
        assert_eq!(
            (&result["id"], &result["result"]["isError"]),
            (&json!(1), &json!(false))
        );
    }
}

#[test]
fn a_client_that_cannot_ask_waits_with_progress_or_hears_how_to_come_back() {
    let hold = Duration::from_millis(20);
    let limits = ServerLimits {
        hold,
        ..ServerLimits::default()
    };
    // There are no URLs before 2025-11-25, and no forms before 2025-06-18.
    for (version, elicitation) in [
        ("2025-06-18", r#"{"url":{}}"#),
        ("2025-03-26", r#"{"form":{},"url":{}}"#),
        ("2025-11-25", "null"),
    ] {
        let mut client = line_client(version, elicitation, limits.clone());
        let late = client.ask(&call("1", "write_file", WRITE));
        let id = waiting(&client);
        let result = &late["result"];
        assert_eq!(result["isError"], json!(true), "{version} {late}");
        assert_eq!(result["_meta"]["haft"]["approval"], json!(id));
        let text = result["content"].to_string();
        for told in [
            id.as_str(),
            "same arguments",
            &format!("http://127.0.0.1:7420/waiting/{id}"),
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
        approve(&client, &id);
        // Repeating the call returns the result; it ran once.
        let again = client.ask(&call("2", "write_file", WRITE));
        assert_eq!(again["result"]["isError"], json!(false), "{again}");
        assert_eq!(client.opener.count("started"), 1);
        assert_eq!(client.wait(client.opener.requests()).len(), 1);
    }
    let mut client = line_client("2025-11-25", "null", limits);
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write_file","arguments":{WRITE},"_meta":{{"progressToken":9}}}}}}"#
    ));
    let told = client.receive();
    let id = waiting(&client);
    let message = format!("pending: approval {id}, http://127.0.0.1:7420/waiting/{id}");
    assert_eq!(
        told["params"],
        json!({"progressToken": 9, "progress": 1, "message": message})
    );
    approve(&client, &id);
    assert_eq!(client.receive()["result"]["isError"], json!(false));
}

#[test]
fn a_cancelled_wait_withdraws_the_request_and_the_question() {
    let mut client = line_client("2025-11-25", r#"{"url":{}}"#, ServerLimits::default());
    client.send(&call("1", "write_file", WRITE));
    let asked = client.receive();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let told = client.receive();
    assert_eq!(told["method"], json!("notifications/cancelled"));
    assert_eq!(told["params"]["requestId"], asked["id"]);
    let status = || client.wait(client.opener.request()).status;
    until(|| status() == RequestStatus::Withdrawn);
    // An answer to a request that no longer exists.
    client.send(&answer(&asked["id"], json!({"action": "accept"})));
    assert_eq!(client.ask(&call("2", "echo", "{}"))["id"], json!(2));
    assert_eq!(client.opener.count("started"), 1, "the echo alone");
}

/// answer → the result of the call; nothing if it continues to wait
#[test]
fn any_client_with_forms_is_asked_a_question() {
    for (said, expect) in [
        (
            json!({"action": "accept", "content": {"colour": "red", "coats": 2}}),
            Some(json!({"colour": "red", "coats": 2})),
        ),
        (
            json!({"action": "accept", "content": {"coats": null}}),
            Some(json!({})),
        ),
        (json!({"action": "decline"}), Some(Value::Null)),
        (
            json!({"action": "accept", "content": {"colour": "green"}}),
            None,
        ),
        (json!({"action": "accept", "content": {"other": 1}}), None),
        (json!({"action": "cancel"}), None),
        (json!("nonsense"), None),
    ] {
        let mut client = line_client("2025-06-18", "{}", ServerLimits::default());
        client.send(&call("1", "question", "{}"));
        let asked = client.receive();
        let params = &asked["params"];
        assert_eq!(params["message"], json!("About the paint"));
        let colour = json!({"type": "string", "enum": ["red", "blue"], "title": "Which?"});
        assert_eq!(params["requestedSchema"]["properties"]["colour"], colour);
        client.send(&answer(&asked["id"], said.clone()));
        if let Some(expect) = expect {
            let got = client.receive();
            assert_eq!(
                got["result"]
                    .get("structuredContent")
                    .unwrap_or(&Value::Null),
                &expect,
                "{said} {got}"
            );
        } else {
            assert_eq!(client.ask(&call("2", "echo", "{}"))["id"], json!(2));
            let entry = client.wait(client.opener.request());
            assert_eq!(entry.status, RequestStatus::Pending, "{said}");
        }
    }
}

/// A session over HTTP; each request carries the operator's token or not.
struct Session {
    service: McpService,
    opener: Arc<SmallOpener>,
    id: String,
}

impl Session {
    async fn open(name: &str, elicitation: &str) -> Self {
        let opener = Arc::new(SmallOpener::asking());
        let service = serving(ServerLimits::default(), &opener).http(Access::checked_before());
        let body = handshake(name, "2025-11-25", elicitation);
        let opened = reply(send(&service, request(Method::POST, &[], body)).await).await;
        let id = opened.header("mcp-session-id").to_owned();
        Self {
            service,
            opener,
            id,
        }
    }

    async fn post(&self, operator: bool, body: &str) -> http::Response<McpBody> {
        let session = [("mcp-session-id", self.id.as_str())];
        let mut request = request(Method::POST, &session, body.to_owned());
        if operator {
            request.extensions_mut().insert(OperatorMarker);
        }
        send(&self.service, request).await
    }
}

#[test]
fn nobody_is_asked_where_settings_say_so() {
    let mut opener = SmallOpener::asking();
    opener.console = None;
    let mut client = LineClient::over(ServerLimits::default(), opener);
    client.send(&handshake("c", "2025-11-25", r#"{"form":{},"url":{}}"#));
    client.receive();
    for (id, tool, arguments) in [("1", "write_file", WRITE), ("2", "question", "{}")] {
        let refused = client.ask(&call(id, tool, arguments));
        assert_eq!(refused["result"]["isError"], json!(true), "{refused}");
    }
    assert!(client.wait(client.opener.requests()).is_empty());
}

/// client, tool, token of the call, of the answer → whether the client is asked by a form, and whether the form decides
#[tokio::test]
async fn forms_decide_for_trusted_clients_with_the_operators_token_alone() {
    for (client, tool, asks, answers, form, decides) in [
        ("trusty", "write_file", true, true, true, true),
        ("trusty", "write_file", true, false, true, false),
        ("trusty", "write_file", false, true, false, false),
        ("other", "write_file", true, true, false, false),
        ("trusty", "destroy", true, true, false, false),
    ] {
        let row = format!("{client} {tool} {asks} {answers}");
        let session = Session::open(client, r#"{"form":{},"url":{}}"#).await;
        let arguments = if tool == "destroy" { "{}" } else { WRITE };
        let mut stream = session
            .post(asks, &call("1", tool, arguments))
            .await
            .into_body();
        let asked = event(&mut stream).await.unwrap();
        let mode = if form { "form" } else { "url" };
        assert_eq!(asked["params"]["mode"], json!(mode), "{row}");
        let said = json!({"action": "accept", "content": {"decision": "approve"}});
        let taken = session.post(answers, &answer(&asked["id"], said)).await;
        assert_eq!(taken.status(), 202);
        if decides {
            let result = event(&mut stream).await.unwrap();
            assert_eq!(result["result"]["isError"], json!(false), "{row} {result}");
            let decision = session.opener.request().await.decision.unwrap();
            assert_eq!(
                (decision.by.as_str(), decision.from.as_str()),
                ("user", "mcp form")
            );
        } else {
            // It waits for the console.
            let entry = session.opener.request().await;
            assert_eq!(entry.status, RequestStatus::Pending, "{row}");
            let no = Decision::deny("ada", "console");
            session
                .opener
                .executor
                .inbox()
                .decide(&entry.request.id, &no)
                .await
                .unwrap();
            let mut last = event(&mut stream).await.unwrap();
            while last.get("id").is_none() {
                last = event(&mut stream).await.unwrap();
            }
            assert_eq!(last["result"]["isError"], json!(true), "{row} {last}");
            assert_eq!(session.opener.count("started"), 0, "{row}");
        }
    }
}

#[tokio::test]
async fn a_form_that_says_no_denies_with_its_word() {
    let session = Session::open("trusty", "{}").await;
    let mut stream = session
        .post(true, &call("1", "write_file", WRITE))
        .await
        .into_body();
    let asked = event(&mut stream).await.unwrap();
    let said = json!({"action": "accept", "content": {"decision": "deny", "message": "not today"}});
    session.post(true, &answer(&asked["id"], said)).await;
    let result = event(&mut stream).await.unwrap();
    assert!(
        result["result"]["content"]
            .to_string()
            .contains("not today"),
        "{result}"
    );
    assert_eq!(session.opener.count("started"), 0);
}

#[tokio::test]
async fn a_session_that_waits_for_a_person_is_not_swept() {
    let limits = ServerLimits {
        hold: Duration::ZERO,
        idle: Duration::from_millis(20),
        ..ServerLimits::default()
    };
    let opener = Arc::new(SmallOpener::asking());
    let service = serving(limits, &opener).http(Access::checked_before());
    let opened = reply(
        send(
            &service,
            request(Method::POST, &[], handshake("c", "2025-11-25", "null")),
        )
        .await,
    )
    .await;
    let session = [("mcp-session-id", opened.header("mcp-session-id"))];
    let asked = send(
        &service,
        request(Method::POST, &session, call("1", "write_file", WRITE)),
    )
    .await;
    assert_eq!(reply(asked).await.json()["result"]["isError"], json!(true));
    // The session that waits for nothing is closed, though it was opened later.
    let idle = handshake("d", "2025-11-25", "null");
    let idle = reply(send(&service, request(Method::POST, &[], idle)).await).await;
    assert_eq!(idle.status, 200);
    until_async(|| service.sessions() == 1).await;
    let again = send(&service, request(Method::POST, &session, PING)).await;
    assert_eq!(reply(again).await.status, 200, "the other one was swept");
    let id = opener.request().await.request.id;
    let no = Decision::deny("ada", "console");
    opener.executor.inbox().decide(&id, &no).await.unwrap();
    until_async(|| service.sessions() == 0).await;
}

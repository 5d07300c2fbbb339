//! The life of a client over standard input and output, in both eras.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::server::ServerLimits;
use serde_json::{Value, json};

use crate::support::line_client::LineClient;
use crate::support::small_tools::BIG;
use crate::support::{call, initialize, modern, until};

fn impatient() -> ServerLimits {
    ServerLimits {
        grace: Duration::from_millis(50),
        ..ServerLimits::default()
    }
}

/// Exchanges messages, one line each way, and returns the transcript.
fn transcript(lines: &[String]) -> Vec<Value> {
    let mut client = LineClient::start(ServerLimits::default());
    let asked = lines.iter().map(|line| client.ask(line));
    asked.collect()
}

#[test]
fn the_handshake_era_from_hello_to_artifact() {
    insta::assert_json_snapshot!(transcript(&[
        initialize("2025-11-25"),
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.into(),
        call("3", "read_file", r#"{"path":"hello.txt"}"#),
        call("4", "no_such", "{}"),
        r#"{"jsonrpc":"2.0","id":6,"method":"resources/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":7,"method":"resources/templates/list"}"#.into(),
    ]));
}

#[test]
fn the_stateless_era_from_discovery_to_artifact() {
    insta::assert_json_snapshot!(transcript(&[
        modern("1", "server/discover", ""),
        modern("\"two\"", "tools/list", ""),
        modern(
            "3",
            "tools/call",
            r#","name":"read_file","arguments":{"path":"hello.txt"}"#
        ),
        modern("4", "tools/call", r#","name":"no_such""#),
        modern("6", "resources/list", ""),
        modern("7", "resources/templates/list", ""),
        modern(
            "9",
            "resources/read",
            r#","uri":"artifact://run-9/sha256-00""#
        ),
        modern("10", "ping", ""),
    ]));
}

#[test]
fn calls_run_side_by_side_and_answer_as_they_end() {
    let mut client = LineClient::legacy(ServerLimits::default());
    client.send(&call("1", "slow", r#"{"milliseconds":100}"#));
    client.send(&call("2", "echo", "{}"));
    assert_eq!(client.receive()["id"], json!(2));
    assert_eq!(client.receive()["id"], json!(1));
}

#[test]
fn progress_rises_before_the_answer_for_a_client_that_asks() {
    let mut client = LineClient::legacy(ServerLimits::default());
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"milliseconds":20},"_meta":{"progressToken":"t\"1"}}}"#);
    // Progress is batched: the number of messages for the four steps is not fixed.
    let mut steps = Vec::new();
    let answer = loop {
        let note = client.receive();
        if note.get("id").is_some() {
            break note;
        }
        assert_eq!(note["method"], json!("notifications/progress"));
        let params = &note["params"];
        assert_eq!(params["progressToken"], json!("t\"1"));
        assert_eq!(params["progress"], json!(steps.len() + 1));
        steps.push(params["message"].as_str().unwrap().to_owned());
    };
    assert_eq!(steps.join("\n"), "step 1\nstep 2\nstep 3\nstep 4");
    assert_eq!(answer["id"], json!(1));
    // Without a token there is no progress.
    let answer = client.ask(&call("2", "slow", r#"{"milliseconds":4}"#));
    assert_eq!(answer["id"], json!(2));
}

#[test]
fn a_cancelled_call_ends_without_an_answer_and_the_rest_goes_on() {
    let mut client = LineClient::legacy(ServerLimits::default());
    let host = Arc::clone(&client.opener);
    client.send(&call("\"a\"", "slow", r#"{"milliseconds":600000}"#));
    until(|| host.count("started") == 1);
    client.send(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}"#,
    );
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"enough"}}"#);
    until(|| host.count("ended:cancelled") == 1);
    let next = client.ask(&call("\"a\"", "echo", "{}"));
    assert_eq!(
        next["result"]["isError"],
        json!(false),
        "the id is free again"
    );
}

#[test]
fn a_client_that_hangs_up_gets_what_ends_soon_and_cancels_the_rest() {
    let mut client = LineClient::legacy(impatient());
    let host = Arc::clone(&client.opener);
    client.send(&call("1", "slow", r#"{"milliseconds":600000}"#));
    client.send(&call("2", "echo", "{}"));
    drop(client.input.take());
    assert_eq!(client.receive()["id"], json!(2));
    assert_eq!(client.receive_text(), "", "the output ends");
    client.ended().unwrap();
    assert_eq!(host.count("ended:cancelled"), 1);
    assert_eq!(host.count("closed"), 1);
}

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let mut client = LineClient::start(ServerLimits::default());
    let mut all = initialize("2025-11-25");
    for id in 1..=20 {
        all = all + "\n" + &call(&id.to_string(), "echo", "{}");
    }
    // The last line has no newline.
    client.send_bytes(all.as_bytes());
    drop(client.input.take());
    let mut ids: Vec<_> = (0..=20)
        .map(|_| client.receive()["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=20).collect::<Vec<_>>());
    assert_eq!(client.receive_text(), "");
    client.ended().unwrap();
}

#[test]
fn a_client_that_reads_no_more_ends_the_server_too() {
    let mut client = LineClient::legacy(impatient());
    let host = Arc::clone(&client.opener);
    client.send(&call("1", "slow", r#"{"milliseconds":600000}"#));
    until(|| host.count("started") == 1);
    drop(client.output.take());
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    until(|| host.count("closed") == 1);
    assert_eq!(host.count("ended:cancelled"), 1);
    client.ended().unwrap();
}

#[test]
fn a_changed_list_is_announced_to_a_client_of_the_handshake_era() {
    let mut client = LineClient::legacy(ServerLimits::default());
    client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    client.opener.add_tool("late");
    let expect = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(client.receive(), expect);
    let list = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert!(list.to_string().contains("\"late\""));
}

#[test]
fn a_subscription_acknowledges_tells_and_ends_when_cancelled() {
    let mut client = LineClient::start(impatient());
    client.ask(&modern("1", "server/discover", ""));
    client.opener.add_tool("early");
    let ack = client.ask(&modern(
        "\"s\"",
        "subscriptions/listen",
        r#","notifications":{"toolsListChanged":true,"promptsListChanged":true}"#,
    ));
    let meta = json!({"io.modelcontextprotocol/subscriptionId": "s"});
    assert_eq!(
        ack["method"],
        json!("notifications/subscriptions/acknowledged")
    );
    assert_eq!(
        ack["params"],
        json!({"notifications": {"toolsListChanged": true}, "_meta": meta})
    );
    client.opener.add_tool("soon");
    let told = client.receive();
    assert_eq!(told["method"], json!("notifications/tools/list_changed"));
    assert_eq!(told["params"]["_meta"], meta);
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}"#);
    // A subscription to nothing receives nothing; it ends with the connection, and says so.
    let ack = client.ask(&modern(
        "\"n\"",
        "subscriptions/listen",
        r#","notifications":{}"#,
    ));
    assert_eq!(ack["params"]["notifications"], json!({}));
    client.opener.add_tool("late");
    let list = client.ask(&modern("9", "tools/list", ""));
    assert_eq!(list["id"], json!(9));
    drop(client.input.take());
    client.ended().unwrap();
}

#[test]
fn a_long_list_comes_in_pages() {
    let mut client = LineClient::start(ServerLimits {
        page: 2,
        ..ServerLimits::default()
    });
    client.ask(&initialize("2025-11-25"));
    let (mut names, mut params) = (Vec::new(), "{}".to_owned());
    loop {
        let ask = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
        let page = client.ask(&ask);
        let tools = page["result"]["tools"].as_array().unwrap().clone();
        assert!(tools.len() <= 2);
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match &page["result"]["nextCursor"] {
            Value::String(cursor) => params = format!(r#"{{"cursor":"{cursor}"}}"#),
            _ => break,
        }
    }
    assert_eq!(
        names,
        [
            "big",
            "echo",
            "grep_files",
            "read_file",
            "slow",
            "write_file"
        ]
    );
}

/// Returns the answer of `resources/read` for the artifact that `big` links to.
fn read_big(limits: ServerLimits) -> (Value, Value) {
    let mut client = LineClient::legacy(limits);
    let answer = client.ask(&call("1", "big", "{}"));
    let blocks = answer["result"]["content"].as_array().unwrap().clone();
    let link = blocks.iter().find(|block| block["type"] == "resource_link");
    let uri = link.unwrap()["uri"].as_str().unwrap().to_owned();
    assert!(uri.starts_with("artifact://run-0/sha256-"), "{uri}");
    let listed = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"resources/list"}"#);
    assert_eq!(listed["result"]["resources"][0]["uri"], json!(uri));
    let ask = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
    );
    (blocks.into(), client.ask(&ask))
}

#[test]
fn a_large_result_is_linked_listed_and_read_whole() {
    let (blocks, read) = read_big(ServerLimits::default());
    assert!(
        blocks.to_string().len() < 100_000,
        "the answer is a preview"
    );
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["text"], json!(BIG.repeat(20_000)));
    assert_eq!(
        contents["mimeType"].as_str().map(|t| &t[..5]),
        Some("text/")
    );
}

#[test]
fn an_artifact_over_the_limit_says_how_to_read_it() {
    let (_, read) = read_big(ServerLimits {
        resource_bytes: 4,
        ..ServerLimits::default()
    });
    let message = read["error"]["message"].to_string();
    assert!(message.contains("read_artifact"), "{message}");
}

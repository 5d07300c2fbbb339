//! Bad input over standard input: each gets one clear error, and the connection stays open.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::server::ServerLimits;
use haft_mcp::stdio::StdioError;
use serde_json::json;

use crate::support::line_client::LineClient;
use crate::support::{ENVELOPE, call, initialize, modern, until};

/// Checks code and id of the only answer to these bytes in a session of the handshake era, which must still work afterwards.
fn check(bytes: &[u8], code: i64, id: &serde_json::Value) {
    let limits = ServerLimits {
        message_bytes: 4096,
        ..ServerLimits::default()
    };
    let mut client = LineClient::legacy(limits);
    client.send_bytes(bytes);
    client.send_bytes(b"\n");
    let answer = client.receive();
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    assert_eq!(answer["id"], *id, "{shown}: {answer}");
    assert!(answer["error"]["message"].as_str().unwrap().len() > 5);
    let pong = client.ask(r#"{"jsonrpc":"2.0","id":"after","method":"ping"}"#);
    assert_eq!(
        pong,
        json!({"jsonrpc": "2.0", "id": "after", "result": {}}),
        "{shown}"
    );
    assert_eq!(client.opener.refusals.lock().len(), 1, "{shown}");
}

#[test]
fn every_bad_line_gets_one_error_and_costs_nothing_else() {
    let null = json!(null);
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":{{\"a\":{}{}}}}}",
        "[".repeat(500),
        "]".repeat(500)
    );
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"a":"{}"}}}}"#,
        "x".repeat(5000)
    );
    let rows: Vec<(Vec<u8>, (i64, serde_json::Value))> = vec![
        (br#"{"jsonrpc":"2.0","id":3,"meth"#.to_vec(), (-32700, null.clone())),
        (b"not json".to_vec(), (-32700, null.clone())),
        (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"p\xff\"}".to_vec(), (-32700, null.clone())),
        (br#"[{"jsonrpc":"2.0","id":3,"method":"ping"}]"#.to_vec(), (-32600, null.clone())),
        (br#"{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}"#.to_vec(), (-32600, null.clone())),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_vec(), (-32600, null.clone())),
        (br#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#.to_vec(), (-32600, json!(3))),
        (deep.into_bytes(), (-32600, json!(3))),
        (long.into_bytes(), (-32600, null)),
        (br#"{"jsonrpc":"2.0","id":3,"method":"no/such"}"#.to_vec(), (-32601, json!(3))),
        (br#"{"jsonrpc":"2.0","id":3,"method":"server/discover"}"#.to_vec(), (-32601, json!(3))),
        (br#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#.to_vec(), (-32602, json!(3))),
        (br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":7}}"#.to_vec(), (-32602, json!(3))),
        (br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","name":"big"}}"#.to_vec(), (-32602, json!(3))),
        (br#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":7}}"#.to_vec(), (-32602, json!(3))),
        (initialize("2025-11-25").into_bytes(), (-32600, json!(0))),
        (modern("3", "tools/list", "").into_bytes(), (-32600, json!(3))),
    ];
    for (bytes, (code, id)) in rows {
        check(&bytes, code, &id);
    }
}

#[test]
fn errors_of_a_job_are_answers_like_any_other() {
    let mut client = LineClient::legacy(ServerLimits::default());
    for (line, code) in [
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"gone"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/list","params":{"cursor":"gone"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
            -32002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"artifact://run-0/sha256-00"}}"#,
            -32002,
        ),
    ] {
        assert_eq!(client.ask(line)["error"]["code"], json!(code), "{line}");
    }
}

#[test]
fn a_connection_that_did_not_begin_is_told_how_to() {
    let mut client = LineClient::start(ServerLimits::default());
    let first = client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(first["error"]["code"], json!(-32600));
    assert!(
        first["error"]["message"]
            .as_str()
            .unwrap()
            .contains("initialize")
    );
    let hello = client.ask(&initialize("1999-01-01"));
    assert_eq!(hello["result"]["protocolVersion"], json!("2025-11-25"));
}

#[test]
fn a_stateless_request_must_carry_its_whole_envelope_and_a_version_that_is_served() {
    let version = r#""io.modelcontextprotocol/protocolVersion""#;
    for (meta, code) in [
        (format!(r#"{{{version}:"2026-07-28"}}"#), -32602),
        (
            format!(r#"{{{version}:7,"io.modelcontextprotocol/clientCapabilities":{{}}}}"#),
            -32602,
        ),
        (
            format!(
                r#"{{{version}:"2099-01-01","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            ),
            -32022,
        ),
        (
            format!(
                r#"{{{version}:"2025-11-25","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            ),
            -32022,
        ),
    ] {
        let mut client = LineClient::start(ServerLimits::default());
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{"_meta":{meta}}}}}"#
        );
        let answer = client.ask(&line);
        assert_eq!(answer["error"]["code"], json!(code), "{meta}");
        if code == -32022 {
            assert_eq!(answer["error"]["data"]["supported"][0], json!("2026-07-28"));
        }
        // A rejected first request has not decided the era.
        let hello = client.ask(&initialize("2025-06-18"));
        assert_eq!(
            hello["result"]["protocolVersion"],
            json!("2025-06-18"),
            "{meta}"
        );
    }
}

#[test]
fn a_stateless_connection_refuses_the_handshake_and_bare_requests() {
    let mut client = LineClient::start(ServerLimits::default());
    assert!(client.ask(&modern("1", "server/discover", ""))["result"].is_object());
    let answer = client.ask(&initialize("2025-11-25"));
    assert_eq!(answer["error"]["code"], json!(-32022));
    assert_eq!(answer["error"]["data"]["requested"], json!("2025-11-25"));
    let bare = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert_eq!(bare["error"]["code"], json!(-32602));
    for gone in ["ping", "logging/setLevel"] {
        assert_eq!(
            client.ask(&modern("3", gone, ""))["error"]["code"],
            json!(-32601),
            "{gone}"
        );
    }
}

#[test]
fn an_id_that_is_under_way_is_refused_and_the_first_goes_on() {
    let mut client = LineClient::legacy(ServerLimits::default());
    client.send(&call("7", "slow", r#"{"milliseconds":200}"#));
    let second = client.ask(&call("7", "echo", "{}"));
    assert_eq!(second["error"]["code"], json!(-32600));
    let first = client.receive();
    assert_eq!(first["result"]["content"][0]["text"], json!("done"));
    let again = client.ask(&call("7", "echo", "{}"));
    assert_eq!(again["result"]["isError"], json!(false));
}

#[test]
fn arguments_reach_the_executor_byte_for_byte() {
    for arguments in [
        r#"{"n":12345678901234567890123,"z":1,"a":2}"#,
        r#"{ "b" : 1.50 ,	"a":1e400, "a": -0.0 }"#,
        r#"{"k":"\u00e9\ud83d\ude00\/","k2":"é😀/"}"#,
        r#"{"lone":"\ud800"}"#,
        r#"["no","object"]"#,
        r#""text""#,
        "7",
    ] {
        for modern_era in [false, true] {
            let mut client = LineClient::start(ServerLimits::default());
            let line = if modern_era {
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{arguments},{ENVELOPE},"name":"big"}}}}"#
                )
            } else {
                client.ask(&initialize("2025-11-25"));
                call("1", "big", arguments)
            };
            client.send(&line);
            client.receive();
            let seen = client.opener.calls()[0].clone();
            assert_eq!(seen, ("big".to_owned(), arguments.to_owned()));
        }
    }
    let mut client = LineClient::legacy(ServerLimits::default());
    client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big"}}"#);
    client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":null}}"#);
    let seen = client.opener.calls();
    assert_eq!(
        seen,
        [
            ("big".to_owned(), "{}".to_owned()),
            ("big".to_owned(), "{}".to_owned())
        ]
    );
}

#[test]
fn ten_thousand_calls_at_once_are_all_answered() {
    let limits = ServerLimits {
        in_flight: 8,
        ..ServerLimits::default()
    };
    let mut client = LineClient::legacy(limits);
    let mut input = client.input.take().unwrap();
    let writer = std::thread::spawn(move || {
        for n in 0..10_000 {
            let line = call(&n.to_string(), "echo", "{}") + "\n";
            std::io::Write::write_all(&mut input, line.as_bytes()).unwrap();
        }
        input
    });
    let mut seen = vec![false; 10_000];
    for _ in 0..10_000 {
        let answer = client.receive();
        assert_eq!(answer["result"]["isError"], json!(false));
        let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "answered twice");
    }
    drop(writer.join().unwrap());
    let host = Arc::clone(&client.opener);
    client.ended().unwrap();
    until(|| host.count("closed") == 1);
}

#[test]
fn w16_a_ping_before_the_handshake_and_a_byte_order_mark_are_taken() {
    let mut client = LineClient::start(ServerLimits::default());
    let pong = client.ask("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let hello = client.ask(&format!("\u{feff}{}", initialize("2025-11-25")));
    assert_eq!(hello["result"]["protocolVersion"], json!("2025-11-25"));
}

#[test]
fn e17_what_is_sent_behind_the_handshake_is_answered_behind_it() {
    for _ in 0..20 {
        let mut client = LineClient::start(ServerLimits::default());
        let lines: Vec<String> = (1..20)
            .map(|id| call(&id.to_string(), "echo", "{}"))
            .collect();
        client.send(&format!(
            "{}\n{}",
            initialize("2025-11-25"),
            lines.join("\n")
        ));
        assert_eq!(
            client.receive()["id"],
            json!(0),
            "the handshake comes first"
        );
        for _ in &lines {
            assert_eq!(client.receive()["result"]["isError"], json!(false));
        }
    }
}

/// The answer has some kilobytes.
const LIST: &str = r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#;

#[test]
fn w15_a_client_that_closed_its_input_and_reads_nothing_is_not_waited_for() {
    for (line, count) in [
        ("garbage".to_owned(), 20_000),
        (LIST.to_owned(), 5_000),
        (LIST.to_owned(), 100),
    ] {
        let limits = ServerLimits {
            in_flight: 16,
            grace: Duration::from_millis(50),
            ..ServerLimits::default()
        };
        let mut client = LineClient::legacy(limits);
        let mut input = client.input.take().unwrap();
        let writing = std::thread::spawn(move || {
            for id in 0..count {
                let line = line.replace(r#""id":0"#, &format!(r#""id":{id}"#));
                // The server may have closed before the last.
                let _ = writeln!(input, "{line}");
            }
        });
        let (output, server) = client.unread();
        server.unwrap();
        writing.join().unwrap();
        drop(output);
    }
}

#[test]
fn w15_a_client_that_reads_nothing_for_long_is_hung_up_on_though_it_keeps_its_input_open() {
    let limits = ServerLimits {
        unread: Duration::from_millis(100),
        ..ServerLimits::default()
    };
    let mut client = LineClient::legacy(limits);
    for id in 0..100 {
        client.send(&LIST.replace(r#""id":0"#, &format!(r#""id":{id}"#)));
    }
    let input = client.input.take();
    let (output, server) = client.unread();
    assert!(matches!(server, Err(StdioError::Unread(_))), "{server:?}");
    drop((input, output));
}

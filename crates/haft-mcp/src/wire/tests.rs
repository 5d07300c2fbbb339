//! What the envelope accepts, and how it refuses the rest.

use proptest::prelude::*;

use super::*;

/// Parses a message and returns `request ID METHOD PARAMS`, `notification …`, `response`, or `CODE ID`.
fn read(bytes: &[u8]) -> String {
    let raw = |params: Option<&RawValue>| params.map_or("-", RawValue::get).to_owned();
    match parse(bytes) {
        Ok(RpcMessage::Request(r)) => {
            format!("request {} {} {}", r.id.as_str(), r.method, raw(r.params))
        }
        Ok(RpcMessage::Notification(n)) => format!("notification {} {}", n.method, raw(n.params)),
        Ok(RpcMessage::Response(_)) => "response".into(),
        Err(refused) => {
            let id = refused.id.as_ref().map_or("-", RequestId::as_str);
            format!("{} {id}", refused.error.code)
        }
    }
}

#[test]
fn messages_are_told_apart_and_bad_ones_refused_with_their_id_where_it_can_be_read() {
    let check = |input: &str, expect: &str| assert_eq!(read(input.as_bytes()), expect, "{input}");
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        "request 1 ping -",
    );
    check(
        r#" {"params":{"b":1,"a":2},"method":"m","id":"x\"y","jsonrpc":"2.0","more":[]} "#,
        r#"request "x\"y" m {"b":1,"a":2}"#,
    );
    check(
        r#"{"jsonrpc":"2.0","id":-7,"method":"m\u0021"}"#,
        "request -7 m! -",
    );
    check(r#"{"jsonrpc":"2.0","method":"n"}"#, "notification n -");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "-32600 -");
    // Truncated, not JSON, more than one value.
    check("", "-32700 -");
    check("{", "-32700 -");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"pi"#, "-32700 -");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#, "-32700 -");
    check(r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, "-32700 -");
    check("hello", "-32700 -");
    // JSON, but not a request.
    check("7", "-32600 -");
    check("\"text\"", "-32600 -");
    check("[]", "-32600 -");
    check(r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600 -");
    check("{}", "-32600 -");
    check(r#"{"id":1,"method":"ping"}"#, "-32600 1");
    check(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":null}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, "-32600 1");
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
        "-32600 1",
    );
}

#[test]
fn ids_are_strings_or_integers_params_objects_and_members_there_once() {
    let check = |input: &str, expect: &str| assert_eq!(read(input.as_bytes()), expect, "{input}");
    check(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "-32600 -");
    check(r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, "-32600 -");
    check(r#"{"jsonrpc":"2.0","id":1e3,"method":"m"}"#, "-32600 -");
    check(r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "-32600 -");
    check(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "-32600 -");
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
        "-32600 1",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
        "-32600 1",
    );
    // Different readers must not see different messages.
    check(
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
        "-32600 -",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        "-32600 -",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
        "-32600 -",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#,
        "-32600 -",
    );
}

#[test]
fn what_is_no_utf_8_too_deep_or_too_long_an_id_is_refused() {
    assert_eq!(
        read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
        "-32700 -"
    );
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"m","params":{{"a":{open}{close}}}}}"#)
    };
    assert!(read(nested(MAX_DEPTH - 2).as_bytes()).starts_with("request 9 m"));
    assert_eq!(read(nested(MAX_DEPTH - 1).as_bytes()), "-32600 9");
    assert_eq!(read(nested(1_000_000).as_bytes()), "-32600 9");
    assert_eq!(read("[".repeat(3_000_000).as_bytes()), "-32600 -");
    assert_eq!(read("{\"a\":".repeat(500_000).as_bytes()), "-32700 -");
    let long = "1".repeat(MAX_ID + 1);
    let message = format!(r#"{{"jsonrpc":"2.0","id":{long},"method":"m"}}"#);
    assert_eq!(read(message.as_bytes()), "-32600 -");
}

#[test]
fn an_error_is_one_json_document_whatever_its_message_holds() {
    let error = RpcError::invalid_params("say \"no\"\n").with_data("{\"a\":1}".into());
    let bytes = reply::error(RequestId::parse("\"i\"").as_ref(), &error);
    let expect = r#"{"jsonrpc":"2.0","id":"i","error":{"code":-32602,"message":"say \"no\"\n","data":{"a":1}}}"#;
    assert_eq!(String::from_utf8(bytes).unwrap(), expect);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _whatever = parse(&bytes);
        let _whatever = depth::exceeds(&bytes, 4);
    }

    #[test]
    fn no_near_json_makes_it_panic(text in r#"([\[\]{}:," \\]|"jsonrpc"|"2\.0"|"id"|"method"|"params"|[0-9]|null|é|\\u[0-9a-f]{4}){0,80}"#) {
        if let Ok(RpcMessage::Request(request)) = parse(text.as_bytes()) {
            let _whatever = params::RequestParams::parse(request.params).map(|p| (p.name(), p.meta().is_ok()));
        }
    }

    #[test]
    fn cutting_a_message_anywhere_is_refused(cut in 0_usize..62) {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":{}}}"#;
        prop_assert_eq!(read(&message[..cut]), "-32700 -");
    }

    #[test]
    fn ids_and_params_keep_their_bytes(id in "-?[0-9]{1,40}", text in "[ -~&&[^\"\\\\]]{0,40}") {
        let number = id.trim_start_matches('-').trim_start_matches('0');
        let id = if number.is_empty() { "0".to_owned() } else { number.to_owned() };
        let params = format!(r#"{{ "z" : {id}, "a":"{text}","a":1.50 }}"#);
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{params}}}"#);
        prop_assert_eq!(read(message.as_bytes()), format!("request {id} m {params}"));
    }
}

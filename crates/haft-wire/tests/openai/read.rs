//! Hand-written replies, for kinds of calls and deviations that are in no recording.

use haft_wire::{Call, CallKind, Dialect, Reply, ReplyLimits, StopReason, TurnItem, WireError};
use serde_json::{Value, json};

fn read(dialect: Dialect, body: &Value) -> Result<Reply, WireError> {
    dialect.read(body.to_string().as_bytes(), ReplyLimits::default())
}

/// Reads a response with one or more items.
fn response(output: &Value) -> Reply {
    read(
        Dialect::OpenAiResponses,
        &json!({"id": "r", "status": "completed", "output": output}),
    )
    .unwrap()
}

fn only(item: &Value) -> TurnItem {
    let reply = response(&json!([item]));
    assert_eq!(reply.turn.items.len(), 1, "{item}");
    reply.turn.items[0].clone()
}

fn call(item: &Value) -> Call {
    match only(item) {
        TurnItem::Call(call) => call,
        other => panic!("{item}: {other:?}"),
    }
}

#[test]
fn calls_that_the_host_runs_are_calls_with_both_ids() {
    let rows = [
        (
            json!({"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": "{\"a\":1"}),
            CallKind::Function,
            "f",
            "{\"a\":1",
        ),
        (
            json!({"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": ""}),
            CallKind::Function,
            "f",
            "{}",
        ),
        (
            json!({"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "sql", "input": "select 1;\n"}),
            CallKind::Freeform,
            "sql",
            "select 1;\n",
        ),
        (
            json!({"type": "tool_search_call", "id": "i", "call_id": "c", "execution": "client", "arguments": {"query": "x"}}),
            CallKind::ToolSearch,
            "tool_search",
            "{\"query\":\"x\"}",
        ),
    ];
    for (item, kind, name, arguments) in rows {
        let call = call(&item);
        assert_eq!(
            (call.id.as_str(), call.item.as_deref()),
            ("c", Some("i")),
            "{item}"
        );
        assert_eq!(
            (call.kind, call.name.as_str(), call.arguments.as_str()),
            (kind, name, arguments)
        );
    }
}

#[test]
fn calls_of_the_providers_own_sorts_hold_their_whole_item() {
    let rows = [
        (
            json!({"type": "shell_call", "id": "i", "call_id": "c", "status": "completed", "action": {"commands": ["ls -l"], "timeout_ms": 5}}),
            "shell",
        ),
        (
            json!({"type": "shell_call", "id": "i", "call_id": "c", "environment": {"type": "local"}, "action": {"commands": ["ls"]}}),
            "shell",
        ),
        (
            json!({"type": "local_shell_call", "id": "i", "call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}}),
            "local_shell",
        ),
        (
            json!({"type": "apply_patch_call", "id": "i", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}}),
            "apply_patch",
        ),
        (
            json!({"type": "computer_call", "id": "i", "call_id": "c", "actions": [{"type": "wait"}], "pending_safety_checks": [{"id": "s", "code": "x", "message": "m"}]}),
            "computer",
        ),
    ];
    for (item, name) in rows {
        let call = call(&item);
        assert_eq!(call.kind, CallKind::Provider(format!("{name}_call")));
        assert_eq!(
            (call.name.as_str(), call.id.as_str(), call.item.as_deref()),
            (name, "c", Some("i"))
        );
        assert_eq!(
            serde_json::from_str::<Value>(&call.arguments).unwrap(),
            item
        );
    }
}

#[test]
fn what_the_provider_ran_is_never_a_call() {
    let rows = [
        json!([{"type": "web_search_call", "id": "i", "status": "completed", "action": {}}]),
        json!([{"type": "mcp_call", "id": "i", "name": "ask", "output": "x"}]),
        json!([{"type": "program", "id": "i", "call_id": "c", "code": "x", "fingerprint": "f"}]),
        json!([{"type": "program_output", "id": "i", "call_id": "c", "result": "x", "status": "completed"}]),
        json!([{"type": "tool_search_call", "id": "i", "call_id": null, "execution": "server", "arguments": {}}]),
        json!([{"type": "tool_search_output", "call_id": null, "execution": "server", "tools": []}]),
        json!([{"type": "shell_call", "id": "i", "call_id": "c", "environment": {"type": "container_reference", "container_id": "k"}, "action": {}}]),
        json!([{"type": "shell_call", "id": "i", "call_id": "c", "action": {}}, {"type": "shell_call_output", "call_id": "c", "output": []}]),
    ];
    for output in rows {
        let reply = response(&output);
        assert_eq!(
            (reply.turn.calls().count(), &reply.stop),
            (0, &StopReason::End),
            "{output}"
        );
        let hosted = |item: &TurnItem| matches!(item, TurnItem::Hosted { .. });
        assert!(reply.turn.items.iter().all(hosted), "{output}");
        assert_eq!(reply.turn.items.len(), output.as_array().unwrap().len());
    }
}

#[test]
fn a_program_that_calls_is_named_and_the_model_itself_is_not() {
    let item = |caller: Value| json!({"type": "function_call", "call_id": "c", "name": "f", "namespace": "crm", "arguments": "{}", "caller": caller});
    let program = call(&item(json!({"type": "program", "caller_id": "p"})));
    assert_eq!(
        program.caller.unwrap().get(),
        r#"{"caller_id":"p","type":"program"}"#
    );
    assert_eq!(program.namespace.as_deref(), Some("crm"));
    for caller in [json!({"type": "direct"}), Value::Null] {
        assert!(call(&item(caller)).caller.is_none());
    }
}

#[test]
fn questions_unknown_items_and_refusals_are_carried() {
    let asked = only(
        &json!({"type": "mcp_approval_request", "id": "a", "server_label": "s", "name": "n", "arguments": "{}"}),
    );
    assert!(
        matches!(asked, TurnItem::Approval { id, server, name, arguments } if (id.as_str(), server.as_str(), name.as_str(), arguments.as_str()) == ("a", "s", "n", "{}"))
    );
    let reply = response(
        &json!([{"type": "mcp_approval_request", "id": "a", "server_label": "s", "name": "n", "arguments": "{}"}]),
    );
    assert_eq!(reply.stop, StopReason::Calls);
    let unknown = only(&json!({"type": "compaction", "encrypted_content": "x"}));
    assert!(
        matches!(unknown, TurnItem::Unknown { kind, raw } if kind == "compaction" && raw.get().contains("encrypted_content"))
    );
    let refused =
        only(&json!({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}));
    assert!(matches!(refused, TurnItem::Refusal(text) if text == "no"));
    let odd = only(&json!({"type": "message", "content": [{"type": "output_audio", "data": "x"}]}));
    assert!(matches!(odd, TurnItem::Unknown { kind, .. } if kind == "output_audio"));
    let reply = response(&json!([{"type": "reasoning", "summary": [], "encrypted_content": "x"}]));
    assert!(reply.turn.items.is_empty() && reply.turn.raw.get().contains("encrypted_content"));
}

#[test]
fn blanks_between_words_of_what_was_sent_go_and_numbers_keep_their_digits() {
    let body = "{\n  \"status\": \"completed\",\n  \"output\": [\n    { \"type\": \"odd\", \"n\": 1.50, \"big\": 12345678901234567890123 }\n  ]\n}";
    let reply = Dialect::OpenAiResponses
        .read(body.as_bytes(), ReplyLimits::default())
        .unwrap();
    assert_eq!(
        reply.turn.raw.get(),
        r#"[{"type":"odd","n":1.50,"big":12345678901234567890123}]"#
    );
}

#[test]
fn why_a_reply_ended_is_read() {
    let chat = |finish: Value, calls: bool| {
        let calls = if calls {
            json!([{"id": "c", "function": {"name": "f"}}])
        } else {
            Value::Null
        };
        let message = json!({"content": "x", "tool_calls": calls});
        read(
            Dialect::OpenAiChat,
            &json!({"choices": [{"message": message, "finish_reason": finish}]}),
        )
        .unwrap()
        .stop
    };
    let rows = [
        (json!("stop"), false, StopReason::End),
        (json!("stop"), true, StopReason::Calls),
        (json!("tool_calls"), true, StopReason::Calls),
        (json!("tool_calls"), false, StopReason::End),
        (json!(""), true, StopReason::Calls),
        (Value::Null, false, StopReason::End),
        (json!("length"), true, StopReason::Length),
        (json!("content_filter"), false, StopReason::Filter),
        (json!("eos"), false, StopReason::Other("eos".to_owned())),
    ];
    for (finish, calls, expect) in rows {
        assert_eq!(chat(finish.clone(), calls), expect, "{finish} {calls}");
    }
    let responses = |status: &str, reason: &str| {
        let body =
            json!({"status": status, "incomplete_details": {"reason": reason}, "output": []});
        read(Dialect::OpenAiResponses, &body).unwrap().stop
    };
    assert_eq!(
        responses("incomplete", "max_output_tokens"),
        StopReason::Length
    );
    assert_eq!(
        responses("incomplete", "content_filter"),
        StopReason::Filter
    );
    assert_eq!(
        responses("incomplete", "else"),
        StopReason::Other("else".to_owned())
    );
    assert_eq!(
        responses("queued", ""),
        StopReason::Other("queued".to_owned())
    );
    assert_eq!(responses("completed", ""), StopReason::End);
}

#[test]
fn deviations_of_providers_that_speak_chat_are_read() {
    let body = json!({"choices": [
        {"index": 1, "message": {"content": "no"}},
        {"index": 0, "message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hi"}],
            "audio": {"id": "au", "data": "x"}, "function_call": {"name": "", "arguments": ""},
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}, {"function": {"name": "g"}},
                {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select"}}]}}]});
    let reply = read(Dialect::OpenAiChat, &body).unwrap();
    let calls: Vec<_> = reply
        .turn
        .calls()
        .map(|call| {
            (
                call.id.as_str(),
                call.name.as_str(),
                call.arguments.as_str(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("a", "f", "{\"x\":1}"),
            ("call-1", "g", "{}"),
            ("c", "sql", "select")
        ]
    );
    assert_eq!(reply.turn.calls().last().unwrap().kind, CallKind::Freeform);
    assert_eq!(reply.turn.text(), "hi");
    assert!(
        matches!(&reply.turn.items[1], TurnItem::Thinking(text) if text == "hm"),
        "{:?}",
        reply.turn.items
    );
    assert!(matches!(&reply.turn.items[0], TurnItem::Unknown { kind, .. } if kind == "audio"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn errors_of_each_shape_are_the_providers_and_anything_else_is_malformed() {
    let chat = Dialect::OpenAiChat;
    let responses = Dialect::OpenAiResponses;
    let rows = [
        (
            chat,
            json!({"error": {"message": "m", "type": "t"}}),
            "the provider reports t: m",
        ),
        (
            chat,
            json!({"error": "m"}),
            "the provider reports an error: m",
        ),
        (
            chat,
            json!({"object": "error", "message": "m", "type": "t", "code": "3"}),
            "the provider reports t: m",
        ),
        (
            chat,
            json!({"detail": "m"}),
            "the provider reports an error: {\"detail\":\"m\"}",
        ),
        (
            chat,
            json!({"choices": [{"message": {"content": ""}, "error": {"code": 502, "message": "m"}}]}),
            "the provider reports 502: m",
        ),
        (
            responses,
            json!({"error": {"message": "m", "code": "c"}}),
            "the provider reports c: m",
        ),
        (
            responses,
            json!({"status": "failed", "output": []}),
            "the provider reports failed: the response failed, and no reason is given",
        ),
    ];
    for (dialect, body, expect) in rows {
        let error = read(dialect, &body).unwrap_err();
        assert!(matches!(error, WireError::Provider { .. }), "{body}");
        assert_eq!(error.to_string(), expect);
    }
    let long = read(chat, &json!({"error": {"message": "x".repeat(5000)}}))
        .unwrap_err()
        .to_string();
    assert!(long.len() < 300, "{long}");
    for (dialect, body) in [
        (chat, "{}"),
        (chat, "[]"),
        (chat, "<html>"),
        (chat, r#"{"choices":[]}"#),
        (responses, "{}"),
        (responses, "5"),
        (
            responses,
            r#"{"output":[{"type":"function_call","name":"f"}]}"#,
        ),
    ] {
        let error = dialect
            .read(body.as_bytes(), ReplyLimits::default())
            .unwrap_err();
        assert!(
            matches!(error, WireError::Malformed { .. }),
            "{body}: {error}"
        );
    }
    let many: Vec<Value> = (0..600).map(|id| json!({"type": "function_call", "call_id": id.to_string(), "name": "f", "arguments": "{}"})).collect();
    let error = read(responses, &json!({"status": "completed", "output": many})).unwrap_err();
    assert!(matches!(error, WireError::TooManyCalls(512)), "{error}");
    let error = chat
        .read(&vec![b' '; 33 << 20], ReplyLimits::default())
        .unwrap_err();
    assert!(
        matches!(
            error,
            WireError::TooLarge {
                what: "a reply",
                ..
            }
        ),
        "{error}"
    );
}

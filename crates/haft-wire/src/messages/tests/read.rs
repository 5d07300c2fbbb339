//! Complete replies.

use crate::dialect::Dialect;
use crate::error::WireError;
use crate::limits::ReplyLimits;
use crate::reply::{Reply, StopReason, TurnItem};

fn read(content: &str, stop: &str) -> Result<Reply, WireError> {
    let body = format!(
        r#"{{"type":"message","id":"msg_1","model":"m","content":{content},"stop_reason":"{stop}","usage":{{"input_tokens":3,"cache_creation_input_tokens":null,"cache_read_input_tokens":4,"output_tokens":5,"output_tokens_details":{{"thinking_tokens":2}}}}}}"#
    );
    Dialect::Anthropic.read(body.as_bytes(), ReplyLimits::default())
}

#[test]
fn blocks_become_items_and_stay_as_they_were() {
    let content = r#"[ {"type":"redacted_thinking","data":"x"}, {"type":"tool_use","id":"1","name":"left_click","toolset_name":"computer","caller":{"type":"direct"},"input":{"coordinate":[1, 2]}}, {"type":"tool_use","id":"2","name":"a","caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"},"input":{}}, {"type":"mcp_tool_use","id":"m","name":"ask","server_name":"s","input":{}}, {"type":"mcp_tool_result","tool_use_id":"m","content":[]}, {"type":"made_later","x":[]} ]"#;
    let reply = read(content, "tool_use").unwrap();
    assert_eq!(reply.turn.raw.get(), content);
    assert_eq!(
        (
            reply.usage.input,
            reply.usage.cached,
            reply.usage.output,
            reply.usage.thinking
        ),
        (7, 4, 5, 2)
    );
    let calls: Vec<_> = reply.turn.calls().collect();
    assert_eq!(
        (calls[0].toolset.as_deref(), calls[0].arguments.as_str()),
        (Some("computer"), r#"{"coordinate":[1, 2]}"#)
    );
    assert!(calls[0].caller.is_none() && calls[1].caller.is_some());
    let kinds: Vec<&str> = reply
        .turn
        .items
        .iter()
        .filter_map(|item| match item {
            TurnItem::Hosted { kind, .. } | TurnItem::Unknown { kind, .. } => Some(kind.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["mcp_tool_use", "mcp_tool_result", "made_later"]);
    assert!(matches!(
        reply.turn.items.last(),
        Some(TurnItem::Unknown { .. })
    ));
}

#[test]
fn a_blank_text_is_left_out_of_what_goes_back() {
    let reply = read(
        r#"[{"type":"text","text":"\n\n"},{"type":"text","text":"a"}]"#,
        "end_turn",
    )
    .unwrap();
    assert_eq!(reply.turn.raw.get(), r#"[{"type":"text","text":"a"}]"#);
    assert_eq!(reply.turn.text(), "a");
}

#[test]
fn reasons_to_stop_are_told_apart() {
    let rows = [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("tool_use", StopReason::Calls),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Filter),
        ("pause_turn", StopReason::Pause),
        ("later", StopReason::Other("later".to_owned())),
    ];
    for (word, expect) in rows {
        assert_eq!(read("[]", word).unwrap().stop, expect);
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    let rows: [(&str, &str); 7] = [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#,
            "the provider reports overloaded_error: Overloaded",
        ),
        (r#"{"error":{}}"#, "the provider reports error: "),
        (
            "<html>",
            "a reply is not what anthropic sends: expected value at line 1 column 1, in <html>",
        ),
        ("{}", "it has no `content`"),
        (r#"{"content":[{"text":"x"}]}"#, "missing field `type`"),
        (
            r#"{"content":[{"type":"tool_use","name":"a"}]}"#,
            "without an `id`",
        ),
        (r#"{"content":{}}"#, "invalid type"),
    ];
    for (body, expect) in rows {
        let error = Dialect::Anthropic
            .read(body.as_bytes(), ReplyLimits::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expect), "{error}");
    }
    let limits = ReplyLimits {
        calls: 1,
        reply: 200,
        ..ReplyLimits::default()
    };
    let two = r#"{"content":[{"type":"tool_use","id":"1","name":"a"},{"type":"tool_use","id":"2","name":"a"}]}"#;
    assert!(matches!(
        Dialect::Anthropic.read(two.as_bytes(), limits),
        Err(WireError::TooManyCalls(1))
    ));
    assert!(matches!(
        Dialect::Anthropic.read(&[b' '; 201], limits),
        Err(WireError::TooLarge { limit: 200, .. })
    ));
}

//! Streams: in pieces of any size, with repeated events, without an end, and over limits.

use haft_wire::{Delta, Dialect, ReplyLimits, StopReason, WireError};
use proptest::prelude::*;

/// Reads a stream in pieces of these sizes, repeated: the reply or the error as text, and the merged deltas.
pub(crate) fn cut(dialect: Dialect, sse: &str, sizes: &[usize]) -> (String, Vec<Delta>) {
    let mut reader = dialect.reader(ReplyLimits::default());
    let mut deltas = Vec::new();
    let mut rest = sse.as_bytes();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, more) = rest.split_at((*size).min(rest.len()));
        if let Err(error) = reader.push(piece, &mut deltas) {
            return (error.to_string(), deltas);
        }
        rest = more;
    }
    match reader.finish() {
        Ok(reply) => (format!("{reply:?}"), deltas),
        Err(error) => (error.to_string(), deltas),
    }
}

const CHAT: &str = concat!(
    ": a comment\r\n\r\n",
    "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm \"}},{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"käse \\u00fc\\n\"}}],\"obfuscation\":\"x\"}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"p\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\"},\"extra_content\":{\"s\":1}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"😀\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\n",
    "data: [DONE]\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"output\":[]}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"custom_tool_call\",\"id\":\"i\",\"call_id\":\"c\",\"name\":\"f\",\"input\":\"\"}}\n\n",
    "data: {\"type\":\"response.custom_tool_call_input.delta\",\"sequence_number\":2,\"output_index\":0,\"delta\":\"a\\n\"}\n\n",
    "data: {\"type\":\"response.custom_tool_call_input.delta\",\"sequence_number\":3,\"output_index\":0,\"delta\":\"b😀\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"sequence_number\":4,\"output_index\":0,\"item\":{\"type\":\"custom_tool_call\",\"id\":\"i\",\"call_id\":\"c\",\"name\":\"f\",\"input\":\"a\\nb😀\"}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"sequence_number\":5,\"output_index\":1,\"item\":{\"type\":\"odd\",\"x\":[1.50]}}\n\n",
    "data: {\"type\":\"response.completed\",\"sequence_number\":6,\"response\":{\"id\":\"r\",\"model\":\"m\",\"status\":\"completed\",\"output\":[]}}\n\n",
);

#[test]
fn a_stream_of_chat_is_put_together() {
    let mut reader = Dialect::OpenAiChat.reader(ReplyLimits::default());
    let mut deltas = Vec::new();
    reader.push(CHAT.as_bytes(), &mut deltas).unwrap();
    assert!(reader.is_whole());
    let reply = reader.finish().unwrap();
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
    assert_eq!(calls, [("a", "f", "{\"p\":\"😀\"}"), ("b", "g", "{}")]);
    assert_eq!(reply.turn.text(), "käse ü\n");
    assert_eq!(
        (reply.usage.input, reply.usage.cached, reply.usage.output),
        (7, 3, 9)
    );
    assert_eq!(
        (reply.stop, reply.id.as_deref(), reply.model.as_deref()),
        (StopReason::Calls, Some("c1"), Some("m"))
    );
    let raw = r#"{"role":"assistant","content":"käse ü\n","reasoning":"hm ","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"p\":\"😀\"}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"},"extra_content":{"s":1}}]}"#;
    assert_eq!(reply.turn.raw.get(), raw);
    let expect = [
        Delta::Thinking("hm ".to_owned()),
        Delta::Text("käse ü\n".to_owned()),
        Delta::Call {
            index: 0,
            name: "f".to_owned(),
        },
        Delta::Arguments {
            index: 0,
            text: "{\"p\":".to_owned(),
        },
        Delta::Call {
            index: 1,
            name: "g".to_owned(),
        },
        Delta::Arguments {
            index: 0,
            text: "\"😀\"}".to_owned(),
        },
    ];
    assert_eq!(deltas, expect);
}

#[test]
fn a_stream_of_responses_whose_end_holds_nothing_is_put_together_of_what_was_done() {
    let mut reader = Dialect::OpenAiResponses.reader(ReplyLimits::default());
    let mut deltas = Vec::new();
    reader.push(RESPONSES.as_bytes(), &mut deltas).unwrap();
    let reply = reader.finish().unwrap();
    let call = reply.turn.calls().next().unwrap();
    assert_eq!(
        (
            call.id.as_str(),
            call.item.as_deref(),
            call.arguments.as_str()
        ),
        ("c", Some("i"), "a\nb😀")
    );
    assert!(
        reply
            .turn
            .raw
            .get()
            .ends_with(r#",{"type":"odd","x":[1.50]}]"#),
        "{}",
        reply.turn.raw
    );
    assert_eq!(deltas.len(), 3);
}

#[test]
fn events_that_come_twice_change_nothing() {
    let (whole, deltas) = cut(Dialect::OpenAiResponses, RESPONSES, &[1000]);
    let twice: String = RESPONSES
        .split_inclusive("\n\n")
        .flat_map(|event| [event, event])
        .collect();
    assert_eq!(
        cut(Dialect::OpenAiResponses, &twice, &[1000]),
        (whole.clone(), deltas.clone())
    );
    // The events from the third one on are repeated, as a resumed stream may do.
    let (begin, rest) = RESPONSES.split_at(
        RESPONSES
            .find("data: {\"type\":\"response.output_item.done\"")
            .unwrap(),
    );
    let from = begin
        .find("data: {\"type\":\"response.output_item.added\"")
        .unwrap();
    let again = format!("{begin}{}{rest}", &begin[from..]);
    assert_eq!(
        cut(Dialect::OpenAiResponses, &again, &[1000]),
        (whole, deltas)
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn calls_are_told_apart_whatever_a_provider_makes_of_their_index() {
    let event = |calls: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n")
    };
    let piece = |head: &str, arguments: &str| {
        format!("{{{head}\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}}}")
    };
    let rows = [
        (
            "the same index for all",
            vec![
                piece("\"index\":0,\"id\":\"a\",", "1"),
                piece("\"index\":0,\"id\":\"b\",", "2"),
            ],
            "a1 b2",
        ),
        (
            "no index",
            vec![
                piece("\"id\":\"a\",", "1"),
                piece("\"id\":\"b\",", "2"),
                piece("", "3"),
            ],
            "a1 b23",
        ),
        (
            "the id in each piece",
            vec![
                piece("\"index\":0,\"id\":\"a\",", "1"),
                piece("\"index\":0,\"id\":\"a\",", "2"),
            ],
            "a12",
        ),
        (
            "an empty id in later pieces",
            vec![
                piece("\"index\":0,\"id\":\"a\",", "1"),
                piece("\"index\":0,\"id\":\"\",", "2"),
            ],
            "a12",
        ),
        (
            "no id at all",
            vec![piece("\"index\":0,", "1"), piece("\"index\":1,", "2")],
            "call-01 call-12",
        ),
        (
            "backwards",
            vec![
                piece("\"index\":1,\"id\":\"b\",", "1"),
                piece("\"index\":0,\"id\":\"a\",", "2"),
                piece("\"index\":1,", "3"),
            ],
            "b13 a2",
        ),
    ];
    for (name, pieces, expect) in rows {
        let apart: String = pieces.iter().map(|piece| event(piece)).collect();
        for sse in [apart, event(&pieces.join(","))] {
            let mut reader = Dialect::OpenAiChat.reader(ReplyLimits::default());
            let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
            reader
                .push(format!("{sse}{end}").as_bytes(), &mut Vec::new())
                .unwrap();
            let reply = reader.finish().unwrap();
            let calls: Vec<String> = reply
                .turn
                .calls()
                .map(|call| format!("{}{}", call.id, call.arguments))
                .collect();
            assert_eq!(calls.join(" "), expect, "{name}");
            assert_eq!(reply.stop, StopReason::Calls);
        }
    }
}

#[test]
fn members_that_haft_does_not_read_come_together_as_they_were_cut() {
    let deltas = [
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":"f"}],"channel":"x"}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"format":"f","signature":"s"}],"channel":"x"}"#,
        r#"{"executed_tools":[{"index":0,"type":"search","arguments":"{}","output":""}]}"#,
        r#"{"executed_tools":[{"index":0,"type":"search","output":"found"}],"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"c"}]}"#,
    ];
    let sse: String = deltas
        .iter()
        .flat_map(|delta| ["data: {\"choices\":[{\"delta\":", delta, "}]}\n\n"])
        .collect();
    let mut reader = Dialect::OpenAiChat.reader(ReplyLimits::default());
    reader
        .push(format!("{sse}data: [DONE]\n\n").as_bytes(), &mut Vec::new())
        .unwrap();
    let reply = reader.finish().unwrap();
    let raw: serde_json::Value = serde_json::from_str(reply.turn.raw.get()).unwrap();
    let expect = serde_json::json!({"role": "assistant", "channel": "x",
        "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "c"}],
        "reasoning_details": [{"type": "reasoning.text", "text": "ab", "index": 0, "format": "f", "signature": "s"}],
        "executed_tools": [{"index": 0, "type": "search", "arguments": "{}", "output": "found"}]});
    assert_eq!(raw, expect);
    let kinds: Vec<String> = reply
        .turn
        .items
        .iter()
        .map(|item| {
            format!("{item:?}")
                .split(['(', ' '])
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, ["Hosted", "Thinking", "Text"]);
}

#[test]
fn a_stream_without_its_end_is_cut_whatever_it_held() {
    for (dialect, sse) in [
        (Dialect::OpenAiChat, CHAT),
        (Dialect::OpenAiResponses, RESPONSES),
    ] {
        let events: Vec<&str> = sse.split_inclusive("\n\n").collect();
        // Chat is complete once it gives the stop reason: two events before the end.
        let whole = if dialect == Dialect::OpenAiChat {
            events.len() - 2
        } else {
            events.len()
        };
        for most in 0..whole {
            let part = events[..most].concat();
            let mut reader = dialect.reader(ReplyLimits::default());
            reader.push(part.as_bytes(), &mut Vec::new()).unwrap();
            assert!(!reader.is_whole());
            let error = reader.finish().unwrap_err();
            assert!(
                matches!(error, WireError::Cut(bytes) if bytes == part.len()),
                "{dialect} {most}: {error}"
            );
        }
    }
    // An end marker alone is not a reply.
    let mut reader = Dialect::OpenAiChat.reader(ReplyLimits::default());
    reader.push(b"data: [DONE]\n\n", &mut Vec::new()).unwrap();
    assert!(matches!(reader.finish(), Err(WireError::Cut(_))));
}

#[test]
fn errors_in_a_stream_end_it() {
    let rows = [
        (
            Dialect::OpenAiChat,
            r#"{"error":{"message":"m","type":"t","code":"c"}}"#,
            "t: m",
        ),
        (
            Dialect::OpenAiChat,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"m"}}]}"#,
            "502: m",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"error","code":"c","message":"m","param":null,"sequence_number":1}"#,
            "c: m",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"error","error":{"type":"t","code":"c","message":"m"}}"#,
            "t: m",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"error":{"code":"c","message":"m"}}"#,
            "c: m",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}"#,
            "server_error: m",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#,
            "failed: the response failed, and no reason is given",
        ),
    ];
    for (dialect, event, expect) in rows {
        let mut reader = dialect.reader(ReplyLimits::default());
        let error = reader
            .push(
                format!("event: error\ndata: {event}\n\n").as_bytes(),
                &mut Vec::new(),
            )
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the provider reports {expect}"),
            "{event}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn limits_hold_and_what_is_no_json_is_quoted() {
    let limits = ReplyLimits {
        reply: 4096,
        event: 512,
        calls: 2,
    };
    let call = |id: usize| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{id},\"id\":\"c{id}\",\"function\":{{\"name\":\"f\"}}}}]}}}}]}}\n\n"
        )
    };
    let items: Vec<String> = (0..3)
        .map(|id| {
            format!(r#"{{"type":"function_call","call_id":"c{id}","name":"f","arguments":"{{}}"}}"#)
        })
        .collect();
    let completed = format!(
        "data: {{\"type\":\"response.completed\",\"response\":{{\"status\":\"completed\",\"output\":[{}]}}}}\n\n",
        items.join(",")
    );
    let rows = [
        (
            Dialect::OpenAiChat,
            ":\n".repeat(3000),
            "over the limit of 4096 bytes for a reply",
        ),
        (
            Dialect::OpenAiChat,
            format!("data: {}", "x".repeat(600)),
            "over the limit of 512 bytes for an event",
        ),
        (
            Dialect::OpenAiChat,
            (0..3).map(call).collect(),
            "more than 2 tool calls",
        ),
        (
            Dialect::OpenAiResponses,
            completed,
            "more than 2 tool calls",
        ),
        (
            Dialect::OpenAiResponses,
            format!("data: {}\n", "x".repeat(600)),
            "over the limit of 512 bytes for an event",
        ),
        (
            Dialect::OpenAiResponses,
            "data: <html>\n\n".to_owned(),
            "it begins with \"<html>\"",
        ),
        (
            Dialect::OpenAiChat,
            "data: 5\n\n".to_owned(),
            "an event is not what openai-chat sends",
        ),
        (
            Dialect::OpenAiResponses,
            "data: {\"type\":\"response.completed\"}\n\n".to_owned(),
            "missing field `response`",
        ),
    ];
    for (dialect, sse, expect) in rows {
        let error = dialect
            .reader(limits)
            .push(sse.as_bytes(), &mut Vec::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expect), "{error}");
    }
    let broken = [
        b"data: {\"choices\":[{\"delta\":{\"content\":\"".as_slice(),
        &[0xff, 0xfe],
        b"\"}}]}\n\n",
    ]
    .concat();
    let error = Dialect::OpenAiChat
        .reader(limits)
        .push(&broken, &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("not UTF-8"), "{error}");
}

proptest! {
    #[test]
    fn any_pieces_give_the_same(sizes in proptest::collection::vec(1_usize..40, 1..20)) {
        for (dialect, sse) in [(Dialect::OpenAiChat, CHAT), (Dialect::OpenAiResponses, RESPONSES)] {
            let windows = sse.replace('\n', "\r\n").replace("\r\r\n", "\r\n");
            let whole = cut(dialect, sse, &[sse.len()]);
            prop_assert_eq!(&cut(dialect, sse, &sizes), &whole);
            prop_assert_eq!(&cut(dialect, &windows, &sizes), &whole);
        }
    }

    #[test]
    fn nothing_that_comes_stops_a_reader_but_an_error(noise in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..900) {
        for (dialect, sse) in [(Dialect::OpenAiChat, CHAT), (Dialect::OpenAiResponses, RESPONSES)] {
            let (begin, rest) = sse.as_bytes().split_at(at.min(sse.len()));
            let mut reader = dialect.reader(ReplyLimits::default());
            let pushed = reader.push(&[begin, &noise, rest].concat(), &mut Vec::new());
            let read = pushed.and_then(|()| reader.finish());
            prop_assert!(read.is_ok() || !noise.is_empty(), "{:?}", read);
        }
    }
}

#[test]
fn a_call_that_the_last_event_of_responses_has_otherwise_refuses_the_reply() {
    let item = |id: &str, name: &str, arguments: &str| {
        format!(
            r#"{{"type":"function_call","id":"i","status":"completed","call_id":"{id}","name":"{name}","arguments":"{arguments}"}}"#
        )
    };
    let shown = item("c", "f", r#"{\"a\":1}"#);
    let rows = [
        (vec![shown.clone()], true),
        (vec![item("c", "f", r#"{ \"a\" : 1 }"#)], true),
        // One that no event announced may have been missed.
        (vec![shown.clone(), item("d", "g", "{}")], true),
        (vec![shown.replace("completed", "in_progress")], true),
        (vec![item("c", "f", r#"{\"a\":2}"#)], false),
        (vec![item("c", "g", r#"{\"a\":1}"#)], false),
        (vec![item("d", "f", r#"{\"a\":1}"#)], false),
        (vec![r#"{"type":"message","content":[]}"#.to_owned()], false),
    ];
    for (last, fits) in rows {
        let done = format!(
            "data: {{\"type\":\"response.output_item.done\",\"sequence_number\":1,\"output_index\":0,\"item\":{shown}}}\n\n"
        );
        let completed = format!(
            "data: {{\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{{\"status\":\"completed\",\"output\":[{}]}}}}\n\n",
            last.join(",")
        );
        let mut reader = Dialect::OpenAiResponses.reader(ReplyLimits::default());
        reader.push(done.as_bytes(), &mut Vec::new()).unwrap();
        let read = reader.push(completed.as_bytes(), &mut Vec::new());
        match read {
            Ok(()) => assert!(fits, "{completed}"),
            Err(error) => {
                assert!(!fits, "{error}: {completed}");
                assert!(
                    error.to_string().contains("otherwise about call c"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn calls_of_responses_are_found_whatever_positions_a_server_gives() {
    let item = |id: &str, name: &str| {
        format!(
            r#"{{"type":"function_call","id":"i{id}","call_id":"{id}","name":"{name}","arguments":"{{}}"}}"#
        )
    };
    let event = |kind: &str, place: &str, item: &str| {
        format!("data: {{\"type\":\"response.output_item.{kind}\",{place}\"item\":{item}}}\n\n")
    };
    let end = |output: &str, kind: &str| {
        format!(
            "data: {{\"type\":\"response.{kind}\",\"response\":{{\"status\":\"{kind}\",\"output\":[{output}]}}}}\n\n"
        )
    };
    let (a, b) = (item("a", "f"), item("b", "g"));
    let zero = "\"output_index\":0,";
    let done = |place: &str| event("done", place, &a) + &event("done", place, &b);
    let started = event("added", zero, &a) + &event("done", zero, &b);
    let rows = [
        (
            "one position for all",
            done(zero) + &end("", "completed"),
            "a f, b g",
        ),
        ("no position", done("") + &end("", "completed"), "a f, b g"),
        (
            "position null",
            done("\"output_index\":null,") + &end("", "completed"),
            "a f, b g",
        ),
        (
            "each twice",
            done(zero) + &done(zero) + &end("", "completed"),
            "a f, b g",
        ),
        (
            "only in the last event",
            end(&format!("{a},{b}"), "completed"),
            "a f, b g",
        ),
        (
            "a start alone, and the last event",
            started.clone() + &end(&format!("{a},{b}"), "completed"),
            "a f, b g",
        ),
        (
            "a start alone",
            started.clone() + &end("", "completed"),
            "a start and no end for call a",
        ),
        (
            "a start alone, at the limit",
            started + &end("", "incomplete"),
            "b g",
        ),
    ];
    for (name, sse, expect) in rows {
        let mut reader = Dialect::OpenAiResponses.reader(ReplyLimits::default());
        let read = reader.push(sse.as_bytes(), &mut Vec::new());
        let found = match read.and_then(|()| reader.finish()) {
            Ok(reply) => {
                let calls = reply.turn.calls();
                let calls: Vec<String> = calls
                    .map(|call| format!("{} {}", call.id, call.name))
                    .collect();
                calls.join(", ")
            }
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expect), "{name}: {found}");
    }
}

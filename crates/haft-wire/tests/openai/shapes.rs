//! Streams of Chat as servers other than OpenAI's send them: the calls are found in each, in pieces of any size, or the reply is refused.

use haft_wire::{Dialect, ReplyLimits};
use serde_json::{Value, json};

use crate::streamed::cut;

pub(crate) const A: &str = r#"{"path":"a"}"#;
pub(crate) const B: &str = r#"{"path":"b"}"#;

/// A piece of a call. A `-` is a member that is not sent; `null` is sent as such.
pub(crate) fn call(index: &str, id: &str, name: &str, arguments: &str) -> Value {
    let mut piece = json!({"type": "function", "function": {}});
    let value = |word: &str| match word {
        "null" => Value::Null,
        word => json!(word),
    };
    for (at, word) in [(0, index), (1, id), (2, name), (3, arguments)] {
        let place = match (at, word) {
            (_, "-") => continue,
            (0, _) => &mut piece["index"],
            (1, _) => &mut piece["id"],
            (2, _) => &mut piece["function"]["name"],
            _ => &mut piece["function"]["arguments"],
        };
        *place = match at {
            0 => serde_json::from_str(word).unwrap(),
            _ => value(word),
        };
    }
    piece
}

/// The events of a stream with these deltas.
fn stream(deltas: &[Value]) -> String {
    let mut sse = String::new();
    let mut event = |choice: Value| {
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "choices": [choice]});
        sse.extend(["data: ", &chunk.to_string(), "\n\n"]);
    };
    for delta in deltas {
        if delta.get("message").is_some() {
            event(delta.clone());
        } else {
            event(json!({"index": 0, "delta": delta, "finish_reason": null}));
        }
    }
    event(json!({"index": 0, "delta": {}, "finish_reason": "stop"}));
    sse + "data: [DONE]\n\n"
}

/// The calls of a stream as `id name arguments`, joined by ` | `, or the error.
fn calls(sse: &str) -> String {
    let mut reader = Dialect::OpenAiChat.reader(ReplyLimits::default());
    let read = reader.push(sse.as_bytes(), &mut Vec::new());
    match read.and_then(|()| reader.finish()) {
        Ok(reply) => {
            let all = reply.turn.calls();
            let all: Vec<String> = all
                .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
                .collect();
            let raw: Value = serde_json::from_str(reply.turn.raw.get()).unwrap();
            let echoed = raw["tool_calls"].as_array().map_or(0, Vec::len);
            assert_eq!(echoed, all.len(), "what is sent back has the same calls");
            all.join(" | ")
        }
        Err(error) => format!("refused: {error}"),
    }
}

pub(crate) fn check(rows: &[(&str, Vec<Value>, &str)]) {
    for (name, deltas, expect) in rows {
        let sse = stream(deltas);
        let found = calls(&sse);
        let fits = match expect.strip_prefix("refused: ") {
            Some(part) => found.starts_with("refused: ") && found.contains(part),
            None => found == *expect,
        };
        assert!(fits, "{name}\n  found {found}\n expect {expect}");
        let whole = cut(Dialect::OpenAiChat, &sse, &[sse.len()]);
        for at in 1..sse.len() {
            let cut = cut(Dialect::OpenAiChat, &sse, &[at, sse.len()]);
            assert_eq!(cut, whole, "{name}, cut at {at}");
        }
        for size in [1, 2, 3, 7] {
            assert_eq!(cut(Dialect::OpenAiChat, &sse, &[size]), whole, "{name}");
        }
    }
}

/// A delta with these pieces of calls.
pub(crate) fn event(pieces: &[Value]) -> Value {
    json!({"role": "assistant", "tool_calls": pieces})
}

/// One event for each piece.
pub(crate) fn each(pieces: &[(&str, &str, &str, &str)]) -> Vec<Value> {
    let all = pieces.iter();
    all.map(|(index, id, name, arguments)| event(&[call(index, id, name, arguments)]))
        .collect()
}

pub(crate) const TWO: &str = r#"call-0 f {"path":"a"} | call-1 f {"path":"b"}"#;
pub(crate) const C1: &str = r#"c1 f {"path":"a"}"#;
pub(crate) const C2: &str = r#"c1 f {"path":"a"} | c2 f {"path":"b"}"#;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn calls_are_found_whatever_ids_and_indices_a_server_gives() {
    let rows = [
        (
            "normal",
            each(&[
                ("0", "c1", "f", ""),
                ("0", "-", "-", A),
                ("1", "c2", "f", ""),
                ("1", "-", "-", B),
            ]),
            C2,
        ),
        (
            "empty id and name",
            each(&[
                ("0", "c1", "f", ""),
                ("0", "", "", &A[..5]),
                ("0", "", "", &A[5..]),
            ]),
            C1,
        ),
        (
            "blank id",
            each(&[("0", "c1", "f", ""), ("0", " ", "-", A)]),
            C1,
        ),
        (
            "null members",
            each(&[
                ("0", "c1", "f", "null"),
                ("0", "null", "null", A),
                ("0", "null", "null", "null"),
            ]),
            C1,
        ),
        (
            "one index",
            each(&[("0", "c1", "f", A), ("0", "c2", "f", B)]),
            C2,
        ),
        (
            "one index, in pieces",
            each(&[
                ("0", "c1", "f", ""),
                ("0", "-", "-", A),
                ("0", "c2", "f", ""),
                ("0", "-", "-", B),
            ]),
            C2,
        ),
        (
            "one index, no ids",
            each(&[("0", "-", "f", A), ("0", "-", "f", B)]),
            TWO,
        ),
        (
            "one index, no ids, in pieces",
            each(&[
                ("0", "-", "f", ""),
                ("0", "-", "-", A),
                ("0", "-", "f", ""),
                ("0", "-", "-", B),
            ]),
            TWO,
        ),
        (
            "one index, no ids, one event",
            vec![event(&[call("0", "-", "f", A), call("0", "-", "f", B)])],
            TWO,
        ),
        (
            "one index, ids `null`",
            each(&[("0", "null", "f", A), ("0", "null", "f", B)]),
            TWO,
        ),
        (
            "no index, no ids",
            each(&[("-", "-", "f", A), ("-", "-", "f", B)]),
            TWO,
        ),
        (
            "index null, no ids",
            each(&[("null", "null", "f", A), ("null", "null", "f", B)]),
            TWO,
        ),
        (
            "no index, in pieces",
            each(&[
                ("-", "c1", "f", ""),
                ("-", "-", "-", &A[..4]),
                ("-", "-", "-", &A[4..]),
                ("-", "c2", "f", ""),
                ("-", "-", "-", B),
            ]),
            C2,
        ),
        (
            "no index, ids in each piece",
            each(&[
                ("-", "c1", "f", &A[..4]),
                ("-", "c2", "f", &B[..4]),
                ("-", "c1", "-", &A[4..]),
                ("-", "c2", "-", &B[4..]),
            ]),
            C2,
        ),
        (
            "index as text",
            each(&[("\"0\"", "c1", "f", A), ("\"1\"", "c2", "f", B)]),
            C2,
        ),
        (
            "index only on tails",
            each(&[("-", "c1", "f", ""), ("0", "-", "-", A)]),
            C1,
        ),
        (
            "head 0, tail 1",
            each(&[
                ("0", "c1", "f", A),
                ("0", "c2", "f", ""),
                ("1", "-", "-", B),
            ]),
            C2,
        ),
        (
            "heads 0 and 1, tails 0",
            each(&[
                ("0", "c1", "f", ""),
                ("0", "-", "-", A),
                ("1", "c2", "f", ""),
                ("0", "-", "-", B),
            ]),
            C2,
        ),
        (
            "id in each piece",
            each(&[("0", "c1", "f", &A[..6]), ("0", "c1", "f", &A[6..])]),
            C1,
        ),
        (
            "name in each piece",
            each(&[
                ("0", "c1", "f", &A[..6]),
                ("0", "-", "f", &A[6..]),
                ("0", "-", "f", ""),
            ]),
            C1,
        ),
        (
            "name in each piece, no ids",
            each(&[
                ("0", "-", "f", &A[..6]),
                ("0", "-", "f", &A[6..]),
                ("0", "-", "f", ""),
            ]),
            r#"call-0 f {"path":"a"}"#,
        ),
        (
            "id after the name",
            each(&[("0", "-", "f", ""), ("0", "c1", "-", A)]),
            C1,
        ),
        (
            "id before the name",
            each(&[
                ("0", "c1", "-", "-"),
                ("0", "-", "f", "-"),
                ("0", "-", "-", A),
            ]),
            C1,
        ),
        (
            "from index 1",
            each(&[("1", "c1", "f", ""), ("1", "-", "-", A)]),
            C1,
        ),
        (
            "a new id in each piece",
            each(&[
                ("0", "c1", "f", &A[..6]),
                ("0", "c9", "-", &A[6..]),
                ("0", "c10", "-", ""),
            ]),
            C1,
        ),
        (
            "one id for all, two indices",
            each(&[("0", "c1", "f", A), ("1", "c1", "f", B)]),
            r#"c1 f {"path":"a"} | c1-1 f {"path":"b"}"#,
        ),
        (
            "one id and index for all",
            each(&[("0", "c1", "f", A), ("0", "c1", "g", B)]),
            r#"c1 f {"path":"a"} | c1-1 g {"path":"b"}"#,
        ),
        (
            "id as number",
            each(&[("0", "-", "f", A)])
                .into_iter()
                .map(|mut one| {
                    one["tool_calls"][0]["id"] = json!(7);
                    one
                })
                .collect(),
            r#"7 f {"path":"a"}"#,
        ),
        (
            "interleaved",
            each(&[
                ("0", "c1", "f", ""),
                ("1", "c2", "f", ""),
                ("0", "-", "-", &A[..4]),
                ("1", "-", "-", &B[..4]),
                ("0", "-", "-", &A[4..]),
                ("1", "-", "-", &B[4..]),
            ]),
            C2,
        ),
        (
            "two in one event",
            vec![event(&[call("0", "c1", "f", A), call("1", "c2", "f", B)])],
            C2,
        ),
        (
            "backwards",
            each(&[("1", "c1", "f", A), ("0", "c2", "f", B)]),
            C2,
        ),
    ];
    check(&rows);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_belongs_to_no_call_refuses_the_reply_and_names_it() {
    let big = "9223372036854775808";
    let rows = [
        (
            "arguments before their name",
            each(&[("0", "c1", "-", A), ("0", "-", "f", "")]),
            "refused: arguments, but no call with a name to which they belong for call c1",
        ),
        (
            "a name after arguments that waited for it",
            each(&[
                ("0", "c1", "-", ""),
                ("0", "-", "-", A),
                ("0", "-", "f", ""),
            ]),
            "refused: arguments before a name for call c1",
        ),
        (
            "never a name",
            each(&[("0", "c1", "f", A), ("1", "c2", "", "")]),
            "refused: no name for call c2",
        ),
        (
            "a tail of nothing",
            each(&[("3", "-", "-", A)]),
            "refused: for call of index 3",
        ),
        (
            "a tail of nothing, no index",
            each(&[("-", "-", "-", A)]),
            "refused: for call without id or name",
        ),
        (
            "a tail for two in progress",
            each(&[
                ("0", "c1", "f", ""),
                ("1", "c2", "g", ""),
                ("7", "-", "-", A),
            ]),
            "refused: for call of index 7",
        ),
        (
            "an unknown id at an unknown index",
            each(&[("0", "c1", "f", ""), ("1", "c9", "-", A)]),
            "refused: for call c9",
        ),
        (
            "another name within the arguments",
            each(&[("0", "c1", "f", &A[..6]), ("0", "c1", "g", &A[6..])]),
            "refused: another name before its arguments had ended for call c1",
        ),
        (
            "second arguments",
            each(&[("0", "c1", "f", A), ("0", "-", "-", B)]),
            "refused: more arguments after they had ended for call c1",
        ),
        (
            "heads first, then tails of one index",
            each(&[
                ("0", "c1", "f", ""),
                ("0", "c2", "g", ""),
                ("0", "-", "-", A),
                ("0", "-", "-", B),
            ]),
            "refused: more arguments after they had ended for call c2",
        ),
        (
            "old and new format differ",
            vec![
                json!({"tool_calls": [call("0", "c1", "f", A)], "function_call": {"name": "g", "arguments": A}}),
            ],
            "refused: two accounts, which differ for call g",
        ),
        (
            "the message differs from the deltas",
            vec![
                event(&[call("0", "c1", "f", A)]),
                json!({"index": 0, "message": {"tool_calls": [call("-", "c1", "f", B)]}}),
            ],
            "refused: two accounts, which differ for call c1",
        ),
        (
            "calls as texts",
            vec![json!({"tool_calls": ["f"]})],
            "refused: is not what openai-chat sends",
        ),
        (
            "too many",
            vec![event(
                &(0..10_000)
                    .map(|at| call(&at.to_string(), "-", "f", "-"))
                    .collect::<Vec<_>>(),
            )],
            "refused: more than 512 tool calls",
        ),
        (
            "indices that are none",
            each(&[
                (big, "c1", "f", A),
                ("-1", "c2", "f", B),
                ("1.5", "c3", "f", A),
                ("99999999999999999999", "c4", "f", B),
            ]),
            r#"c1 f {"path":"a"} | c2 f {"path":"b"} | c3 f {"path":"a"} | c4 f {"path":"b"}"#,
        ),
    ];
    let (mut cheap, mut dear) = (Vec::new(), Vec::new());
    for row in rows {
        if row.0 == "too many" {
            dear.push(row);
        } else {
            cheap.push(row);
        }
    }
    check(&cheap);
    for (name, deltas, expect) in dear {
        assert!(
            calls(&stream(&deltas)).contains(&expect["refused: ".len()..]),
            "{name}"
        );
    }
    let index = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":NaN}]}}]}\n\n";
    assert!(calls(index).contains("is not what openai-chat sends"));
}

#[test]
fn freeform_calls_are_never_merged() {
    let sql = |id: &str, name: &str, input: &str| {
        let mut piece = json!({"index": 0, "type": "custom", "custom": {"input": input}});
        if !id.is_empty() {
            piece["id"] = json!(id);
        }
        if !name.is_empty() {
            piece["custom"]["name"] = json!(name);
        }
        event(&[piece])
    };
    let rows = [
        (
            "in pieces",
            vec![
                sql("c1", "sql", "{}"),
                sql("", "", "{}"),
                sql("c1", "sql", " "),
            ],
            "c1 sql {}{} ",
        ),
        (
            "two with ids",
            vec![
                sql("c1", "sql", "a"),
                sql("c2", "sql", "b"),
                sql("", "", "c"),
            ],
            "c1 sql a | c2 sql bc",
        ),
        (
            "two without ids",
            vec![sql("", "sql", "a"), sql("", "sql", "b")],
            "refused: another name before its arguments had ended for call sql",
        ),
    ];
    check(&rows);
}

#[test]
fn a_whole_reply_with_one_id_for_all_or_the_old_format_goes_back_with_ids_of_its_own() {
    let rows = [
        (
            json!({"tool_calls": [call("-", "x", "f", A), call("-", "x", "g", A), call("-", "x-1", "h", A)]}),
            "x f, x-1 g, x-1-2 h",
        ),
        (
            json!({"content": "t", "function_call": {"name": "f", "arguments": A}}),
            "call-0 f",
        ),
    ];
    for (message, expect) in rows {
        let body = json!({"choices": [{"message": message}]}).to_string();
        let read = Dialect::OpenAiChat.read(body.as_bytes(), ReplyLimits::default());
        let turn = read.unwrap().turn;
        let raw: Value = serde_json::from_str(turn.raw.get()).unwrap();
        let echoed = raw["tool_calls"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let echoed: Vec<String> = echoed
            .map(|one| text(&one["id"]) + " " + &text(&one["function"]["name"]))
            .collect();
        let calls: Vec<String> = turn
            .calls()
            .map(|call| format!("{} {}", call.id, call.name))
            .collect();
        assert_eq!(calls.join(", "), expect);
        assert_eq!(echoed, calls);
    }
}

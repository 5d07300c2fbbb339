//! Names and arguments in streams of Chat as servers other than OpenAI's send them: in pieces, again, as objects, in older formats.

use serde_json::{Value, json};

use crate::shapes::{A, B, C1, C2, TWO, call, check, each, event};

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn calls_are_found_whatever_a_server_makes_of_names_and_arguments() {
    let mut object = call("0", "c1", "f", "-");
    object["function"]["arguments"] = json!({"path": "a"});
    let flat = json!({"index": 0, "id": "c1", "type": "function", "name": "f", "arguments": {"path": "a"}});
    let old = |name: &str, arguments: &str| json!({"function_call": {"name": name, "arguments": arguments}});
    let message = |calls: &[Value]| json!({"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "", "tool_calls": calls}});
    let whole = call("-", "c1", "f", A);
    let rows = [
        (
            "name in pieces",
            each(&[
                ("0", "c1", "read_", "-"),
                ("0", "-", "file", "-"),
                ("0", "-", "-", A),
            ]),
            r#"c1 read_file {"path":"a"}"#,
        ),
        (
            "name in growing pieces",
            each(&[
                ("0", "c1", "read_", "-"),
                ("0", "c1", "read_file", "-"),
                ("0", "-", "-", A),
            ]),
            r#"c1 read_file {"path":"a"}"#,
        ),
        (
            "two without arguments",
            each(&[("0", "c1", "f", ""), ("0", "c2", "g", "")]),
            "c1 f {} | c2 g {}",
        ),
        (
            "two without arguments and ids, one event",
            vec![event(&[call("-", "-", "f", "-"), call("-", "-", "g", "-")])],
            "call-0 f {} | call-1 g {}",
        ),
        (
            "arguments `null`",
            each(&[("0", "c1", "f", " null")]),
            "c1 f {}",
        ),
        ("arguments as an object", vec![event(&[object.clone()])], C1),
        (
            "arguments as JSON in JSON",
            each(&[("0", "c1", "f", &json!(A).to_string())]),
            C1,
        ),
        (
            "arguments as JSON in JSON, twice, no ids",
            each(&[
                ("0", "-", "f", &json!(A).to_string()),
                ("0", "-", "f", &json!(B).to_string()),
            ]),
            TWO,
        ),
        (
            "arguments as an object, again",
            vec![event(&[object.clone()]), event(&[object])],
            C1,
        ),
        ("no function around them", vec![event(&[flat])], C1),
        (
            "empty object first",
            each(&[
                ("0", "c1", "f", "{}"),
                ("0", "-", "-", &A[..6]),
                ("0", "-", "-", &A[6..]),
            ]),
            C1,
        ),
        (
            "empty object first, with the id",
            each(&[("0", "c1", "f", "{}"), ("0", "c1", "f", A)]),
            C1,
        ),
        (
            "everything so far in each piece",
            each(&[
                ("0", "c1", "f", &A[..4]),
                ("0", "c1", "f", &A[..8]),
                ("0", "c1", "f", A),
            ]),
            C1,
        ),
        (
            "whole call again",
            each(&[
                ("0", "c1", "f", &A[..6]),
                ("0", "-", "-", &A[6..]),
                ("0", "c1", "f", A),
            ]),
            C1,
        ),
        (
            "whole call again, without its id",
            each(&[
                ("0", "c1", "f", &A[..6]),
                ("0", "-", "-", &A[6..]),
                ("0", "-", "f", A),
            ]),
            C1,
        ),
        (
            "whole call again, no ids at all",
            each(&[
                ("0", "-", "f", &A[..6]),
                ("0", "-", "-", &A[6..]),
                ("0", "-", "f", A),
            ]),
            r#"call-0 f {"path":"a"}"#,
        ),
        (
            "arguments again, without name",
            each(&[
                ("0", "c1", "f", &A[..6]),
                ("0", "-", "-", &A[6..]),
                ("0", "-", "-", A),
            ]),
            C1,
        ),
        (
            "two that say the same, no ids",
            each(&[("0", "-", "f", A), ("0", "-", "f", A)]),
            r#"call-0 f {"path":"a"} | call-1 f {"path":"a"}"#,
        ),
        (
            "both without ids, then both again",
            vec![
                event(&[call("0", "c1", "f", A), call("1", "c2", "f", B)]),
                event(&[call("0", "c1", "f", A), call("1", "c2", "f", B)]),
            ],
            C2,
        ),
        (
            "line feed after the end",
            each(&[("0", "c1", "f", A), ("0", "-", "-", "\n")]),
            C1,
        ),
        (
            "a bracket too many is left to the reader of the arguments",
            each(&[("0", "c1", "f", A), ("0", "-", "-", "}")]),
            r#"c1 f {"path":"a"}}"#,
        ),
        (
            "calls as an object",
            vec![json!({"tool_calls": call("0", "c1", "f", A)})],
            C1,
        ),
        (
            "calls null, members of nothing",
            vec![
                json!({"tool_calls": null}),
                event(&[
                    Value::Null,
                    json!({}),
                    json!({"index": 0}),
                    call("0", "c1", "f", A),
                ]),
                event(&[json!({"index": 4, "function": null})]),
            ],
            C1,
        ),
        (
            "old format",
            vec![
                old("f", ""),
                old("", &A[..6]),
                json!({"function_call": {"arguments": &A[6..]}}),
            ],
            r#"call-0 f {"path":"a"}"#,
        ),
        (
            "old format beside the new",
            vec![json!({"tool_calls": [whole], "function_call": {"name": "f", "arguments": A}})],
            C1,
        ),
        (
            "a message instead of deltas",
            vec![message(&[call("-", "c1", "f", A), call("-", "c2", "f", B)])],
            C2,
        ),
        (
            "a message after the deltas",
            vec![
                event(&[call("0", "c1", "f", A)]),
                message(&[call("-", "c1", "f", A)]),
            ],
            C1,
        ),
    ];
    check(&rows);
}

//! Replies, complete and from events.

use proptest::prelude::*;

use crate::dialect::Dialect;
use crate::error::WireError;
use crate::limits::ReplyLimits;
use crate::reply::{Reply, StopReason, TurnItem};
use crate::stream::Delta;

fn read(body: &str) -> Result<Reply, WireError> {
    Dialect::Gemini.read(body.as_bytes(), ReplyLimits::default())
}

fn candidate(parts: &str, finish: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"finishReason":{finish}}}]}}"#
    )
}

fn streamed(
    stream: &str,
    sizes: impl Iterator<Item = usize>,
) -> Result<(Reply, Vec<Delta>), WireError> {
    let mut reader = Dialect::Gemini.reader(ReplyLimits::default());
    let (mut rest, mut deltas) = (stream.as_bytes(), Vec::new());
    for size in sizes {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        reader.push(piece, &mut deltas)?;
        rest = after;
    }
    reader.push(rest, &mut deltas)?;
    Ok((reader.finish()?, deltas))
}

fn stream(chunks: &[&str]) -> String {
    let all: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\r\n\r\n"))
        .collect();
    all.concat()
}

/// Returns a stream with texts of both kinds, signatures, calls with and without ids, and a call whose arguments arrive in pieces.
fn full() -> String {
    let parts = [
        r#"{"text":"hm ","thought":true}"#,
        r#"{"text":"é🦀","thought":true},{"text":"Te"}"#,
        r#"{"text":""}"#,
        r#"{"text":"xt \u00fc"}"#,
        r#"{"text":"","thoughtSignature":"s1"}"#,
        r#"{"text":"more"}"#,
        r#"{"functionCall":{"name":"a","args":{"n":1.50}},"thoughtSignature":"s2"},{"functionCall":{"id":"x","name":"b"}}"#,
        r#"{"functionCall":{"name":"c","willContinue":true},"thoughtSignature":"s3"}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"New ","willContinue":true}],"willContinue":true}}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"Delhi"}],"willContinue":true}}"#,
        r#"{"functionCall":{}}"#,
        r#"{"executableCode":{"code":"1"}},{"madeLater":{}}"#,
    ];
    let chunks: Vec<String> = parts.iter().map(|parts| candidate(parts, "null")).collect();
    let mut chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let end = r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"cachedContentTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4},"modelVersion":"m","responseId":"r"}"#;
    chunks.push(end);
    chunks.push(end);
    stream(&chunks)
}

#[test]
fn parts_of_a_stream_come_together_and_keep_their_signatures() {
    let (reply, _) = streamed(&full(), std::iter::empty()).unwrap();
    let parts = concat!(
        r#"{"text":"hm é🦀","thought":true},{"text":"Text ü"},{"text":"","thoughtSignature":"s1"},{"text":"more"},"#,
        r#"{"functionCall":{"name":"a","args":{"n":1.50}},"thoughtSignature":"s2"},{"functionCall":{"id":"x","name":"b"}},"#,
        r#"{"functionCall":{"name":"c","args":{"city":"New Delhi"}},"thoughtSignature":"s3"},"#,
        r#"{"executableCode":{"code":"1"}},{"madeLater":{}}"#
    );
    assert_eq!(
        reply.turn.raw.get(),
        format!(r#"{{"parts":[{parts}],"role":"model"}}"#)
    );
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
            ("call-0", "a", r#"{"n":1.50}"#),
            ("x", "b", "{}"),
            ("call-2", "c", r#"{"city":"New Delhi"}"#)
        ]
    );
    assert_eq!(
        (
            reply.usage.input,
            reply.usage.cached,
            reply.usage.output,
            reply.usage.thinking
        ),
        (5, 2, 7, 4)
    );
    assert_eq!(
        (&reply.stop, reply.id.as_deref(), reply.model.as_deref()),
        (&StopReason::Calls, Some("r"), Some("m"))
    );
    assert!(matches!(
        &reply.turn.items[reply.turn.items.len() - 2..],
        [TurnItem::Hosted { .. }, TurnItem::Unknown { .. }]
    ));
    let again = read(&candidate(parts, "\"STOP\"")).unwrap();
    assert_eq!(
        format!("{:?}", again.turn.items),
        format!("{:?}", reply.turn.items)
    );
}

#[test]
fn calls_of_a_stream_are_shown_with_whole_arguments() {
    let (_, deltas) = streamed(&full(), std::iter::empty()).unwrap();
    let arguments: Vec<_> = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Arguments { index, text } => Some((*index, text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(
        arguments,
        [
            (0, r#"{"n":1.50}"#),
            (1, "{}"),
            (2, r#"{"city":"New Delhi"}"#)
        ]
    );
}

#[test]
fn reasons_to_stop_are_told_apart() {
    let rows = [
        ("STOP", StopReason::End),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Filter),
        ("RECITATION", StopReason::Filter),
        (
            "MALFORMED_FUNCTION_CALL",
            StopReason::Other("MALFORMED_FUNCTION_CALL".to_owned()),
        ),
    ];
    for (word, expect) in rows {
        let text = r#"{"text":"x"}"#;
        assert_eq!(
            read(&candidate(text, &format!("\"{word}\""))).unwrap().stop,
            expect
        );
    }
    let blocked =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#;
    let reply = read(blocked).unwrap();
    assert_eq!(
        (reply.stop, reply.turn.items.len(), reply.usage.input),
        (StopReason::Filter, 0, 4)
    );
    let (reply, _) = streamed(&stream(&[blocked]), std::iter::empty()).unwrap();
    assert_eq!(reply.stop, StopReason::Filter);
}

#[test]
fn a_message_without_a_role_is_given_one() {
    let reply =
        read(r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}"#)
            .unwrap();
    assert_eq!(
        reply.turn.raw.get(),
        r#"{"parts":[{"text":"x"}],"role":"model"}"#
    );
    let reply = read(r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#).unwrap();
    assert_eq!(reply.turn.raw.get(), r#"{"parts":[],"role":"model"}"#);
}

#[test]
fn what_is_no_reply_is_an_error_whole_or_streamed() {
    let rows = [
        (
            r#"{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}"#,
            "the provider reports INVALID_ARGUMENT: Bad",
        ),
        (r#"{"error":{"code":503}}"#, "the provider reports 503: "),
        ("[]x", "is not what gemini sends"),
        (
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#,
            "a `functionCall` without a `name`",
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":1}]}}]}"#,
            "invalid type",
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","partialArgs":[{"jsonPath":"x"}]}}]}}]}"#,
            "is not a path",
        ),
    ];
    for (body, expect) in rows {
        let whole = read(body).unwrap_err().to_string();
        let cut = streamed(&stream(&[body]), std::iter::empty())
            .unwrap_err()
            .to_string();
        assert!(
            whole.contains(expect) && cut.contains(expect),
            "{whole} {cut}"
        );
    }
    assert!(
        read("{}")
            .unwrap_err()
            .to_string()
            .contains("no `candidates`")
    );
    let open = candidate(r#"{"text":"x"}"#, "null");
    assert!(matches!(
        streamed(&stream(&[&open]), std::iter::empty()),
        Err(WireError::Cut(_))
    ));
}

#[test]
fn a_stream_has_limits() {
    let push = |text: &str| {
        let limits = ReplyLimits {
            reply: 400,
            event: 200,
            calls: 1,
        };
        let mut reader = Dialect::Gemini.reader(limits);
        reader
            .push(text.as_bytes(), &mut Vec::new())
            .unwrap_err()
            .to_string()
    };
    let calls = candidate(
        r#"{"functionCall":{"name":"a"}},{"functionCall":{"name":"a"}}"#,
        "null",
    );
    assert!(push(&stream(&[&calls])).contains("more than 1 tool calls"));
    assert!(push(&format!("data: {}", "x".repeat(300))).contains("200 bytes for an event"));
    assert!(push(&": ping\n".repeat(60)).contains("400 bytes for a reply"));
}

proptest! {
    #[test]
    fn a_stream_is_read_alike_however_it_is_cut(sizes in proptest::collection::vec(1usize..40, 0..400)) {
        let (whole, deltas) = streamed(&full(), std::iter::empty()).unwrap();
        let (cut, others) = streamed(&full(), sizes.into_iter()).unwrap();
        prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
        prop_assert_eq!(deltas, others);
    }
}

#[test]
fn a_call_whose_arguments_do_not_end_refuses_the_reply_unless_it_is_cut() {
    let begun = r#"{"functionCall":{"name":"f","willContinue":true}}"#;
    let piece = r#"{"functionCall":{"name":"","partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}"#;
    let last = r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.b","numberValue":2}]}}"#;
    let whole = r#"{"functionCall":{"args":{"a":1}}}"#;
    let other = r#"{"functionCall":{"name":"g","args":{}}}"#;
    let rows: [(&[&str], &str, &str); 8] = [
        (&[begun, piece, last], "STOP", r#"f {"a":1,"b":2}"#),
        (
            &[begun, piece, last, other],
            "STOP",
            r#"f {"a":1,"b":2} g {}"#,
        ),
        (&[begun, whole], "STOP", r#"f {"a":1}"#),
        (
            &[begun, piece],
            "STOP",
            "no end of the arguments for call f",
        ),
        (
            &[begun, piece, other],
            "STOP",
            "no end of the arguments for call f",
        ),
        (&[begun, piece], "MAX_TOKENS", r#"f {"a":1}"#),
        (
            &[begun, piece, whole],
            "STOP",
            "arguments as a whole after pieces of them",
        ),
        (&[piece], "STOP", "a `functionCall` without a `name`"),
    ];
    for (parts, word, expect) in rows {
        let last = format!("\"{word}\"");
        let chunks: Vec<String> = parts
            .iter()
            .map(|parts| candidate(parts, "null"))
            .chain([candidate("", &last)])
            .collect();
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let found = match streamed(&stream(&chunks), std::iter::empty()) {
            Ok((reply, _)) => {
                let calls = reply.turn.calls();
                let calls: Vec<String> = calls
                    .map(|call| format!("{} {}", call.name, call.arguments))
                    .collect();
                calls.join(" ")
            }
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expect), "{parts:?}: {found}");
    }
}

//! Replies from events, however they are cut.

use proptest::prelude::*;

use crate::dialect::Dialect;
use crate::error::WireError;
use crate::limits::ReplyLimits;
use crate::reply::{Reply, StopReason, TurnItem};
use crate::stream::Delta;

/// Returns the events as a stream.
fn stream(events: &[&str]) -> String {
    let all: Vec<String> = events
        .iter()
        .map(|event| format!("event: x\ndata: {event}\n\n"))
        .collect();
    all.concat()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3,"output_tokens":1}}}"#;
const END: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

/// Returns a stream with every kind of block and piece.
fn full() -> String {
    stream(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm \u00e9 🦀"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":[]}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n\"b\""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"n":1}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"n":2}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ü"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"1","name":"a","input":{},"caller":{"type":"direct"}}}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"2","name":"b","input":{}}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"x\": "}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"1.50}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"content_block_start","index":5,"content_block":{"type":"compaction","content":null}}"#,
        r#"{"type":"content_block_delta","index":5,"delta":{"type":"compaction_delta","content":"sum","more":1}}"#,
        r#"{"type":"content_block_stop","index":5}"#,
        r#"{"type":"made_later","index":9}"#,
        END,
        STOP,
        STOP,
    ])
}

fn read(
    stream: &str,
    sizes: impl Iterator<Item = usize>,
) -> Result<(Reply, Vec<Delta>), WireError> {
    let mut reader = Dialect::Anthropic.reader(ReplyLimits::default());
    let (mut rest, mut deltas) = (stream.as_bytes(), Vec::new());
    for size in sizes {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        reader.push(piece, &mut deltas)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    reader.push(rest, &mut deltas)?;
    Ok((reader.finish()?, deltas))
}

fn whole(events: &[&str]) -> Result<(Reply, Vec<Delta>), WireError> {
    read(&stream(events), std::iter::empty())
}

#[test]
fn blocks_of_a_stream_are_those_that_would_have_come_whole() {
    let (reply, deltas) = read(&full(), std::iter::empty()).unwrap();
    let expect = concat!(
        r#"[{"type":"thinking","thinking":"hm é 🦀","signature":"sig"},"#,
        r#"{"type":"text","text":"a\n\"b\"ü","citations":[{"n":1},{"n":2}]},"#,
        r#"{"type":"tool_use","id":"1","name":"a","input":{"x": 1.50},"caller":{"type":"direct"}},"#,
        r#"{"type":"tool_use","id":"2","name":"b","input":{}},"#,
        r#"{"type":"compaction","content":"sum"}]"#
    );
    assert_eq!(reply.turn.raw.get(), expect);
    let body = format!(
        r#"{{"content":{expect},"stop_reason":"tool_use","id":"msg_1","model":"m","usage":{{"input_tokens":3,"output_tokens":9}}}}"#
    );
    let again = Dialect::Anthropic
        .read(body.as_bytes(), ReplyLimits::default())
        .unwrap();
    assert_eq!(format!("{again:?}"), format!("{reply:?}"));
    let call = |index, name: &str| Delta::Call {
        index,
        name: name.to_owned(),
    };
    let arguments = |text: &str| Delta::Arguments {
        index: 0,
        text: text.to_owned(),
    };
    let expect = [
        Delta::Thinking("hm é 🦀".to_owned()),
        Delta::Text("a\n\"b\"".to_owned()),
        Delta::Text("ü".to_owned()),
        call(0, "a"),
        call(1, "b"),
        arguments("{\"x\": "),
        arguments("1.50}"),
    ];
    assert_eq!(deltas, expect);
}

#[test]
fn arguments_that_are_cut_stay_as_they_came_and_go_back_wrapped() {
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#;
    let (reply, _) = whole(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"a","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\": \"cu"}}"#,
        end,
        STOP,
    ])
    .unwrap();
    assert_eq!(reply.stop, StopReason::Length);
    assert_eq!(reply.turn.calls().next().unwrap().arguments, r#"{"x": "cu"#);
    assert!(
        reply
            .turn
            .raw
            .get()
            .contains(r#""input":{"INVALID_JSON":"{\"x\": \"cu"}"#)
    );
}

#[test]
fn a_refusal_in_the_middle_is_a_reply_that_says_so() {
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"No."}}}"#;
    let (reply, _) = whole(&[START, end, STOP]).unwrap();
    assert_eq!(reply.stop, StopReason::Filter);
    assert!(matches!(&reply.turn.items[..], [TurnItem::Refusal(text)] if text == "No."));
}

#[test]
fn what_is_no_stream_of_this_dialect_is_an_error_and_nothing_more_is_read() {
    let block =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let other =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#;
    let piece =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let rows: [(&[&str], &str); 8] = [
        (
            &[r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#],
            "the provider reports overloaded_error: Overloaded",
        ),
        (&[piece], "its block is not open"),
        (&[block, stop, piece], "its block is not open"),
        (&[block, other], "not the next one"),
        (&[block, piece, block], "not the next one"),
        (&["nonsense"], "an event is not what anthropic sends"),
        (
            &[r#"{"type":"content_block_start","index":0}"#],
            "no `content_block`",
        ),
        (
            &[START, block, piece, stop, END],
            "the stream ended in the middle",
        ),
    ];
    for (events, expect) in rows {
        let error = whole(events).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
    let mut reader = Dialect::Anthropic.reader(ReplyLimits::default());
    assert!(
        reader
            .push(stream(&["nonsense"]).as_bytes(), &mut Vec::new())
            .is_err()
    );
    assert!(reader.push(full().as_bytes(), &mut Vec::new()).is_err());
    assert!(!reader.is_whole());
    assert!(matches!(reader.finish(), Err(WireError::Cut(_))));
}

#[test]
fn a_stream_has_limits() {
    let small = ReplyLimits {
        reply: 300,
        event: 200,
        calls: 1,
    };
    let call = |index: usize| {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"{index}","name":"a","input":{{}}}}}}"#
        )
    };
    let calls = stream(&[&call(0), &call(1)]);
    let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(200));
    let pings = stream(&[r#"{"type":"ping"}"#; 20]);
    let push = |text: &str| {
        let mut reader = Dialect::Anthropic.reader(small);
        reader
            .push(text.as_bytes(), &mut Vec::new())
            .unwrap_err()
            .to_string()
    };
    assert!(push(&calls).contains("more than 1 tool calls"));
    assert!(push(&stream(&[&long])).contains("200 bytes for an event"));
    assert!(push(&pings).contains("300 bytes for a reply"));
}

proptest! {
    #[test]
    fn a_stream_is_read_alike_however_it_is_cut(sizes in proptest::collection::vec(1usize..40, 0..400)) {
        let (whole, deltas) = read(&full(), std::iter::empty()).unwrap();
        let (cut, others) = read(&full(), sizes.into_iter()).unwrap();
        prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
        prop_assert_eq!(deltas, others);
    }
}

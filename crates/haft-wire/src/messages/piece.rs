//! Reads the events that make up nearly all of a stream, by their exact format; `serde_json` reads everything else.

use std::borrow::Cow;

/// A piece of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BlockDelta<'a> {
    pub(crate) index: usize,
    pub(crate) kind: BlockDeltaKind,
    pub(crate) text: Cow<'a, str>,
}

/// The part of a block that a piece adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockDeltaKind {
    Text,
    Thinking,
    Input,
}

const SHAPES: [(&[u8], BlockDeltaKind); 3] = [
    (b"text_delta\",\"text\":", BlockDeltaKind::Text),
    (
        b"input_json_delta\",\"partial_json\":",
        BlockDeltaKind::Input,
    ),
    (b"thinking_delta\",\"thinking\":", BlockDeltaKind::Thinking),
];

/// Returns the piece in an event, if it is one of these, formatted exactly like the provider's.
pub(crate) fn quick(data: &[u8]) -> Option<BlockDelta<'_>> {
    let rest = data.strip_prefix(b"{\"type\":\"content_block_delta\",\"index\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (index, rest) = rest.split_at(digits);
    // JSON numbers have no leading zeros.
    if index.len() > 1 && index[0] == b'0' {
        return None;
    }
    let index = std::str::from_utf8(index).ok()?.parse().ok()?;
    let rest = rest.strip_prefix(b",\"delta\":{\"type\":\"")?;
    let mut shapes = SHAPES.iter();
    let (kind, rest) =
        shapes.find_map(|(shape, kind)| Some((*kind, rest.strip_prefix(*shape)?)))?;
    let rest = blank_end(blank_end(rest).strip_suffix(b"}")?).strip_suffix(b"}")?;
    let inner = rest.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // Without an early exit from the loop, the compiler vectorizes it.
    let text = if inner
        .iter()
        .fold(false, |found, byte| found | special(*byte))
    {
        Cow::Owned(serde_json::from_slice(rest).ok()?)
    } else {
        Cow::Borrowed(std::str::from_utf8(inner).ok()?)
    };
    Some(BlockDelta { index, kind, text })
}

/// Returns the bytes without trailing JSON whitespace.
fn blank_end(mut bytes: &[u8]) -> &[u8] {
    while let Some((b' ' | b'\n' | b'\r' | b'\t', rest)) = bytes.split_last() {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn event(index: &str, kind: &str, member: &str, text: &str, end: &str) -> String {
        format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{member}":{text}}}{end}"#
        )
    }

    #[test]
    fn what_is_written_otherwise_is_left_alone() {
        let rows = [
            event("00", "text_delta", "text", "\"a\"", "}"),
            event("-1", "text_delta", "text", "\"a\"", "}"),
            event("", "text_delta", "text", "\"a\"", "}"),
            event("99999999999999999999", "text_delta", "text", "\"a\"", "}"),
            event("1", "text_delta", "thinking", "\"a\"", "}"),
            event("1", "made_later", "text", "\"a\"", "}"),
            event("1", "text_delta", "text", "null", "}"),
            event("1", "text_delta", "text", "\"a\",\"text\":\"b\"", "}"),
            event("1", "text_delta", "text", "\"a\\\"", "}"),
            event("1", "text_delta", "text", "\"a\u{1}\"", "}"),
            event("1", "text_delta", "text", "\"a\"", ""),
            event("1", "text_delta", "text", "\"a\"", "}}"),
            event("1", "text_delta", "text", "\"a\"", "} x"),
        ];
        for row in rows {
            assert_eq!(quick(row.as_bytes()), None, "{row}");
        }
        let broken = [
            event("1", "text_delta", "text", "\"", "").as_bytes(),
            b"\xff\"}}",
        ]
        .concat();
        assert_eq!(quick(&broken), None);
    }

    proptest! {
        #[test]
        fn a_piece_is_what_serde_json_reads(text in any::<String>(), index in 0usize..1000, which in 0usize..3, blanks in " {0,9}") {
            let (kind, member, expect) = [
                ("text_delta", "text", BlockDeltaKind::Text),
                ("thinking_delta", "thinking", BlockDeltaKind::Thinking),
                ("input_json_delta", "partial_json", BlockDeltaKind::Input),
            ][which];
            let event = event(&index.to_string(), kind, member, &json!(text).to_string(), &format!("{blanks}}}"));
            let value: Value = serde_json::from_str(&event).unwrap();
            let piece = quick(event.as_bytes()).unwrap();
            prop_assert_eq!(value["delta"][member].as_str().unwrap(), &piece.text);
            prop_assert_eq!((piece.index, piece.kind), (index, expect));
        }
    }
}

//! `MendedMessage`: a server's message with what no JSON reader takes replaced: bytes that are no UTF-8, halves of surrogate pairs, numbers
//! that JSON does not have.
//!
//! A server's result is delivered even if its text is not quite JSON, because the call has run. What was replaced is said in a note.

use std::borrow::Cow;

use memchr::memmem;
use serde::de::IgnoredAny;

/// What replaces a character that is none.
const REPLACEMENT: &str = "\\ufffd";
/// Numbers of other languages' writers of JSON.
const NO_NUMBERS: [&str; 4] = ["NaN", "-Infinity", "Infinity", "undefined"];

/// A message, and what was replaced in it.
#[derive(Debug)]
pub(crate) struct MendedMessage<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) notes: Vec<&'static str>,
}

impl<'a> MendedMessage<'a> {
    /// Reads a message; most are borrowed unchanged.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        let mut notes = Vec::new();
        let mut text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Owned(_)) {
            notes.push("bytes that are not UTF-8 were replaced");
        }
        if let Some(mended) = without_lone_surrogates(&text) {
            notes.push("halves of surrogate pairs were replaced");
            text = Cow::Owned(mended);
        }
        if let Some(mended) = without_other_numbers(&text) {
            notes.push("NaN and infinite numbers were replaced by null");
            text = Cow::Owned(mended);
        }
        let bytes = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self { bytes, notes }
    }
}

/// Returns the text with escapes of lone surrogates replaced, if there are any.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let holds = |escape: &str| memmem::find(text.as_bytes(), escape.as_bytes()).is_some();
    if !holds("\\ud") && !holds("\\uD") {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut is_mended) = (text, false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match surrogate(escape) {
            Some(Surrogate::High) if surrogate(&escape[6..]) == Some(Surrogate::Low) => 12,
            Some(_) => {
                is_mended = true;
                out.push_str(REPLACEMENT);
                rest = &escape[6..];
                continue;
            }
            // The backslash and what it escapes.
            None => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out.push_str(rest);
    is_mended.then_some(out)
}

#[derive(Debug, PartialEq, Eq)]
enum Surrogate {
    High,
    Low,
}

/// Returns the half of a pair that an escape at the beginning of the text stands for.
fn surrogate(text: &str) -> Option<Surrogate> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Surrogate::High),
        0xDC00..=0xDFFF => Some(Surrogate::Low),
        _ => None,
    }
}

/// Returns the text with numbers that JSON does not have replaced by null, if there are any and it is JSON then.
fn without_other_numbers(text: &str) -> Option<String> {
    let holds = |word: &str| memmem::find(text.as_bytes(), word.as_bytes()).is_some();
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !NO_NUMBERS.iter().any(|word| holds(word)) || is_json(text) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = NO_NUMBERS.iter().find(|word| rest.starts_with(**word));
        let (piece, length) = match (first, word) {
            ('"', _) => {
                let length = string_length(rest);
                (&rest[..length], length)
            }
            (_, Some(word)) => ("null", word.len()),
            (other, None) => (&rest[..other.len_utf8()], other.len_utf8()),
        };
        out.push_str(piece);
        rest = &rest[length..];
    }
    is_json(&out).then_some(out)
}

/// Returns the length of the string at the beginning of a text, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_reader_takes_is_replaced_and_nothing_else() {
        let rows: [(&[u8], &str, usize); 12] = [
            (br#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#, 0),
            (br#"{"a":"\ud83d x"}"#, r#"{"a":"\ufffd x"}"#, 1),
            (br#"{"a":"\uDE00"}"#, r#"{"a":"\ufffd"}"#, 1),
            (
                br#"{"a":"\ud83d\ud83d\ude00"}"#,
                r#"{"a":"\ufffd\ud83d\ude00"}"#,
                1,
            ),
            (br#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#, 0),
            (br#"{"a":"\ud8"}"#, r#"{"a":"\ud8"}"#, 0),
            (br#"{"a":"\ud83d"#, r#"{"a":"\ufffd"#, 1),
            (
                "{\"\\ud83d\":\"\\é\"}".as_bytes(),
                "{\"\\ufffd\":\"\\é\"}",
                1,
            ),
            (b"{\"a\":\"\xff\"}", "{\"a\":\"\u{fffd}\"}", 1),
            (
                br#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \"NaN"}"#,
                r#"{"a":null,"b":[null,null],"c":"NaN \"NaN"}"#,
                1,
            ),
            (br#"{"a":"NaN"}"#, r#"{"a":"NaN"}"#, 0),
            (b"NaN is logged", "NaN is logged", 0),
        ];
        for (sent, expect, notes) in rows {
            let mended = MendedMessage::read(sent);
            assert_eq!(String::from_utf8_lossy(&mended.bytes), expect);
            assert_eq!(mended.notes.len(), notes, "{expect}");
            let is_as_sent = matches!(mended.bytes, Cow::Borrowed(_));
            assert_eq!(is_as_sent, notes == 0, "{expect}");
        }
    }
}

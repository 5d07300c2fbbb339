//! Writes JSON strings eight bytes at a time: most bytes of real output need no escape.

/// A byte with value 1 in every lane.
const LANES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of every lane.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Writes a text as a JSON string with quotes (RFC 8259 §7), escaping only what must be escaped, each in its shortest form.
///
/// ```
/// let mut out = Vec::new();
/// haft_json::escape::string(&mut out, "a \"word\"\n");
/// assert_eq!(out, br#""a \"word\"\n""#);
/// ```
pub fn string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + bytes.len() / 16 + 2);
    out.push(b'"');
    let mut rest = bytes;
    while !rest.is_empty() {
        let plain = plain(rest);
        let (stays, more) = rest.split_at(plain);
        out.extend_from_slice(stays);
        let Some((byte, after)) = more.split_first() else {
            break;
        };
        push_escape(out, *byte);
        rest = after;
    }
    out.push(b'"');
}

/// Returns the number of leading bytes that need no escape.
fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    for chunk in bytes.chunks_exact(8) {
        let lanes = chunk.try_into().map_or(0, u64::from_le_bytes);
        let marked = mark_special(lanes);
        if marked != 0 {
            return at + (marked.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let tail = bytes.get(at..).unwrap_or_default();
    at + tail
        .iter()
        .position(|byte| special(*byte))
        .unwrap_or(tail.len())
}

fn special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Marks the high bit of the lowest lane with a control character, a quote or a backslash; lanes above it may be marked
/// too. Bytes of non-ASCII characters are never marked.
fn mark_special(lanes: u64) -> u64 {
    let below = lanes.wrapping_sub(LANES * 0x20);
    let is = |byte: u8| {
        let same = lanes ^ (LANES * u64::from(byte));
        same.wrapping_sub(LANES)
    };
    (below | is(b'"') | is(b'\\')) & !lanes & HIGH_BITS
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let digit = |nibble: u8| HEX_DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::string;

    fn check(text: &str) {
        let mut out = Vec::new();
        string(&mut out, text);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            serde_json::to_string(text).unwrap()
        );
    }

    #[test]
    fn every_byte_at_every_place_is_written_as_serde_json_does() {
        for byte in 0..=127_u8 {
            for before in 0..17 {
                let text = format!(
                    "{}{}{}",
                    "x".repeat(before),
                    char::from(byte),
                    "é\"y".repeat(3)
                );
                check(&text);
            }
        }
        check("");
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_does(text in any::<String>()) {
            check(&text);
        }
    }
}

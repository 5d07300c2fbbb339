//! Decodes the bytes of a page: by its byte order mark, its header, its own declaration, or else by a guess.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of bytes of a page that are searched for its encoding declaration, as in browsers.
const SNIFF_BYTES: usize = 1024;

/// Decodes the text. Bytes that are invalid in its encoding become U+FFFD.
pub(super) fn decode(bytes: &[u8], content_type: &str, markup: bool) -> String {
    let declared = || {
        label_in(content_type)
            .or_else(|| markup.then(|| within(bytes)).flatten())
            .unwrap_or_else(|| guess_encoding(bytes))
    };
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => declared(),
    };
    encoding.decode(bytes).0.into_owned()
}

/// Returns the encoding after `charset=`.
fn label_in(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, after) = lower.split_once("charset")?;
    let value = after.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

/// Returns the encoding that a page or an XML declaration states.
fn within(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(SNIFF_BYTES)]);
    let lower = head.to_ascii_lowercase();
    let named = lower
        .match_indices("<meta")
        .find_map(|(at, _)| label_in(lower[at..].split('>').next()?));
    let declared = || {
        let declaration = lower
            .trim_start()
            .strip_prefix("<?xml")?
            .split("?>")
            .next()?;
        let (_, after) = declaration.split_once("encoding")?;
        label_in(&format!("charset{after}"))
    };
    // A page that is readable up to here is not UTF-16, whatever it declares.
    named.or_else(declared).map(Encoding::output_encoding)
}

fn guess_encoding(bytes: &[u8]) -> &'static Encoding {
    // A truncated page may end within a character.
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn the_mark_wins_then_the_header_then_the_page_then_a_look() {
        let rows: [(&[u8], &str, &str); 9] = [
            (
                b"\xef\xbb\xbfgr\xc3\xbcn",
                "text/html; charset=latin1",
                "grün",
            ),
            (b"\xff\xfeg\0r\0", "text/html", "gr"),
            (b"gr\xfcn", "text/html; charset=iso-8859-1", "grün"),
            (b"gr\xc3\xbcn", "text/html; Charset=\"UTF-8\"", "grün"),
            (
                b"<meta charset=windows-1251>\xef",
                "text/html",
                "<meta charset=windows-1251>п",
            ),
            (
                b"<meta http-equiv=x content='text/html; charset=koi8-r'>\xd0",
                "",
                "<meta http-equiv=x content='text/html; charset=koi8-r'>п",
            ),
            (b"gr\xfcn", "text/html", "grün"),
            (
                b"gr\xc3\xbcn\xe2\x82",
                "text/html; charset=nonsense",
                "grün\u{fffd}",
            ),
            // The header is wrong but takes precedence, so the text shows replacement characters.
            (b"gr\xfcn", "text/html; charset=utf-8", "gr\u{fffd}n"),
        ];
        for (bytes, header, expect) in rows {
            assert_eq!(decode(bytes, header, true), expect, "{header}");
        }
    }
}

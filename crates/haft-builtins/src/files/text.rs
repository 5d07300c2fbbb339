//! Detects binary files, names media types, and cuts text at character boundaries.

/// Number of bytes at the beginning of a file that are searched for a NUL byte, which marks the file as binary.
pub(crate) const SNIFF: usize = 8 * 1024;

/// Returns true if the beginning of a file shows that it is not text.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    memchr::memchr(0, &head[..head.len().min(SNIFF)]).is_some()
}

/// Returns the media type of a file that is not text, from its first bytes.
pub(crate) fn media_type(head: &[u8]) -> &'static str {
    const SIGNATURES: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"\x28\xb5\x2f\xfd", "application/zstd"),
        (b"\xfd7zXZ\0", "application/x-xz"),
        (b"BZh", "application/x-bzip2"),
        (b"\x7fELF", "application/x-executable"),
        (b"\0asm", "application/wasm"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"OggS", "audio/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfe", "text/plain; charset=utf-16le"),
        (b"\xfe\xff", "text/plain; charset=utf-16be"),
    ];
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    if head.get(4..8) == Some(b"ftyp") {
        return "video/mp4";
    }
    let known = SIGNATURES.iter().find(|(magic, _)| head.starts_with(magic));
    known.map_or("application/octet-stream", |(_, name)| name)
}

/// Returns the longest prefix of at most `max` bytes that does not split a UTF-8 character.
pub(crate) fn clip(bytes: &[u8], max: usize) -> &[u8] {
    if bytes.len() <= max {
        return bytes;
    }
    let continues = |b: u8| b & 0xC0 == 0x80;
    let mut end = max;
    // A character has at most three continuation bytes; more is not UTF-8 and may be cut anywhere.
    while end > 0 && max - end < 3 && continues(bytes[end]) {
        end -= 1;
    }
    if continues(bytes[end]) {
        &bytes[..max]
    } else {
        &bytes[..end]
    }
}

/// Formats a number with thousands separators: `1,234,567`.
pub(crate) fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        for (text, max, expect) in [
            ("abc", 5, "abc"),
            ("abc", 2, "ab"),
            ("aé", 2, "a"),
            ("日本", 5, "日"),
            ("日本", 6, "日本"),
            ("a😀", 4, "a"),
        ] {
            assert_eq!(
                clip(text.as_bytes(), max),
                expect.as_bytes(),
                "{text} {max}"
            );
        }
        assert_eq!(clip(&[0x80; 10], 5).len(), 5);
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(with_separators(number), text);
        }
    }
}

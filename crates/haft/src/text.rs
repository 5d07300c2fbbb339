//! Texts as names and messages show them: bytes as hex, and long texts cut.

use std::borrow::Cow;

/// Bytes as lower-case hex digits.
///
/// ```
/// assert_eq!(haft::text::hex(&[0, 0xab, 16]), "00ab10");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}

/// A text for a message: at most `most` characters, then `…` where it goes on.
///
/// ```
/// assert_eq!(haft::text::clip("short", 10), "short");
/// assert_eq!(haft::text::clip("a long text", 6), "a long…");
/// ```
pub fn clip(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

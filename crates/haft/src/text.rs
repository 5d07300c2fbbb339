//! Texts as names and messages show them: bytes as hex, and long texts cut.

use std::borrow::Cow;

pub use haft_json::hex::hex;

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

//! Text for names and messages: bytes as hex, long texts cut, untrusted text made safe to read.

pub mod visible;

use std::borrow::Cow;

pub use haft_json::hex::hex;

/// Returns at most `most` characters of a text for a message, followed by `…` if it is cut.
///
/// ```
/// assert_eq!(haft_types::text::clip("short", 10), "short");
/// assert_eq!(haft_types::text::clip("a long text", 6), "a long…");
/// ```
pub fn clip(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

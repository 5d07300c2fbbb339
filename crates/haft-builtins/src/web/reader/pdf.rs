//! The text of PDF files.

use lopdf::Document;

use super::MAX_TEXT;

/// Most pages that are read.
const MAX_PAGES: usize = 2_000;
/// Most bytes of one page's content, unpacked.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// The text of a file, its pages parted by form feeds.
pub(super) fn text_of(file: &[u8]) -> Result<String, String> {
    let document = Document::load_mem(file).map_err(|e| e.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    let mut out = String::new();
    for number in document.get_pages().into_keys().take(MAX_PAGES) {
        // A page that cannot be read is left out; the others are not.
        if let Ok(text) = document.extract_text_with_limit(&[number], MAX_PAGE) {
            if !out.is_empty() {
                out.push('\u{c}');
            }
            out.push_str(&text);
        }
        if out.len() > MAX_TEXT {
            break;
        }
    }
    Ok(out)
}

//! Extracts the text of PDF files.

use lopdf::Document;

use super::MAX_TEXT;

/// Maximum number of pages to read.
const MAX_PAGES: usize = 2_000;
/// Maximum size of a page's decompressed content, in bytes.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// Returns the text of a file, with form feeds between its pages.
pub(super) fn text_of(file: &[u8]) -> Result<String, String> {
    let document = Document::load_mem(file).map_err(|e| e.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    let mut out = String::new();
    for number in document.get_pages().into_keys().take(MAX_PAGES) {
        // Only the pages that cannot be read are left out.
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

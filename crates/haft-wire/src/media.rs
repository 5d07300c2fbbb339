//! The replacement for content that a dialect does not accept.

use crate::message::ContentPart;

/// Returns a note for the model about omitted content, with the reason; `None` for text.
pub(crate) fn note(part: &ContentPart, reason: &str) -> Option<String> {
    let (name, media_type, data) = match part {
        ContentPart::Text(_) => return None,
        ContentPart::Image { media_type, data } => ("picture", media_type, data),
        ContentPart::Audio { media_type, data } => ("sound", media_type, data),
        ContentPart::File {
            name,
            media_type,
            data,
        } => (name.as_str(), media_type, data),
    };
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    Some(format!(
        "[{name}, {media_type}, {bytes} bytes: left out, {reason}]"
    ))
}

//! Content of users and tools, in the Responses format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::body::inexpressible;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::message::ContentPart;

/// Writes content: a single text as a string, anything else as a list.
///
/// # Errors
/// If it contains audio, which the dialect cannot express.
pub(crate) fn content(out: &mut Vec<u8>, parts: &[ContentPart]) -> Result<(), WireError> {
    if parts
        .iter()
        .any(|part| matches!(part, ContentPart::Audio { .. }))
    {
        return Err(inexpressible(
            Dialect::OpenAiResponses,
            "sound in a message",
        ));
    }
    write(out, parts);
    Ok(())
}

/// Writes the content of a tool's answer: audio is left out and mentioned.
pub(crate) fn result(out: &mut Vec<u8>, parts: &[ContentPart]) {
    write(out, parts);
}

fn write(out: &mut Vec<u8>, parts: &[ContentPart]) {
    match parts {
        [] => string(out, ""),
        [ContentPart::Text(text)] => string(out, text),
        parts => {
            out.push(b'[');
            for (at, one) in parts.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                part(out, one);
            }
            out.push(b']');
        }
    }
}

fn part(out: &mut Vec<u8>, part: &ContentPart) {
    let url = |media_type: &str, data: &str| format!("data:{media_type};base64,{data}");
    let mut member = Writer::begin(out);
    match part {
        ContentPart::Text(text) => {
            string(member.key("type"), "input_text");
            string(member.key("text"), text);
        }
        ContentPart::Image { media_type, data } => {
            string(member.key("type"), "input_image");
            string(member.key("image_url"), &url(media_type, data));
        }
        ContentPart::File {
            name,
            media_type,
            data,
        } => {
            string(member.key("type"), "input_file");
            string(member.key("filename"), name);
            string(member.key("file_data"), &url(media_type, data));
        }
        ContentPart::Audio { media_type, .. } => {
            string(member.key("type"), "input_text");
            let named =
                format!("[a sound of the type {media_type} was left out: it cannot be sent here]");
            string(member.key("text"), &named);
        }
    }
    member.end();
}

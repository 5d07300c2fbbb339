//! Content of users and tools, in the Chat format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::body::inexpressible;
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::message::{ContentPart, ToolOutput};

/// Writes a user's content: a single text as a string, anything else as a list.
pub(crate) fn user(out: &mut Vec<u8>, parts: &[ContentPart]) -> Result<(), WireError> {
    if let [ContentPart::Text(text)] = parts {
        string(out, text);
        return Ok(());
    }
    out.push(b'[');
    for (at, one) in parts.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        part(out, one)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes one part of the content.
fn part(out: &mut Vec<u8>, part: &ContentPart) -> Result<(), WireError> {
    let mut member = Writer::begin(out);
    match part {
        ContentPart::Text(text) => {
            string(member.key("type"), "text");
            string(member.key("text"), text);
        }
        ContentPart::Image { media_type, data } => {
            string(member.key("type"), "image_url");
            let mut inner = Writer::begin(member.key("image_url"));
            string(inner.key("url"), &data_url(media_type, data));
            inner.end();
        }
        ContentPart::Audio { media_type, data } => {
            let format = audio_format(media_type).ok_or_else(|| {
                let what = format!(
                    "sound of the type {media_type:?}; audio/wav and audio/mpeg can be sent"
                );
                inexpressible(Dialect::OpenAiChat, what)
            })?;
            string(member.key("type"), "input_audio");
            let mut inner = Writer::begin(member.key("input_audio"));
            string(inner.key("data"), data);
            string(inner.key("format"), format);
            inner.end();
        }
        ContentPart::File {
            name,
            media_type,
            data,
        } => {
            string(member.key("type"), "file");
            let mut inner = Writer::begin(member.key("file"));
            string(inner.key("filename"), name);
            string(inner.key("file_data"), &data_url(media_type, data));
            inner.end();
        }
    }
    member.end();
    Ok(())
}

/// Returns a data URL with the bytes.
pub(crate) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Returns the name of an audio format; there are only two.
fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// Returns the text of an answer to a call. A tool's message can only hold text: other parts are mentioned in it and
/// follow in a user's message, or are left out.
pub(crate) fn answer(answer: &ToolOutput, follows: &mut Vec<ContentPart>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in &answer.parts {
        let (sort, media_type) = match part {
            ContentPart::Text(text) => {
                lines.push(text.clone());
                continue;
            }
            ContentPart::Image { media_type, .. } => ("picture", media_type),
            ContentPart::Audio { media_type, .. } => ("sound", media_type),
            ContentPart::File { media_type, .. } => ("file", media_type),
        };
        if matches!(part, ContentPart::Audio { media_type, .. } if audio_format(media_type).is_none())
        {
            lines.push(format!(
                "[a {sort} of the type {media_type} was left out: it cannot be sent here]"
            ));
            continue;
        }
        let number = follows
            .iter()
            .filter(|part| !matches!(part, ContentPart::Text(_)))
            .count()
            + 1;
        lines.push(format!("[a {sort} of the type {media_type} is part of this result: see result part {number} in the next user message]"));
        let from = format!(
            "Result part {number}, from the call {} of {}:",
            answer.call.id, answer.call.name
        );
        follows.push(ContentPart::Text(from));
        follows.push(part.clone());
    }
    match &answer.item {
        Some(item) if lines.is_empty() => item.get().to_owned(),
        None if lines.is_empty() => answer.loads.join("\n"),
        _ => lines.join("\n"),
    }
}

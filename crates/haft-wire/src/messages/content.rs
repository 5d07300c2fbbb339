//! Content of user messages and of results: text, images, documents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_json::escape::string;
use haft_json::members::Writer;

use crate::media::note;
use crate::message::{ContentPart, ToolOutput};
use crate::names::ToolNames;

/// The content that is accepted in addition to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKinds {
    /// Images and documents.
    All,
    /// Images only: results of a toolset.
    Pictures,
}

const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Appends a block to an open list; nothing for a blank text, which the provider refuses.
pub(crate) fn block(part: &ContentPart, takes: ContentKinds, out: &mut Vec<u8>) {
    match part {
        ContentPart::Text(words) => text(words, out),
        ContentPart::Image { media_type, data } if PICTURES.contains(&media_type.as_str()) => {
            let object = begin("image", out);
            source("base64", media_type, data, object);
        }
        ContentPart::File { .. } if takes == ContentKinds::All => document(part, out),
        ContentPart::Image { .. } => {
            left_out(part, "Claude reads PNG, JPEG, GIF and WebP pictures", out);
        }
        ContentPart::File { .. } => {
            left_out(part, "a toolset's result holds text and pictures", out);
        }
        ContentPart::Audio { .. } => left_out(part, "Claude does not accept audio", out),
    }
}

fn left_out(part: &ContentPart, reason: &str, out: &mut Vec<u8>) {
    if let Some(note) = note(part, reason) {
        text(&note, out);
    }
}

/// Writes a comma between items of a list.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'[')) {
        out.push(b',');
    }
}

fn begin<'o>(kind: &str, out: &'o mut Vec<u8>) -> Writer<'o> {
    separate(out);
    let mut object = Writer::begin(out);
    string(object.key("type"), kind);
    object
}

/// Appends a block of text.
pub(crate) fn text(words: &str, out: &mut Vec<u8>) {
    if words.trim().is_empty() {
        return;
    }
    let mut object = begin("text", out);
    string(object.key("text"), words);
    object.end();
}

fn source(kind: &str, media_type: &str, data: &str, mut object: Writer<'_>) {
    let mut source = Writer::begin(object.key("source"));
    string(source.key("type"), kind);
    string(source.key("media_type"), media_type);
    string(source.key("data"), data);
    source.end();
    object.end();
}

/// Appends a file: a PDF unchanged, other text files as characters.
fn document(part: &ContentPart, out: &mut Vec<u8>) {
    let ContentPart::File {
        name,
        media_type,
        data,
    } = part
    else {
        return;
    };
    let is_text = media_type.starts_with("text/")
        || ["json", "xml", "yaml", "javascript", "toml"]
            .iter()
            .any(|kind| media_type.ends_with(kind));
    let words = if is_text {
        STANDARD.decode(data).ok()
    } else {
        None
    };
    let words = words.and_then(|bytes| String::from_utf8(bytes).ok());
    if media_type != "application/pdf" && words.is_none() {
        return left_out(part, "Claude takes PDF files and texts in UTF-8", out);
    }
    let mut object = begin("document", out);
    if !name.is_empty() {
        string(object.key("title"), name);
    }
    match words {
        Some(words) => source("text", "text/plain", &words, object),
        None => source("base64", media_type, data, object),
    }
}

/// Appends a result to an open list. A search's result contains the references to what it found, and nothing else; an answer in another
/// dialect's format is given as its JSON if there is nothing else to read.
pub(crate) fn result(answer: &ToolOutput, id: &str, names: &ToolNames, out: &mut Vec<u8>) {
    let mut object = begin("tool_result", out);
    string(object.key("tool_use_id"), id);
    if let Some(toolset) = &answer.call.toolset {
        string(object.key("toolset_name"), toolset);
    }
    let content = object.key("content");
    content.push(b'[');
    let loads: Vec<&String> = answer
        .loads
        .iter()
        .filter(|load| names.canonical(load).is_some())
        .collect();
    for load in &loads {
        let mut reference = begin("tool_reference", content);
        string(reference.key("tool_name"), load);
        reference.end();
    }
    let takes = if answer.call.toolset.is_some() {
        ContentKinds::Pictures
    } else {
        ContentKinds::All
    };
    for part in answer.parts.iter().filter(|_| loads.is_empty()) {
        block(part, takes, content);
    }
    if let Some(item) = answer.item.as_ref().filter(|_| answer.parts.is_empty()) {
        text(item.get(), content);
    }
    content.push(b']');
    if answer.is_error {
        object.key("is_error").extend_from_slice(b"true");
    }
    object.end();
}

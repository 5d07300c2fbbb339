//! Writes answers to calls, and content.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::message::{ContentPart, ToolOutput};

/// The media types that the answer of a function may contain; other files follow in a message after the answers.
const WITHIN: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "application/pdf",
    "text/plain",
];

/// Writes a comma between items of a list.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'[')) {
        out.push(b',');
    }
}

/// Appends a part to an open list; nothing for an empty text.
pub(crate) fn part(part: &ContentPart, out: &mut Vec<u8>) {
    match part {
        ContentPart::Text(words) => text(words, out),
        ContentPart::Image { media_type, data }
        | ContentPart::Audio { media_type, data }
        | ContentPart::File {
            media_type, data, ..
        } => {
            inline(media_type, data, out);
        }
    }
}

/// Appends a text.
pub(crate) fn text(words: &str, out: &mut Vec<u8>) {
    if words.is_empty() {
        return;
    }
    separate(out);
    let mut object = Writer::begin(out);
    string(object.key("text"), words);
    object.end();
}

fn inline(media_type: &str, data: &str, out: &mut Vec<u8>) {
    separate(out);
    let mut object = Writer::begin(out);
    let mut inline = Writer::begin(object.key("inlineData"));
    string(inline.key("mimeType"), media_type);
    string(inline.key("data"), data);
    inline.end();
    object.end();
}

/// The call that an answer is for: its id, if the provider gave one, and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultTarget<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) name: &'a str,
}

/// Appends a function's answer to an open list, and to `behind` the files that it cannot hold.
pub(crate) fn result(
    answer: &ToolOutput,
    to: ResultTarget<'_>,
    holds_files: bool,
    [out, behind]: [&mut Vec<u8>; 2],
) {
    separate(out);
    let held = |part: &&ContentPart| {
        let (ContentPart::Image { media_type, .. }
        | ContentPart::Audio { media_type, .. }
        | ContentPart::File { media_type, .. }) = part
        else {
            return false;
        };
        holds_files && WITHIN.contains(&media_type.as_str())
    };
    let apart: Vec<&ContentPart> = answer
        .parts
        .iter()
        .filter(|part| !matches!(part, ContentPart::Text(_)) && !held(part))
        .collect();
    let mut words = answer.texts();
    if let Some(item) = answer.item.as_ref().filter(|_| answer.parts.is_empty()) {
        // An answer in another dialect's format: its JSON is all there is to read.
        item.get().clone_into(&mut words);
    }
    if !apart.is_empty() {
        let note = format!("The files of the result of `{}` follow.", to.name);
        text(&note, behind);
        for file in &apart {
            part(file, behind);
        }
        if words.is_empty() {
            words = note;
        }
    }
    let mut object = Writer::begin(out);
    let mut response = Writer::begin(object.key("functionResponse"));
    if let Some(id) = to.id {
        string(response.key("id"), id);
    }
    string(response.key("name"), to.name);
    let mut said = Writer::begin(response.key("response"));
    string(
        said.key(if answer.is_error { "error" } else { "output" }),
        &words,
    );
    said.end();
    let mut files = answer.parts.iter().filter(held).peekable();
    if files.peek().is_some() {
        let parts = response.key("parts");
        parts.push(b'[');
        files.for_each(|file| part(file, parts));
        parts.push(b']');
    }
    response.end();
    object.end();
}

//! The pieces of a prompt, converted for the model.

use std::path::Path;

use haft_wire::ContentPart;
use percent_encoding::percent_decode_str;

use crate::protocol::{PromptBlock, PromptResource};
use crate::rpc::{INVALID_PARAMS, RpcError};

/// A prompt as the agent takes it.
#[derive(Debug)]
pub(crate) struct PromptContent {
    pub(crate) parts: Vec<ContentPart>,
    /// The skill that its first word names as a command, if it looks like one.
    pub(crate) command: Option<String>,
}

impl PromptContent {
    /// Reads the pieces of a prompt in a session that works in this folder.
    pub(crate) fn read(blocks: Vec<PromptBlock>, workspace: &str) -> Result<Self, RpcError> {
        let mut parts = Vec::new();
        for block in blocks {
            parts.push(part(block, workspace)?);
        }
        let says_nothing =
            |part: &ContentPart| matches!(part, ContentPart::Text(text) if text.trim().is_empty());
        if parts.iter().all(says_nothing) {
            return Err(RpcError::new(INVALID_PARAMS, "the prompt is empty"));
        }
        let command = match parts.first() {
            Some(ContentPart::Text(text)) => command(text).map(str::to_owned),
            _ => None,
        };
        Ok(Self { parts, command })
    }

    /// Removes the command from its first text; returns false if nothing is left.
    pub(crate) fn without_command(&mut self) -> bool {
        if let Some(ContentPart::Text(text)) = self.parts.first_mut() {
            let rest = text.trim_start().split_once(char::is_whitespace);
            *text = rest.map_or(String::new(), |(_, rest)| rest.trim().to_owned());
        }
        self.parts
            .retain(|part| !matches!(part, ContentPart::Text(text) if text.is_empty()));
        !self.parts.is_empty()
    }
}

/// Returns the command that a text begins with.
fn command(text: &str) -> Option<&str> {
    let word = text.trim_start().strip_prefix('/')?;
    let word = word.split(char::is_whitespace).next()?;
    (!word.is_empty() && !word.contains('/')).then_some(word)
}

fn part(block: PromptBlock, workspace: &str) -> Result<ContentPart, RpcError> {
    Ok(match block {
        PromptBlock::Text { text } => ContentPart::Text(text),
        PromptBlock::Image { data, mime_type } => ContentPart::Image {
            media_type: mime_type,
            data,
        },
        PromptBlock::ResourceLink { uri, name } => {
            ContentPart::Text(match below(&uri, workspace) {
                Some(path) => format!("The user refers to the file {path}."),
                None => format!("The user refers to {name}: {uri}"),
            })
        }
        PromptBlock::Resource { resource } => embedded(resource, workspace)?,
        PromptBlock::Audio {} => {
            let message = "a prompt with sound is not taken; `promptCapabilities` says what is";
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
    })
}

/// Converts a resource with its content.
fn embedded(resource: PromptResource, workspace: &str) -> Result<ContentPart, RpcError> {
    let place = below(&resource.uri, workspace).unwrap_or_else(|| resource.uri.clone());
    if let Some(text) = resource.text {
        return Ok(ContentPart::Text(format!(
            "The user adds {place}, which holds:\n{text}"
        )));
    }
    let media_type = resource.mime_type.unwrap_or_default();
    match resource.blob {
        Some(data) if media_type.starts_with("image/") => {
            Ok(ContentPart::Image { media_type, data })
        }
        Some(data) if media_type == "application/pdf" => Ok(ContentPart::File {
            name: place.rsplit('/').next().unwrap_or(&place).to_owned(),
            media_type,
            data,
        }),
        _ => Err(RpcError::new(
            INVALID_PARAMS,
            format!(
                "the resource {place} is neither text, nor a picture, nor a PDF; send a link to it"
            ),
        )),
    }
}

/// Returns the path of a `file:` address relative to the workspace, or the whole path if it lies elsewhere.
fn below(uri: &str, workspace: &str) -> Option<String> {
    let path = uri.strip_prefix("file://")?;
    let path = path.split(['?', '#']).next()?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let relative = Path::new(&*path).strip_prefix(workspace).ok();
    let relative = relative
        .and_then(Path::to_str)
        .filter(|path| !path.is_empty());
    Some(relative.map_or_else(|| path.clone().into_owned(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(blocks: serde_json::Value) -> Result<PromptContent, RpcError> {
        PromptContent::read(serde_json::from_value(blocks).unwrap(), "/srv/app")
    }

    #[test]
    fn pieces_become_what_the_model_can_read() {
        let text = |text: &str| ContentPart::Text(text.to_owned());
        let image = ContentPart::Image {
            media_type: "image/png".to_owned(),
            data: "AA==".to_owned(),
        };
        let rows = [
            (json!({"type": "text", "text": "hi"}), text("hi")),
            (
                json!({"type": "resource_link", "name": "a b.rs", "uri": "file:///srv/app/src/a%20b.rs#L1"}),
                text("The user refers to the file src/a b.rs."),
            ),
            (
                json!({"type": "resource_link", "name": "p", "uri": "file:///etc/p"}),
                text("The user refers to the file /etc/p."),
            ),
            (
                json!({"type": "resource_link", "name": "page", "uri": "https://a.example"}),
                text("The user refers to page: https://a.example"),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///srv/app/a", "text": "x"}}),
                text("The user adds a, which holds:\nx"),
            ),
            (
                json!({"type": "image", "mimeType": "image/png", "data": "AA=="}),
                image.clone(),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "x:a", "blob": "AA==", "mimeType": "image/png"}}),
                image,
            ),
        ];
        for (block, expect) in rows {
            let prompt = read(json!([block])).unwrap();
            assert_eq!(prompt.parts, [expect], "{block}");
        }
        for block in [
            json!([]),
            json!([{"type": "text", "text": ""}]),
            json!([{"type": "text", "text": " \n"}, {"type": "text", "text": ""}]),
            json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
            json!([{"type": "resource", "resource": {"uri": "x:a", "blob": "AA=="}}]),
        ] {
            assert_eq!(
                read(block.clone()).unwrap_err().code,
                INVALID_PARAMS,
                "{block}"
            );
        }
    }

    #[test]
    fn a_first_word_with_a_slash_is_a_command() {
        for (words, name, rest) in [
            ("/review src", Some("review"), true),
            (" /review\nsrc", Some("review"), true),
            ("/review", Some("review"), false),
            ("/etc/passwd is what?", None, true),
            ("/ x", None, true),
            ("review", None, true),
        ] {
            let mut prompt = read(json!([{"type": "text", "text": words}])).unwrap();
            assert_eq!(prompt.command.as_deref(), name, "{words}");
            if name.is_some() {
                assert_eq!(prompt.without_command(), rest, "{words}");
            }
        }
    }
}

//! Conversion of a server tool's result to haft's, with the original attached. A block that haft has no form for is kept whole
//! for models as well, as JSON in a text.

use haft::error::ToolError;
use haft::result::{Content, OriginalResult, ToolResult};
use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::CallReply;

/// Maximum number of bytes of a failed tool's text to put in the error.
const MAX_REASON: usize = 2000;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UpstreamContentBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
    },
    Resource {
        resource: UpstreamResource,
    },
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
        mime_type: Option<String>,
        size: Option<u64>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpstreamResource {
    uri: String,
    text: String,
    mime_type: Option<String>,
}

/// Converts the result of a call.
pub(crate) fn result(reply: CallReply, tool: &str) -> ToolResult {
    let content: Vec<Content> = reply.content.iter().map(|raw| block(raw)).collect();
    let error = reply.is_error.then(|| {
        let reason = content.iter().find_map(|one| match one {
            Content::Text { text } if !text.trim().is_empty() => Some(clip(text, MAX_REASON)),
            _ => None,
        });
        match reason {
            Some(reason) => ToolError::failed(reason.into_owned()),
            None => ToolError::failed(format!("{tool} failed and does not say why")),
        }
    });
    ToolResult {
        content,
        data: reply.structured,
        error,
        notes: reply.notes,
        original: reply.result.map(OriginalResult::new),
        ..ToolResult::default()
    }
}

/// Returns the result of a call whose task ended with a protocol error.
pub(crate) fn refused(whole: Box<RawValue>, error: ToolError) -> ToolResult {
    ToolResult {
        error: Some(error),
        original: Some(OriginalResult::refusal(whole)),
        ..ToolResult::default()
    }
}

fn block(raw: &RawValue) -> Content {
    match serde_json::from_str(raw.get()) {
        Ok(UpstreamContentBlock::Text { text }) => Content::Text { text },
        Ok(UpstreamContentBlock::Image { data, mime_type }) => Content::Image { data, mime_type },
        Ok(UpstreamContentBlock::Audio { data, mime_type }) => Content::Audio { data, mime_type },
        Ok(UpstreamContentBlock::Resource { resource }) => Content::Resource {
            uri: resource.uri,
            text: resource.text,
            mime_type: resource.mime_type,
        },
        Ok(UpstreamContentBlock::ResourceLink {
            uri,
            name,
            mime_type,
            size,
        }) => Content::ResourceLink {
            uri,
            name,
            mime_type,
            bytes: size,
        },
        // Another kind, or a binary resource: nothing of it is lost.
        Err(_) => Content::text(raw.get()),
    }
}

#[cfg(test)]
mod tests {
    use haft::result::Content;
    use serde_json::value::RawValue;

    use super::result;
    use crate::client::CallReply;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_block_that_is_not_known_stays_whole() {
        let odd = r#"{"type":"hologram","depth":12345678901234567890123}"#;
        let blob = r#"{"type":"resource","resource":{"uri":"x:y","blob":"AAAA"}}"#;
        let reply = CallReply {
            content: vec![
                raw(r#"{"type":"text","text":"a","_meta":{}}"#),
                raw(odd),
                raw(blob),
            ],
            structured: Some(raw(r#"{"n":12345678901234567890123}"#)),
            is_error: false,
            result: Some(raw("{}")),
            notes: Vec::new(),
        };
        let result = result(reply, "t");
        let texts = ["a", odd, blob].map(Content::text);
        assert_eq!(result.content, texts);
        assert_eq!(
            result.data.unwrap().get(),
            r#"{"n":12345678901234567890123}"#
        );
    }

    #[test]
    fn a_failed_tool_is_an_error_with_its_own_words() {
        for (content, expect) in [
            (
                vec![raw(r#"{"type":"text","text":"no such page"}"#)],
                "no such page",
            ),
            (Vec::new(), "t failed and does not say why"),
        ] {
            let reply = CallReply {
                content,
                structured: None,
                is_error: true,
                result: Some(raw("{}")),
                notes: Vec::new(),
            };
            let error = result(reply, "t").error.unwrap();
            assert_eq!(error.message(), expect);
        }
    }
}

//! Tools that return each kind of content.

use std::sync::Arc;

use haft::spec::NameError;
use haft::{Content, Tool, ToolError, ToolResult, TypedTool, tool};

/// An image of one red dot (PNG).
pub(crate) const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A moment of silence (WAV).
const SILENCE: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

/// Returns the tools.
pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, NameError> {
    Ok(vec![
        test_simple_text {}.into_tool()?,
        test_image_content {}.into_tool()?,
        test_audio_content {}.into_tool()?,
        test_embedded_resource {}.into_tool()?,
        test_multiple_content_types {}.into_tool()?,
        test_error_handling {}.into_tool()?,
    ])
}

fn image() -> Content {
    Content::Image {
        data: DOT.to_owned(),
        mime_type: "image/png".to_owned(),
    }
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Resource {
        uri: uri.to_owned(),
        text: text.to_owned(),
        mime_type: Some(mime_type.to_owned()),
    }
}

fn of(content: Vec<Content>) -> ToolResult {
    ToolResult {
        content,
        ..ToolResult::default()
    }
}

/// Give a text.
#[tool(concurrency_safe)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Give a picture.
#[tool(concurrency_safe)]
fn test_image_content() -> ToolResult {
    of(vec![image()])
}

/// Give sound.
#[tool(concurrency_safe)]
fn test_audio_content() -> ToolResult {
    of(vec![Content::Audio {
        data: SILENCE.to_owned(),
        mime_type: "audio/wav".to_owned(),
    }])
}

/// Give a resource with its text.
#[tool(concurrency_safe)]
fn test_embedded_resource() -> ToolResult {
    let text = "This is an embedded resource content.";
    of(vec![resource(
        "test://embedded-resource",
        "text/plain",
        text,
    )])
}

/// Give several kinds of content at once.
#[tool(concurrency_safe)]
fn test_multiple_content_types() -> ToolResult {
    let json = r#"{"test":"data","value":123}"#;
    of(vec![
        Content::text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", json),
    ])
}

/// Fail on purpose.
#[tool(concurrency_safe)]
fn test_error_handling() -> haft::Result<String> {
    Err(ToolError::failed(
        "This tool intentionally returns an error for testing",
    ))
}

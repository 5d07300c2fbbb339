//! `IntoToolResult`: what an async function may return to become a result.

use serde::Serialize;

use crate::error::ToolError;
use crate::result::{Content, ToolResult};

/// A value that an async function may return to become a `ToolResult`.
///
/// Everything that serialises implements it: a string becomes text, any other value structured content.
pub trait IntoToolResult {
    /// Converts the value into a result.
    ///
    /// # Errors
    /// The function's own error, or the error that its value cannot be serialized to JSON.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize> IntoToolResult for T {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        let result = ToolResult::data(&self)?;
        let json = result.data.as_ref().map_or("null", |raw| raw.get());
        if json == "null" {
            return Ok(ToolResult::default());
        }
        if json.starts_with('"')
            && let Ok(text) = serde_json::from_str::<String>(json)
        {
            return Ok(ToolResult {
                content: vec![Content::text(text)],
                ..ToolResult::default()
            });
        }
        Ok(result)
    }
}

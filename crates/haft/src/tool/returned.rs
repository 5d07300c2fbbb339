//! Conversion of what tool functions and closures return into tool results and output schemas.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::ToolError;
use crate::result::{Content, ToolResult};
use crate::tool::schema::schema_settings;

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

/// Returns the result of a function that returns a plain value.
///
/// # Errors
/// The value cannot be serialized to JSON.
pub fn returned_value<T: IntoToolResult>(value: T) -> Result<ToolResult, ToolError> {
    value.into_tool_result()
}

/// Returns the result of a function that returns a `Result`.
///
/// # Errors
/// The function's own error, or the value cannot be serialized to JSON.
pub fn returned_result<T, E>(result: Result<T, E>) -> Result<ToolResult, ToolError>
where
    T: IntoToolResult,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let value = result.map_err(ToolError::from_error)?;
    value.into_tool_result()
}

/// A `Result`, to name the type of its value.
pub trait Fallible {
    /// The type of the value.
    type Value;
}

impl<T, E> Fallible for Result<T, E> {
    type Value = T;
}

/// The return type of a function. If it has a schema, the inherent method applies; otherwise that of [`WithoutSchema`].
#[derive(Debug)]
pub struct OutputType<T>(PhantomData<fn() -> T>);

impl<T> OutputType<T> {
    /// Creates the marker of this type.
    #[expect(clippy::new_without_default, reason = "only macros make it")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: JsonSchema> OutputType<T> {
    /// Returns the output schema, if every value of the type becomes structured content.
    pub fn schema(&self) -> Option<Arc<Value>> {
        let generator = schema_settings().for_serialize().into_generator();
        let mut schema = generator.into_root_schema_for::<T>();
        schema.remove("title");
        output_schema(schema).map(Arc::new)
    }
}

/// The fallback for a type without a schema, which promises nothing.
pub trait WithoutSchema {
    /// Returns no output schema.
    fn schema(&self) -> Option<Arc<Value>> {
        None
    }
}

impl<T> WithoutSchema for OutputType<T> {}

/// The form of a value in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputForm {
    /// An object: structured content as it is.
    Object,
    /// A list, a number or a boolean, wrapped in an object.
    Wrapped,
}

/// Returns the schema of the structured content; `None` if a value may be text or null, which is not structured content.
fn output_schema(mut schema: Schema) -> Option<Value> {
    match form(schema.as_value())? {
        OutputForm::Object => {
            schema.insert("type".to_owned(), "object".into());
            Some(schema.to_value())
        }
        OutputForm::Wrapped => {
            let definitions = schema.remove("$defs");
            let mut wrapped = json!({
                "type": "object",
                "properties": {"result": schema.to_value()},
                "required": ["result"],
            });
            if let (Some(definitions), Some(wrapped)) = (definitions, wrapped.as_object_mut()) {
                wrapped.insert("$defs".to_owned(), definitions);
            }
            Some(wrapped)
        }
    }
}

/// Returns the form that all values of a schema share.
fn form(schema: &Value) -> Option<OutputForm> {
    match schema.get("type") {
        Some(Value::String(word)) => match word.as_str() {
            "object" => Some(OutputForm::Object),
            "array" | "number" | "integer" | "boolean" => Some(OutputForm::Wrapped),
            _ => None,
        },
        Some(_) => None,
        None => {
            let variants = schema.get("oneOf").or_else(|| schema.get("anyOf"))?;
            let mut forms = variants.as_array()?.iter().map(form);
            let first = forms.next()??;
            forms.all(|other| other == Some(first)).then_some(first)
        }
    }
}

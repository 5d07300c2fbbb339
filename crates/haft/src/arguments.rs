//! `Arguments`: the effective JSON text of a call.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;
use crate::json;
use crate::json::view::View;

/// A call's arguments after admission: strict JSON, an object, as the schema wants it. The text and nothing else: what a
/// tool makes of it before the call is judged is its [`PreparedCall`](crate::tool::PreparedCall).
#[derive(Debug, Clone)]
pub struct Arguments(String);

impl Arguments {
    /// Arguments that admission has checked.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, parsed anew by each use. For a few of its members there is [`view`](Self::view).
    pub fn value(&self) -> Value {
        json::value::value(&self.0)
    }

    /// The value where it stands in the text: members are read from there, and no tree is built.
    pub fn view(&self) -> View<'_> {
        View::of(&self.0)
    }

    /// The arguments as a type of the tool's own, straight from the text.
    ///
    /// # Errors
    /// `invalid_arguments` where the text is not what the type takes.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        json::de::from_scanned(&self.0).map_err(|e| ToolError::invalid_arguments(e.to_string()))
    }
}

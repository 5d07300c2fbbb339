//! `Arguments`: the effective JSON text of a call's arguments.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;
use crate::json;
use crate::json::view::View;

/// A call's arguments after admission: strict JSON, an object, valid for the schema. Only the text; the form that a tool parses it
/// into before the call is judged is its [`PreparedCall`](crate::tool::PreparedCall).
#[derive(Debug, Clone)]
pub struct Arguments(String);

impl Arguments {
    /// Creates arguments that admission has checked.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the exact text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value, parsed anew each time. To read a few members, use [`view`](Self::view).
    pub fn value(&self) -> Value {
        json::value::value(&self.0)
    }

    /// Returns a view of the value in the text: it reads members in place and builds no tree.
    pub fn view(&self) -> View<'_> {
        View::of(&self.0)
    }

    /// Parses the arguments into a type of the tool's own, directly from the text.
    ///
    /// # Errors
    /// `invalid_arguments` if the text does not fit the type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        json::de::from_scanned(&self.0).map_err(|e| ToolError::invalid_arguments(e.to_string()))
    }
}

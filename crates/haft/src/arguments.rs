//! `Arguments`: the effective JSON text of a call, parsed at most once.

use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;

/// A call's arguments after admission: strict JSON, an object, as the schema wants it.
#[derive(Debug, Clone)]
pub struct Arguments {
    text: Arc<str>,
    value: OnceLock<Value>,
}

impl Arguments {
    /// Arguments that admission has checked.
    pub(crate) fn new(text: Arc<str>) -> Self {
        Self {
            text,
            value: OnceLock::new(),
        }
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, shared.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The parsed value; parsed once, at the first use.
    pub fn value(&self) -> &Value {
        self.value
            .get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }

    /// The arguments as a type of the tool's own, straight from the text.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_json::from_str(&self.text).map_err(|e| ToolError::invalid_arguments(e.to_string()))
    }
}

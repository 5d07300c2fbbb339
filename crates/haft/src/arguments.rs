//! `Arguments`: the effective JSON text of a call, parsed at most once.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;
use crate::json;

/// A call's arguments after admission: strict JSON, an object, as the schema wants it.
pub struct Arguments {
    text: String,
    value: OnceLock<Value>,
    /// The typed input, parsed for `permissions` and kept for `call`.
    typed: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Arguments {
    /// Arguments that admission has checked.
    pub(crate) fn new(text: String) -> Self {
        Self {
            text,
            value: OnceLock::new(),
            typed: Mutex::new(None),
        }
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parsed value; parsed once, at the first use.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| json::value::value(&self.text))
    }

    /// The arguments as a type of the tool's own, straight from the text.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_json::from_str(&self.text).map_err(|e| ToolError::invalid_arguments(e.to_string()))
    }

    /// Keeps a parsed input for the call that follows.
    pub(crate) fn keep_typed<T: Any + Send>(&self, input: T) {
        *self.typed.lock() = Some(Box::new(input));
    }

    /// Takes what `keep_typed` kept.
    pub(crate) fn take_typed<T: Any + Send>(&self) -> Option<T> {
        let kept = self.typed.lock().take()?;
        kept.downcast().ok().map(|input| *input)
    }
}

impl Clone for Arguments {
    /// The same text; what was parsed of it is parsed again when needed.
    fn clone(&self) -> Self {
        Self::new(self.text.clone())
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arguments").field(&self.text).finish()
    }
}

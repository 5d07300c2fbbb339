//! The events of a stream.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// Its text, including the blank line after it.
    pub(crate) text: String,
    /// Whether it contains the end of the reply.
    pub(crate) is_closing: bool,
}

impl StreamEvent {
    /// Creates an event with only data.
    pub(crate) fn data(value: &Value) -> Self {
        Self {
            text: format!("data: {value}\n\n"),
            is_closing: false,
        }
    }

    /// Creates an event with a name.
    pub(crate) fn named(name: &str, value: &Value) -> Self {
        Self {
            text: format!("event: {name}\ndata: {value}\n\n"),
            is_closing: false,
        }
    }

    /// Marks it as containing the end of the reply.
    pub(crate) fn closing(self) -> Self {
        Self {
            is_closing: true,
            ..self
        }
    }
}

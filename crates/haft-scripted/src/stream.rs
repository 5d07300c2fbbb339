//! Events of a stream, as they are sent.

use serde_json::Value;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its bytes, the blank line behind it included.
    pub(crate) text: String,
    /// Whether it says how the reply ends.
    pub(crate) is_closing: bool,
}

impl Event {
    /// An event that is data alone.
    pub(crate) fn data(value: &Value) -> Self {
        Self {
            text: format!("data: {value}\n\n"),
            is_closing: false,
        }
    }

    /// An event with its name in front.
    pub(crate) fn named(name: &str, value: &Value) -> Self {
        Self {
            text: format!("event: {name}\ndata: {value}\n\n"),
            is_closing: false,
        }
    }

    /// The same, as one that says how the reply ends.
    pub(crate) fn closing(self) -> Self {
        Self {
            is_closing: true,
            ..self
        }
    }
}

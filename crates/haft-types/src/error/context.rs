//! `Context`: turns any error into a `ToolError` with a text for the model.

use std::error::Error;
use std::fmt;

use crate::error::{ToolError, bounded};

/// Turns any error into a [`ToolError`]: the context is the text for the model, and the error itself goes to the log.
///
/// ```
/// use haft_types::error::Context;
///
/// fn read(path: &str) -> haft_types::error::Result<String> {
///     Ok(std::fs::read_to_string(path).context("cannot read the price list")?)
/// }
///
/// let error = read("/no/such/file").unwrap_err();
/// assert_eq!(error.message(), "cannot read the price list");
/// assert!(std::error::Error::source(&error).is_some());
/// ```
///
/// A [`ToolError`] keeps its kind, advice and source: its message was written for the model and is appended to the context.
pub trait Context<T> {
    /// Replaces the error by a [`ToolError`] with this text.
    ///
    /// # Errors
    /// The result's own error, with the context.
    fn context(self, text: impl fmt::Display) -> Result<T, ToolError>;
}

impl<T, E> Context<T> for Result<T, E>
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    fn context(self, text: impl fmt::Display) -> Result<T, ToolError> {
        self.map_err(|error| match error.into().downcast::<ToolError>() {
            Ok(own) => own.with_context(&text),
            Err(other) => ToolError::failed(text.to_string()).with_source(other),
        })
    }
}

impl ToolError {
    /// Converts any error into a failure: its text is the message, and the error itself the source. A `ToolError` stays unchanged.
    pub fn from_error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::failed(other.to_string()).with_source(other),
        }
    }

    fn with_context(mut self, text: &impl fmt::Display) -> Self {
        self.message = bounded(format!("{text}: {}", self.message));
        self
    }
}

//! `HostFailure`: why a part of the host failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a part of the host failed: a message for users, and the underlying error for the log.
///
/// Errors of the traits that a host implements carry one, so that the driver's own error can be reached through
/// [`source`](Error::source). Two failures are equal if their messages are.
///
/// ```
/// use std::error::Error;
///
/// use haft_types::error::HostFailure;
///
/// let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
/// let failure = HostFailure::new("haft.db: the disk is full; make room").with_source(full);
/// assert_eq!(failure.to_string(), "haft.db: the disk is full; make room");
/// assert!(failure.source().is_some_and(|source| source.is::<std::io::Error>()));
/// ```
#[derive(Debug, Clone)]
pub struct HostFailure {
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl HostFailure {
    /// Creates a failure with this message: what happened, the value, what to do.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Sets the underlying error.
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Creates a failure whose message is the error's own text.
    pub fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Self::new(error.to_string()).with_source(error)
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for HostFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // Returns the error itself rather than the `Arc`, so that it can be downcast.
        self.source.as_deref().map(|source| source as _)
    }
}

impl PartialEq for HostFailure {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
    }
}

impl Eq for HostFailure {}

impl From<String> for HostFailure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for HostFailure {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

//! `CallInput`: what a client pipes into the single command of its run.

use std::fmt;
use std::pin::Pin;

use parking_lot::Mutex;
use tokio::io::AsyncRead;

use crate::permission::Condition;

/// Reads the piped input.
pub type InputReader = Pin<Box<dyn AsyncRead + Send>>;

/// What a client pipes in. No argument shows it, so the call that reads it declares it as a condition: an approval for a call with
/// input does not cover one without it, in any process.
pub struct CallInput(Mutex<Option<InputReader>>);

impl fmt::Debug for CallInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallInput").finish_non_exhaustive()
    }
}

impl CallInput {
    /// Creates input from this reader, for the first call that takes it.
    pub fn new(reader: impl AsyncRead + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::pin(reader))))
    }

    /// Returns the reader, once.
    pub(crate) fn take(&self) -> Option<InputReader> {
        self.0.lock().take()
    }

    /// Returns the condition that a user is shown.
    pub(crate) fn condition() -> Condition {
        Condition::new("input", "piped in by the client")
    }
}

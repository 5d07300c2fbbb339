//! `CallInput`: what a client pipes into the one command of its run.

use std::fmt;
use std::pin::Pin;

use parking_lot::Mutex;
use tokio::io::AsyncRead;

use crate::permission::Condition;

/// Reads what is piped in.
pub type InputReader = Pin<Box<dyn AsyncRead + Send>>;

/// What a client pipes in: no argument says what it is, so the call that reads it says that it does. An approval given for a call
/// with it holds for none without it, in whichever process.
pub struct CallInput(Mutex<Option<InputReader>>);

impl fmt::Debug for CallInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallInput").finish_non_exhaustive()
    }
}

impl CallInput {
    /// Input that is read from here, by the first call that wants it.
    pub fn new(reader: impl AsyncRead + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::pin(reader))))
    }

    /// The reader, once.
    pub(crate) fn take(&self) -> Option<InputReader> {
        self.0.lock().take()
    }

    /// What a person is shown of it.
    pub(crate) fn condition() -> Condition {
        Condition::new("input", "piped in by the client")
    }
}

//! `CallInput`: what a client pipes into the single command of its run, or types at its own terminal.

use std::fmt;
use std::pin::Pin;

use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::sync::watch;

use crate::permission::Condition;

/// Reads the piped input.
pub type InputReader = Pin<Box<dyn AsyncRead + Send>>;

/// What a client pipes in. No argument shows it, so the call that reads it declares it as a condition: an approval for a call with
/// input does not cover one without it, in any process.
pub struct CallInput {
    reader: Mutex<Option<InputReader>>,
    screen: Option<watch::Receiver<ScreenSize>>,
}

/// The size of a client's terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

impl fmt::Debug for CallInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallInput").finish_non_exhaustive()
    }
}

impl CallInput {
    /// Creates input from this reader, for the first call that takes it.
    pub fn new(reader: impl AsyncRead + Send + 'static) -> Self {
        Self {
            reader: Mutex::new(Some(Box::pin(reader))),
            screen: None,
        }
    }

    /// Creates input from what a user types at a terminal of this size, which may change. A command that runs on a terminal gets both;
    /// its output is then what that terminal is to show.
    pub fn terminal(
        reader: impl AsyncRead + Send + 'static,
        size: watch::Receiver<ScreenSize>,
    ) -> Self {
        Self {
            screen: Some(size),
            ..Self::new(reader)
        }
    }

    /// Returns the reader, once.
    pub(crate) fn take(&self) -> Option<InputReader> {
        self.reader.lock().take()
    }

    /// Returns the size of the client's terminal, if it is one.
    pub(crate) fn screen(&self) -> Option<watch::Receiver<ScreenSize>> {
        self.screen.clone()
    }

    /// Returns the condition that a user is shown.
    pub(crate) fn condition() -> Condition {
        Condition::new("input", "piped in or typed by the client")
    }
}

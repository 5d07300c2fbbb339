//! What a client gives its run's call: the input that it pipes in, where its shell reports, and whether it stays until a command in the background ends.

use std::sync::Arc;

use crate::context::CallContext;
use tokio::sync::watch;

use crate::input::{CallInput, InputReader, ScreenSize};
use crate::shell_report::ShellReport;

impl CallContext {
    /// Returns the input that the client pipes in, to be read once; `None` for a nested call.
    pub fn input(&self) -> Option<InputReader> {
        self.session.input().and_then(CallInput::take)
    }

    /// Returns the size of the terminal at which the client's user types that input; `None` if it is no terminal, and for a nested call.
    pub fn screen_size(&self) -> Option<watch::Receiver<ScreenSize>> {
        self.session.input().and_then(CallInput::screen)
    }

    /// Returns where the shell of the client's command line reports what it holds in the end, if the client wants to know.
    pub fn shell_report(&self) -> Option<Arc<ShellReport>> {
        self.session.shell_report().cloned()
    }

    /// Returns whether the client stays with a command in the background until that ends: then the call ends with the command.
    pub fn is_attended(&self) -> bool {
        self.session.attends()
    }
}

//! What a client gives its run's call: the input that it pipes in, and whether it stays until a command in the background ends.

use crate::context::CallContext;
use crate::input::{CallInput, InputReader};

impl CallContext {
    /// Returns the input that the client pipes in, to be read once; `None` for a nested call.
    pub fn input(&self) -> Option<InputReader> {
        self.session.input().and_then(CallInput::take)
    }

    /// Returns whether the client stays with a command in the background until that ends: then the call ends with the command.
    pub fn is_attended(&self) -> bool {
        self.session.attends()
    }
}
